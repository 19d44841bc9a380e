"""The encoding of a journal entry: canonical, length-safe, versioned.

One fact has exactly one encoding, and no two facts share one, because every part carries its length
and fields stand in the order of their names. An entry holds neither its index nor the server's
time: the engine numbers it inside the transaction that makes the fact true. Entries are later the
leaves of a Merkle tree (RFC 6962), so this format never changes; a new one gets a new version byte.

    entry   = version (1 byte, 0x01) kind count (2 bytes) field*
    kind    = length (1 byte) ASCII
    field   = length (1 byte) name, type (1 byte), value
    value   = "N" | "I" 8 bytes two's complement | ("S" UTF-8 | "B") length (4 bytes) bytes

Numbers are big-endian.
"""

from collections.abc import Mapping

VERSION = 1
Value = str | int | bytes | None


def encode(kind: str, fields: Mapping[str, Value]) -> bytes:
    """Return the entry for `kind`, e.g. `event.accepted`, and its fields."""
    parts = [bytes([VERSION]), _short(kind), len(fields).to_bytes(2)]
    for name in sorted(fields):
        parts += [_short(name), _value(fields[name])]
    return b"".join(parts)


def decode(entry: bytes) -> tuple[str, dict[str, Value]]:
    """Return kind and fields; `ValueError` on anything that `encode` could not have made."""
    if not entry or entry[0] != VERSION:
        raise ValueError("unknown version of a journal entry")
    cursor = _Cursor(entry, 1)
    kind = cursor.short()
    count = int.from_bytes(cursor.take(2))
    fields = {cursor.short(): cursor.value() for _ in range(count)}
    if encode(kind, fields) != entry:
        raise ValueError("a journal entry that is not canonical")
    return kind, fields


def _short(text: str) -> bytes:
    raw = text.encode("ascii")
    return bytes([len(raw)]) + raw


def _value(value: Value) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, int):
        return b"I" + value.to_bytes(8, signed=True)
    # A provider's text may hold a lone surrogate: it must stay itself, and must not stop the
    # journal.
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return (b"S" if isinstance(value, str) else b"B") + len(raw).to_bytes(4) + raw


class _Cursor:
    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def take(self, size: int) -> bytes:
        part = self._data[self._at : self._at + size]
        if len(part) != size:
            raise ValueError("a journal entry that ends early")
        self._at += size
        return part

    def short(self) -> str:
        return self.take(self.take(1)[0]).decode("ascii")

    def value(self) -> Value:
        match self.take(1):
            case b"N":
                return None
            case b"I":
                return int.from_bytes(self.take(8), signed=True)
            case b"S":
                return self.take(int.from_bytes(self.take(4))).decode("utf-8", "surrogatepass")
            case b"B":
                return self.take(int.from_bytes(self.take(4)))
            case other:
                raise ValueError(f"unknown type {other!r} in a journal entry")
