"""How one or more signatures stand in a value.

A layout cuts a value into (label, text) entries. It never raises and never judges: an entry that
makes no sense simply carries a label that nobody asks for, so that one bad entry does not spoil
its neighbours.
"""

from dataclasses import dataclass
from enum import StrEnum

from verifiers.document import Document, Readability
from verifiers.encoding import Encoding, decode, encode

# Longer values are refused unread: eight signatures of the longest kind need under 8 KiB.
VALUE_BYTES_MAX = 8192

# Of the entries with a label that we accept, so many are looked at.
SIGNATURES_MAX = 8

Entries = list[tuple[bytes, bytes]]


class Kind(StrEnum):
    """The layouts of signature values."""

    BARE = "bare"  # sha256=5257a8…   one signature, a fixed prefix or none
    PAIRS = "pairs"  # t=1492774577,v1=5257a8…,v1=…
    LIST = "list"  # v1,K5oZfzN95Z… v1a,hnO3f9T8Ytu…
    PLAIN_LIST = "plain-list"  # dx9jYBAl…,aCGR3KMx…   several without labels
    POSITIONAL = "positional"  # 1780000000000,8e2b2a…,056cba…   the timestamp, then signatures
    JSON_BASE64 = "json-base64"  # base64 of {"kid":…,"signature":…}; labels are the members


_LABELLED = (Kind.PAIRS, Kind.LIST)


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout with its signs.

    `prefix` begins the whole value. Entries are parted by `separator`, and by white space around
    it when `spaces` says so; `equals` stands between label and text. `first` labels the first
    entry of a positional value.
    """

    kind: Kind
    prefix: bytes = b""
    separator: bytes = b","
    equals: bytes = b"="
    first: bytes = b""
    spaces: bool = False

    def entries(self, value: bytes) -> Entries:
        """Return the (label, text) entries of `value`; the label of a bare one is empty."""
        if len(value) > VALUE_BYTES_MAX:
            return []
        if self.prefix:
            if not value.startswith(self.prefix):
                return []
            value = value[len(self.prefix) :]
        kind = self.kind
        if kind is Kind.BARE:
            return [(b"", value)]
        if kind is Kind.JSON_BASE64:
            return _members(value)
        # White space after the last entry would be a second spelling of the same value.
        if kind is Kind.LIST and value[-1:].isspace():
            return []
        pieces = value.split(self.separator)
        if self.spaces:
            pieces = [piece.strip(b" ") for piece in pieces]
        if kind in _LABELLED:
            return _cut(pieces, self.equals)
        first = self.first if kind is Kind.POSITIONAL else b""
        return [(b"" if at else first, piece) for at, piece in enumerate(pieces)]

    def compose(self, pairs: Entries) -> bytes:
        """Return the value that `entries` would cut into `pairs`; a bare one takes the first."""
        if self.kind is Kind.BARE:
            return self.prefix + pairs[0][1]
        if self.kind is Kind.JSON_BASE64:
            inner = b",".join(b'"%b":"%b"' % pair for pair in pairs)
            return self.prefix + encode(Encoding.BASE64, b"{" + inner + b"}")
        if self.kind in (Kind.POSITIONAL, Kind.PLAIN_LIST):
            return self.prefix + self.separator.join(text for _, text in pairs)
        joined = self.separator.join(label + self.equals + text for label, text in pairs)
        return self.prefix + joined


def _cut(pieces: list[bytes], sign: bytes) -> Entries:
    found = []
    for piece in pieces:
        label, cut, text = piece.partition(sign)
        if cut:
            found.append((label, text))
    return found


def _members(value: bytes) -> Entries:
    raw = decode(Encoding.BASE64, value)
    document = Document(raw or b"")
    if document.state is not Readability.READABLE:
        return []
    return [(name.encode(), text.encode("utf-8", "replace")) for name, text in document.texts()]
