"""How one or more signatures stand in a value.

A layout cuts a header value into (label, text) entries. It never raises and never judges: an
entry that makes no sense simply carries a label that nobody asks for, so that one bad entry
does not spoil its neighbours.
"""

from enum import StrEnum

# Longer values are refused unread: eight signatures of the longest kind need under 2 KiB.
VALUE_BYTES_MAX = 8192

# Of the entries with a label that we accept, so many are looked at.
SIGNATURES_MAX = 8

Entries = list[tuple[bytes, bytes]]


class Layout(StrEnum):
    """The layouts of signature values."""

    BARE = "bare"  # sha256=5257a8…   one signature, a fixed prefix or none
    PAIRS = "pairs"  # t=1492774577,v1=5257a8…,v1=…
    LIST = "list"  # v1,K5oZfzN95Z… v1a,hnO3f9T8Ytu…


def entries(layout: Layout, prefix: bytes, value: bytes) -> Entries:
    """Return the (label, text) entries of a signature value; the label of a bare one is empty."""
    if len(value) > VALUE_BYTES_MAX:
        return []
    if layout is Layout.BARE:
        return [(b"", value[len(prefix) :])] if value.startswith(prefix) else []
    if layout is Layout.PAIRS:
        return _cut(value.split(b","), b"=")
    # White space after the last entry would be a second spelling of the same value.
    return _cut(value.split(b" "), b",") if not value[-1:].isspace() else []


def _cut(pieces: list[bytes], sign: bytes) -> Entries:
    found = []
    for piece in pieces:
        label, cut, text = piece.partition(sign)
        if cut:
            found.append((label, text))
    return found


def compose(layout: Layout, prefix: bytes, pairs: Entries) -> bytes:
    """Return the value that `entries` would cut into `pairs`; a bare layout takes the first."""
    if layout is Layout.BARE:
        return prefix + pairs[0][1]
    if layout is Layout.PAIRS:
        return b",".join(label + b"=" + text for label, text in pairs)
    return b" ".join(label + b"," + text for label, text in pairs)
