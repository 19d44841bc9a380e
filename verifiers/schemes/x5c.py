"""Tokens that bring their certificates along (JWS `x5c`, RFC 7515 section 4.1.6), as Apple's do.

A chain in a header proves nothing by itself: anybody can make one. So the last certificate must be
the pinned root, compared by its SHA-256 fingerprint, which is the key of such a source; each
certificate must be signed by the next, be valid at the time of the token, and carry the marks that
say what it is for. https://developer.apple.com/documentation/appstoreservernotifications
"""

import binascii
import hashlib
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import (
    BasicConstraints,
    Certificate,
    ExtensionNotFound,
    ObjectIdentifier,
    load_der_x509_certificate,
)

from verifiers.claim import Claim, collect, unmet
from verifiers.document import Document, Readability
from verifiers.keys import Key, KeyRing
from verifiers.preset import BODY, SIGNATURE, Preset
from verifiers.reading import Reading
from verifiers.reason import Reason
from verifiers.schemes.jwt import TokenRule, disagreement, token_parts
from verifiers.schemes.public_key import PublishedKey, prepare

# Leaf, intermediate, root.
_LENGTH = 3
_CERTIFICATE_BYTES_MAX = 8192
_LEAF_MARK = ObjectIdentifier("1.2.840.113635.100.6.11.1")
_INTERMEDIATE_MARK = ObjectIdentifier("1.2.840.113635.100.6.2.1")
_SIGNED_AT = ("signedDate",)
_MILLISECONDS_DIGITS_MAX = 15


class _Chain(NamedTuple):
    leaf: Certificate
    intermediate: Certificate
    root: Certificate

    def is_valid(self, at: int) -> bool:
        """Whether every certificate is valid at `at` (unix seconds)."""
        return all(
            cert.not_valid_before_utc.timestamp() <= at <= cert.not_valid_after_utc.timestamp()
            for cert in self
        )


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what a token with its chain claims; `keys` hold the fingerprints of pinned roots."""
    rule: TokenRule = preset.options
    found, repeated = collect(reading, preset)
    value = found[SIGNATURE]
    if value is None:
        return Reason.SIGNATURE_MISSING
    reason = unmet(reading, preset, found, repeated)
    if reason is not None:
        return reason
    token = token_parts(value, preset, rule, found[BODY] or b"")
    if token is None or not keys.sizes:
        return Reason.SIGNATURE_MALFORMED
    header, payload, signing, signature = token
    claims, chain = Document(payload), _chain(header)
    if header.at(("alg",)) != "ES256" or claims.state is not Readability.READABLE or chain is None:
        return Reason.SIGNATURE_MALFORMED
    text = claims.at(_SIGNED_AT) or ""
    if not (text.isascii() and text.isdigit() and len(text) <= _MILLISECONDS_DIGITS_MAX):
        return Reason.TIMESTAMP_MISSING
    at = int(text) // 1000
    if not (_is_marked(chain) and _is_signed(chain, signing, signature)):
        return Reason.SIGNATURE_MISMATCH
    if not chain.is_valid(at):
        return Reason.KEY_EXPIRED
    reading.claims = claims
    root = hashlib.sha256(chain.root.public_bytes(Encoding.DER)).digest()
    pinned = [(b"", root)]

    def after(key: Key, now: int) -> Reason | None:  # noqa: ARG001  # whichever root it was
        return disagreement(rule, reading, found)

    return Claim(pinned, found, at, candidates=[(b"", pinned)], after=after, covers_body=True)


def _chain(header: Document) -> _Chain | None:
    texts = header.value(("x5c",))
    if not isinstance(texts, list) or len(texts) != _LENGTH:
        return None
    certificates = []
    for text in texts:
        if not isinstance(text, str) or len(text) > _CERTIFICATE_BYTES_MAX:
            return None
        try:
            certificates.append(
                load_der_x509_certificate(binascii.a2b_base64(text.encode("ascii", "replace")))
            )
        except ValueError:
            return None
    return _Chain(*certificates)


def _is_marked(chain: _Chain) -> bool:
    """Whether leaf and intermediate are what Apple issues for signing, and the upper two CAs."""
    try:
        chain.leaf.extensions.get_extension_for_oid(_LEAF_MARK)
        chain.intermediate.extensions.get_extension_for_oid(_INTERMEDIATE_MARK)
        return all(
            cert.extensions.get_extension_for_class(BasicConstraints).value.ca
            for cert in (chain.intermediate, chain.root)
        )
    except (ExtensionNotFound, ValueError):
        return False


def _is_signed(chain: _Chain, signing: bytes, signature: bytes) -> bool:
    """Whether the leaf signed the token, the intermediate the leaf, the root the intermediate."""
    try:
        chain.leaf.verify_directly_issued_by(chain.intermediate)
        chain.intermediate.verify_directly_issued_by(chain.root)
        public = chain.leaf.public_key()
        if not isinstance(public, ec.EllipticCurvePublicKey):
            return False
        key = prepare("ecdsa-p256-sha256-raw", PublishedKey(None, public))
    except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return len(signature) == 64 and key.matches(signing, [signature])  # noqa: PLR2004
