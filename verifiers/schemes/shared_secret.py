"""Shared secrets: HMAC (RFC 2104), hashes with the secret in what is hashed, and plain tokens.

What can be worked out beforehand is: of an HMAC key the two blocks are hashed once, and each
request copies that state.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence

from verifiers.encoding import equal
from verifiers.schemes.keccak import keccak_256


class Hmac:
    """A prepared HMAC key."""

    __slots__ = ("_start",)

    def __init__(self, material: bytes, digest: str) -> None:
        self._start = hmac.new(material, None, digest)

    def sign(self, content: bytes) -> bytes:
        """Return the MAC of `content`."""
        mac = self._start.copy()
        mac.update(content)
        return mac.digest()

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is the MAC of `content`."""
        mac = self._start.copy()
        mac.update(content)
        expected = mac.digest()
        if len(signatures) == 1:
            return equal(expected, signatures[0])
        return any([equal(expected, given) for given in signatures])  # noqa: C419  # all, always


class Hash:
    """A plain hash; the preset puts the secret into the content, or it does not load."""

    __slots__ = ("_digest",)

    def __init__(self, digest: Callable[[bytes], bytes]) -> None:
        self._digest = digest

    def sign(self, content: bytes) -> bytes:
        """Return the hash of `content`, which holds the secret."""
        return self._digest(content)

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is the hash of `content`."""
        expected = self._digest(content)
        return any([equal(expected, given) for given in signatures])  # noqa: C419  # all, always


class SuffixedHash:
    """A plain hash over the content with the secret behind it (Vonage's md5hash)."""

    __slots__ = ("_digest", "_secret")

    def __init__(self, secret: bytes, digest: str) -> None:
        self._secret = secret
        self._digest = digest

    def sign(self, content: bytes) -> bytes:
        """Return the hash of `content` and the secret."""
        state = hashlib.new(self._digest, content, usedforsecurity=False)
        state.update(self._secret)
        return state.digest()

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is that hash."""
        expected = self.sign(content)
        return any([equal(expected, given) for given in signatures])  # noqa: C419  # all, always


class Token:
    """A secret that is sent as it is. It proves the sender, not the content."""

    __slots__ = ("_digest", "_token")

    def __init__(self, token: bytes) -> None:
        self._token = token
        self._digest = hashlib.sha256(token).digest()

    def sign(self, content: bytes) -> bytes:  # noqa: ARG002  # whatever the content is
        """Return the token."""
        return self._token

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:  # noqa: ARG002
        """Whether any of `signatures` is the token; digests are compared, so no length shows."""
        digests = [hashlib.sha256(given).digest() for given in signatures]
        return any([equal(self._digest, digest) for digest in digests])  # noqa: C419


def hash_of(name: str) -> Hash:
    """Return the plain hash of a name: md5, sha1, sha256, sha512 or keccak-256."""
    if name == "keccak-256":
        return Hash(keccak_256)
    return Hash(lambda content: hashlib.new(name, content, usedforsecurity=False).digest())
