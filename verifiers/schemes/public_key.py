"""Signatures with a key pair: Ed25519 (RFC 8032)."""

from collections.abc import Sequence
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from verifiers.encoding import equal

_SEED_BYTES = 32


class Ed25519:
    """A prepared Ed25519 key: a public one checks, a private one also signs."""

    __slots__ = ("_private", "_public")

    def __init__(self, public: Ed25519PublicKey, private: Ed25519PrivateKey | None) -> None:
        self._public = public
        self._private = private

    @classmethod
    def of_public(cls, material: bytes) -> Self:
        """Take the 32 bytes of a public key; ValueError for anything else."""
        return cls(Ed25519PublicKey.from_public_bytes(material), None)

    @classmethod
    def of_private(cls, material: bytes) -> Self:
        """Take a 32-byte seed, or seed and public key as 64 bytes; ValueError otherwise."""
        private = Ed25519PrivateKey.from_private_bytes(material[:_SEED_BYTES])
        public = private.public_key()
        rest = material[_SEED_BYTES:]
        if rest and not equal(rest, public.public_bytes_raw()):
            raise ValueError("the second half is not the public key of the first")
        return cls(public, private)

    def sign(self, content: bytes) -> bytes:
        """Return the signature over `content`; TypeError from a public key."""
        if self._private is None:
            raise TypeError("a public key cannot sign")
        return self._private.sign(content)

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is right for `content`."""
        return any(self._is_right(content, given) for given in signatures)

    def _is_right(self, content: bytes, given: bytes) -> bool:
        try:
            self._public.verify(given, content)
        except InvalidSignature:
            return False
        return True
