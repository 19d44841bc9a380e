"""What is wrong with a request head that llhttp let through. Pure functions.

llhttp already refuses bare LF and CR, NUL and other control characters, obs-fold, a space before
the colon, more than one Content-Length, and Content-Length beside Transfer-Encoding.
"""

from collections.abc import Iterable
from typing import TypeAlias

from gateway.http.refusal import Refusal

Fields: TypeAlias = Iterable[tuple[bytes, bytes]]

# Fields that decide how the request is read; the rest is the application's business.
FRAMING = frozenset({b"host", b"transfer-encoding", b"upgrade", b"connection", b"expect"})

# RFC 3986, 3.2.2 and 3.2.3, without userinfo: what is left of a Host after deleting these is wrong.
_HOST_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%!$&'()*+,;=:[]"

# What a field costs on the wire beside name and value: ": " and CRLF.
_FIELD_OVERHEAD_BYTES = 4


def head_bytes(target: bytes, fields: Fields) -> int:
    """Return the size of a head, in bytes."""
    return len(target) + sum(
        len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in fields
    )


def refusal_of_head(version: str, target: bytes, framing: Fields) -> Refusal | None:
    """Return why this head must not be served, or None.

    `framing` holds the fields whose name is in `FRAMING`, names in lower case, values stripped.
    """
    if version not in {"1.1", "1.0"}:
        return Refusal.VERSION
    # Origin-form only (RFC 9112, 3.2.1): no proxying, no CONNECT, no `OPTIONS *`; a fragment is
    # not part of any form, and parsers differ on where it ends up.
    if target[:1] != b"/" or b"#" in target:
        return Refusal.TARGET
    return _refusal_of_framing(version, framing)


def _refusal_of_framing(version: str, framing: Fields) -> Refusal | None:
    hosts = 0
    for name, value in framing:
        if name == b"host":
            hosts += 1
            if value.translate(None, _HOST_CHARS):
                return Refusal.HOST
        elif name == b"transfer-encoding":
            # Coding names are case-insensitive (RFC 9112, 7). Chunked in HTTP/1.0 is a sign of a
            # proxy that forwards what it does not understand (RFC 9112, 6.1).
            if value.lower() != b"chunked" or version == "1.0":
                return Refusal.TRANSFER_ENCODING
        elif name == b"upgrade" or (name == b"connection" and b"upgrade" in value.lower()):
            return Refusal.UPGRADE
    # RFC 9112, 3.2; HTTP/1.0 knew requests without Host.
    if hosts == 1 or (hosts == 0 and version == "1.0"):
        return None
    return Refusal.HOST
