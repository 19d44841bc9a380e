"""Text forms of bytes, accepted only when canonical, and the one comparison of secrets.

`equal` is the only place in the product where a signature, token or MAC is compared; a
syntax-tree test holds that. Decoding accepts exactly one text for each byte string, so that a
signature cannot be rewritten into another that is also accepted (RFC 4648, section 3.5).
"""

import binascii
import hmac
from enum import StrEnum


class Encoding(StrEnum):
    """How a signature is written in the request."""

    HEX = "hex"
    BASE64 = "base64"


def equal(left: bytes, right: bytes) -> bool:
    """Compare in time that does not depend on where the two differ.

    Takes bytes only: on text the primitive raises for characters outside ASCII.
    """
    return hmac.compare_digest(left, right)


def _decode_hex(text: bytes) -> bytes | None:
    try:
        raw = binascii.unhexlify(text)
    except ValueError:
        return None
    return raw if binascii.hexlify(raw) == text else None  # upper case is another text


def _decode_base64(text: bytes) -> bytes | None:
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    # Strict mode lets stray bits in the last character through ("QR==" for "QQ==").
    return raw if binascii.b2a_base64(raw, newline=False) == text else None


def decode(encoding: Encoding, text: bytes) -> bytes | None:
    """Return the bytes that `text` stands for, or None unless it is the canonical text."""
    return _decode_hex(text) if encoding is Encoding.HEX else _decode_base64(text)


def encode(encoding: Encoding, raw: bytes) -> bytes:
    """Return the canonical text of `raw`."""
    if encoding is Encoding.HEX:
        return binascii.hexlify(raw)
    return binascii.b2a_base64(raw, newline=False)
