"""Text forms of bytes, accepted only when canonical, and the one comparison of secrets.

`equal` is the only place in the product where a signature, token or MAC is compared; a
syntax-tree test holds that. Decoding accepts exactly one text for each byte string, so that a
signature cannot be rewritten into another that is also accepted (RFC 4648, section 3.5). The one
exception is `hex-any-case`, for the providers whose own libraries accept both.
"""

import binascii
import hmac
from collections.abc import Callable
from enum import StrEnum


class Encoding(StrEnum):
    """How a signature is written in the request."""

    HEX = "hex"
    HEX_UPPER = "hex-upper"
    HEX_ANY_CASE = "hex-any-case"
    BASE64 = "base64"
    BASE64_UNPADDED = "base64-unpadded"
    BASE64URL = "base64url"  # without padding, as JWTs have it
    BASE64URL_PADDED = "base64url-padded"
    TEXT = "text"  # a shared token: the bytes themselves


def equal(left: bytes, right: bytes) -> bool:
    """Compare in time that does not depend on where the two differ.

    Takes bytes only: on text the primitive raises for characters outside ASCII.
    """
    return hmac.compare_digest(left, right)


def decode(encoding: Encoding, text: bytes) -> bytes | None:
    """Return the bytes that `text` stands for, or None unless it is the canonical text."""
    return _DECODERS[encoding](text)


def encode(encoding: Encoding, raw: bytes) -> bytes:
    """Return the canonical text of `raw`."""
    return _ENCODERS[encoding](raw)


def _decode_hex(text: bytes) -> bytes | None:
    try:
        raw = binascii.unhexlify(text)
    except ValueError:
        return None
    return raw if binascii.hexlify(raw) == text else None  # upper case is another text


def _decode_hex_upper(text: bytes) -> bytes | None:
    return _decode_hex(text.lower()) if text == text.upper() else None


def _decode_hex_any_case(text: bytes) -> bytes | None:
    return _decode_hex(text.lower())


def _decode_base64(text: bytes) -> bytes | None:
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return None
    # Strict mode lets stray bits in the last character through ("QR==" for "QQ==").
    return raw if binascii.b2a_base64(raw, newline=False) == text else None


def _decode_base64_unpadded(text: bytes) -> bytes | None:
    return None if b"=" in text else _decode_base64(text + b"=" * (-len(text) % 4))


def _decode_base64url_padded(text: bytes) -> bytes | None:
    return None if b"+" in text or b"/" in text else _decode_base64(text.translate(_FROM_URL))


def _decode_base64url(text: bytes) -> bytes | None:
    if b"=" in text:
        return None
    return _decode_base64url_padded(text + b"=" * (-len(text) % 4))


def _encode_base64(raw: bytes) -> bytes:
    return binascii.b2a_base64(raw, newline=False)


_FROM_URL = bytes.maketrans(b"-_", b"+/")
_TO_URL = bytes.maketrans(b"+/", b"-_")

_DECODERS: dict[Encoding, Callable[[bytes], bytes | None]] = {
    Encoding.HEX: _decode_hex,
    Encoding.HEX_UPPER: _decode_hex_upper,
    Encoding.HEX_ANY_CASE: _decode_hex_any_case,
    Encoding.BASE64: _decode_base64,
    Encoding.BASE64_UNPADDED: _decode_base64_unpadded,
    Encoding.BASE64URL: _decode_base64url,
    Encoding.BASE64URL_PADDED: _decode_base64url_padded,
    Encoding.TEXT: lambda text: text or None,
}

_ENCODERS: dict[Encoding, Callable[[bytes], bytes]] = {
    Encoding.HEX: binascii.hexlify,
    Encoding.HEX_UPPER: lambda raw: binascii.hexlify(raw).upper(),
    Encoding.HEX_ANY_CASE: binascii.hexlify,
    Encoding.BASE64: _encode_base64,
    Encoding.BASE64_UNPADDED: lambda raw: _encode_base64(raw).rstrip(b"="),
    Encoding.BASE64URL: lambda raw: _encode_base64(raw).translate(_TO_URL).rstrip(b"="),
    Encoding.BASE64URL_PADDED: lambda raw: _encode_base64(raw).translate(_TO_URL),
    Encoding.TEXT: lambda raw: raw,
}
