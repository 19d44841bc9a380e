"""What a field of the signed content may be passed through, as a closed list.

Each transform maps bytes to bytes, or None for what it cannot read. They are chained from left to
right: `{body|sha256|hex}`.
"""

import hashlib
import json
from binascii import crc32
from collections.abc import Callable
from urllib.parse import quote_from_bytes

from verifiers.canonical import canonical_json
from verifiers.encoding import Encoding, encode

Transform = Callable[[bytes], bytes | None]


def _md5(raw: bytes) -> bytes:
    return hashlib.md5(raw, usedforsecurity=False).digest()


def _sha1(raw: bytes) -> bytes:
    return hashlib.sha1(raw, usedforsecurity=False).digest()


def _json_text(raw: bytes) -> bytes | None:
    """Return the text as a JSON string, as JSON.stringify writes it."""
    try:
        return json.dumps(raw.decode(), ensure_ascii=False).encode()
    except UnicodeError:
        return None


def _html_unescaped(raw: bytes) -> bytes:
    return raw.replace(b"&lt;", b"<").replace(b"&gt;", b">").replace(b"&amp;", b"&")


def _php_escaped(raw: bytes) -> bytes | None:
    """Return the text with slashes and what is not ASCII escaped, as PHP writes JSON (Box)."""
    try:
        units = raw.decode().encode("utf-16-be")
    except UnicodeError:
        return None
    codes = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    return b"".join(b"\\u%04x" % c if c > 126 else bytes([c]) for c in codes).replace(  # noqa: PLR2004
        b"/", b"\\/"
    )


def _with_port(url: bytes) -> bytes:
    """Return the URL with its port written out, the default one if it has none."""
    scheme, sign, rest = url.partition(b"://")
    host, slash, path = rest.partition(b"/")
    if not sign or host.rpartition(b":")[2].isdigit():
        return url
    return scheme + sign + host + (b":443" if scheme == b"https" else b":80") + slash + path


def _without_port(url: bytes) -> bytes:
    scheme, sign, rest = url.partition(b"://")
    host, slash, path = rest.partition(b"/")
    name, colon, port = host.rpartition(b":")
    return scheme + sign + (name if colon and port.isdigit() else host) + slash + path


TRANSFORMS: dict[str, Transform] = {
    # digests, raw bytes
    "md5": _md5,
    "sha1": _sha1,
    "sha256": lambda raw: hashlib.sha256(raw).digest(),
    "sha512": lambda raw: hashlib.sha512(raw).digest(),
    "crc32": lambda raw: b"%d" % crc32(raw),  # as unsigned decimal
    # text forms
    "hex": lambda raw: encode(Encoding.HEX, raw),
    "base64": lambda raw: encode(Encoding.BASE64, raw),
    "base64url": lambda raw: encode(Encoding.BASE64URL, raw),
    "lower": bytes.lower,
    "upper": bytes.upper,
    "json": _json_text,
    "percent": lambda raw: quote_from_bytes(raw, safe="").encode(),
    "html-unescaped": _html_unescaped,
    # the body as something else
    "canonical-json": canonical_json,  # RFC 8785
    "php-escaped": _php_escaped,
    # the URL
    "with-port": _with_port,
    "without-port": _without_port,
    "without-query": lambda url: url.partition(b"?")[0],
}
