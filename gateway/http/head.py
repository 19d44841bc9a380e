"""What is wrong with a request head that llhttp let through. Pure functions.

llhttp already refuses bare LF and CR, NUL and other control characters, obs-fold, a space before
the colon, more than one Content-Length, and Content-Length beside Transfer-Encoding.
"""

from collections.abc import Iterable
from typing import TypeAlias

from gateway.http.refusal import Refusal

Fields: TypeAlias = Iterable[tuple[bytes, bytes]]

# Fields that decide how the request is read; the rest is the application's business.
_FRAMING = frozenset({b"host", b"transfer-encoding", b"upgrade", b"connection", b"expect"})

# RFC 3986, 3.2.2 and 3.2.3, without userinfo. Every other byte becomes 0.
_HOST_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%!$&'()*+,;=:[]"
_HOST_BYTES = bytes(byte if byte in _HOST_CHARS else 0 for byte in range(256))

_SLASH = ord("/")

# What a field costs on the wire beside name and value: ": " and CRLF.
_FIELD_OVERHEAD_BYTES = 4


def head_bytes(target: bytes, fields: Fields) -> int:
    """Return the size of a head, in bytes."""
    return len(target) + sum(
        len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in fields
    )


def judge_head(version: str, target: bytes, fields: Fields) -> Refusal | bool:
    """Return why this head must not be served, or else whether its sender waits for a 100.

    `fields` have names in lower case and values without white space around them.
    """
    if version != "1.1" and version != "1.0":  # noqa: PLR1714  a set costs twice as much
        return Refusal.VERSION
    # Origin-form only (RFC 9112, 3.2.1): no proxying, no CONNECT, no `OPTIONS *`; a fragment is
    # not part of any form, and parsers differ on where it ends up.
    if target[0] != _SLASH or b"#" in target:
        return Refusal.TARGET
    hosts = 0
    expects_100 = False
    for name, value in fields:
        if name not in _FRAMING:
            continue
        if name == b"host":
            hosts += 1
            if 0 in value.translate(_HOST_BYTES):
                return Refusal.HOST
        elif name == b"connection":
            if b"upgrade" in value.lower():
                return Refusal.UPGRADE
        elif name == b"transfer-encoding":
            # Coding names are case-insensitive (RFC 9112, 7). Chunked in HTTP/1.0 is a sign of a
            # proxy that forwards what it does not understand (RFC 9112, 6.1).
            if value.lower() != b"chunked" or version == "1.0":
                return Refusal.TRANSFER_ENCODING
        elif name == b"expect":
            # An HTTP/1.0 sender does not understand a 100 (RFC 9110, 10.1.1).
            expects_100 = version == "1.1" and value.lower() == b"100-continue"
        else:
            return Refusal.UPGRADE
    # RFC 9112, 3.2; HTTP/1.0 knew requests without Host.
    if hosts == 1 or (hosts == 0 and version == "1.0"):
        return expects_100
    return Refusal.HOST
