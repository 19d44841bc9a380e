"""Signatures with a key pair: Ed25519 (RFC 8032), ECDSA (FIPS 186-5), RSA (RFC 8017).

`load_keys` reads whatever notation a provider shows its key in. A private key is taken too: it
can also sign, for tests.
"""

import binascii
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA384, SHA512, HashAlgorithm
from cryptography.hazmat.primitives.serialization import (
    load_der_public_key,
    load_pem_private_key,
    load_pem_public_key,
)
from cryptography.x509 import load_pem_x509_certificate

from verifiers.encoding import Encoding, decode, equal

_SEED_BYTES = 32
_RSA_BITS_MIN = 2048
# Verifying with a huge modulus would hold the event loop.
_RSA_BITS_MAX = 8192


class PublishedKey(NamedTuple):
    """A key, and the name under which the provider speaks of it (`kid`), if it has one."""

    name: str | None
    public: Any
    private: Any = None


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
        return any(_holds(lambda g: self._public.verify(g, content), g) for g in signatures)


class Ecdsa:
    """A prepared ECDSA key; `raw` signatures are r and s side by side, others are DER."""

    __slots__ = ("_private", "_public", "_raw", "_scheme")

    def __init__(self, key: PublishedKey, digest: HashAlgorithm, curve: str, *, raw: bool) -> None:
        if not isinstance(key.public, ec.EllipticCurvePublicKey) or key.public.curve.name != curve:
            raise ValueError(f"no key of the curve {curve}")
        self._public = key.public
        self._private = key.private
        self._scheme = ec.ECDSA(digest)
        self._raw = raw

    def sign(self, content: bytes) -> bytes:
        """Return the signature over `content`; TypeError from a public key."""
        if self._private is None:
            raise TypeError("a public key cannot sign")
        der: bytes = self._private.sign(content, self._scheme)
        if not self._raw:
            return der
        size = (self._public.curve.key_size + 7) // 8
        return b"".join(part.to_bytes(size, "big") for part in decode_dss_signature(der))

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is right for `content`."""
        ders = [self._der(given) for given in signatures]
        return any(_holds(lambda g: self._public.verify(g, content, self._scheme), d) for d in ders)

    def _der(self, given: bytes) -> bytes:
        if not self._raw:
            return given
        half = len(given) // 2
        parts = (int.from_bytes(part, "big") for part in (given[:half], given[half:]))
        return encode_dss_signature(*parts)


class Rsa:
    """A prepared RSA key, PKCS#1 v1.5 or PSS (salt as long as the hash)."""

    __slots__ = ("_digest", "_padding", "_private", "_public")

    def __init__(self, key: PublishedKey, digest: HashAlgorithm, *, pss: bool) -> None:
        if not isinstance(key.public, rsa.RSAPublicKey):
            raise ValueError("no RSA key")  # noqa: TRY004  # of a secret
        if not _RSA_BITS_MIN <= key.public.key_size <= _RSA_BITS_MAX:
            raise ValueError("an RSA key of another size")
        self._public = key.public
        self._private = key.private
        self._digest = digest
        self._padding = (
            padding.PSS(padding.MGF1(digest), digest.digest_size) if pss else padding.PKCS1v15()
        )

    def sign(self, content: bytes) -> bytes:
        """Return the signature over `content`; TypeError from a public key."""
        if self._private is None:
            raise TypeError("a public key cannot sign")
        signature: bytes = self._private.sign(content, self._padding, self._digest)
        return signature

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is right for `content`."""
        check = self._public.verify
        return any(
            _holds(lambda g: check(g, content, self._padding, self._digest), g) for g in signatures
        )


def _holds(check: Callable[[bytes], None], given: bytes) -> bool:
    try:
        check(given)
    except InvalidSignature:
        return False
    return True


_HASHES: dict[str, HashAlgorithm] = {
    "sha1": SHA1(),  # noqa: S303  # what those providers sign with
    "sha256": SHA256(),
    "sha384": SHA384(),
    "sha512": SHA512(),
}
_CURVES = {"p256": "secp256r1", "p384": "secp384r1"}


def prepare(name: str, key: PublishedKey) -> Ed25519 | Ecdsa | Rsa:
    """Return the key prepared for the algorithm of a name; ValueError when it does not fit."""
    family, *words = name.split("-")
    if family == "ed25519":
        if not isinstance(key.public, Ed25519PublicKey):
            raise ValueError("no Ed25519 key")
        return Ed25519(key.public, key.private)
    if family == "ecdsa":
        curve, digest, form = words
        return Ecdsa(key, _HASHES[digest], _CURVES[curve], raw=form == "raw")
    return Rsa(key, _HASHES[words[-1]], pss="pss" in words)


# ---------------------------------------------------------------- notations


# What a document of any shape at all may make the readers raise, beside ValueError.
_UNUSABLE = (UnsupportedAlgorithm, TypeError, KeyError, AttributeError, OverflowError)


def load_keys(text: str) -> list[PublishedKey]:
    """Return the keys in a PEM, a certificate, base64 of a DER key, a JWK, a set or PEMs by name.

    Keys of a set that cannot be used are left out. ValueError when there is none.
    """
    try:
        found = _load(text.strip())
    except _UNUSABLE as error:
        raise ValueError(type(error).__name__) from None
    if not found:
        raise ValueError("no key")
    return found


def _load(text: str) -> list[PublishedKey]:
    if text.startswith("-----BEGIN CERTIFICATE-----"):
        certificate = load_pem_x509_certificate(text.encode())
        return [PublishedKey(None, certificate.public_key())]
    if text.startswith("-----BEGIN") and " PRIVATE KEY-----" in text[:60]:
        private = load_pem_private_key(text.encode(), None)
        return [PublishedKey(None, private.public_key(), private)]
    if text.startswith("-----BEGIN"):
        return [PublishedKey(None, load_pem_public_key(_with_lines(text).encode()))]
    if text.startswith("{"):
        document = json.loads(text)
        if "keys" in document:
            return _set(document["keys"])
        return [_jwk(document)] if "kty" in document else _named(document)
    return [PublishedKey(None, load_der_public_key(binascii.a2b_base64(text, strict_mode=True)))]


def _with_lines(pem: str) -> str:
    """Return a PEM whose line breaks got lost with them (eBay's API gives such ones)."""
    head, body, tail = "-----BEGIN PUBLIC KEY-----", "", "-----END PUBLIC KEY-----"
    if "\n" in pem or not (pem.startswith(head) and pem.endswith(tail)):
        return pem
    body = pem.removeprefix(head).removesuffix(tail).strip()
    return f"{head}\n{body}\n{tail}\n"


def _named(document: dict[str, Any]) -> list[PublishedKey]:
    """Return the keys of an object whose members are PEMs by name (Google's certificates)."""
    found = []
    for name, text in document.items():
        if isinstance(text, str) and text.startswith("-----BEGIN"):
            found += [key._replace(name=name) for key in _load(text.strip())]
    return found


def _set(keys: list[Any]) -> list[PublishedKey]:
    found = []
    for key in keys:
        try:
            found.append(_jwk(key))
        except (ValueError, *_UNUSABLE):
            continue
    return found


_JWK_CURVES: dict[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1()}


def _jwk(jwk: dict[str, Any]) -> PublishedKey:
    """Return the public key of a JWK (RFC 7517, RFC 7518, RFC 8037)."""
    name = jwk.get("kid")
    if not isinstance(name, str | None):
        raise TypeError("a name that is no text")
    if jwk.get("use", "sig") != "sig":
        raise ValueError("a key for another use")
    kind = jwk["kty"]
    if kind == "OKP" and jwk["crv"] == "Ed25519":
        return PublishedKey(name, Ed25519PublicKey.from_public_bytes(_octets(jwk["x"])))
    if kind == "EC":
        curve = _JWK_CURVES[jwk["crv"]]
        numbers = ec.EllipticCurvePublicNumbers(_integer(jwk["x"]), _integer(jwk["y"]), curve)
        return PublishedKey(name, numbers.public_key())
    if kind == "RSA":
        return PublishedKey(
            name, rsa.RSAPublicNumbers(_integer(jwk["e"]), _integer(jwk["n"])).public_key()
        )
    raise ValueError("a key of another kind")


def _octets(text: str) -> bytes:
    raw = decode(Encoding.BASE64URL, text.encode("ascii", "replace"))
    if raw is None:
        raise ValueError("not base64url")
    return raw


def _integer(text: str) -> int:
    return int.from_bytes(_octets(text), "big")
