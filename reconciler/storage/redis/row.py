"""Values as bytes: the columns of a row are the fields of a frozen dataclass, in their order.

A row is a JSON array in ASCII, so a text that is no Unicode comes back as it was. A `scope` is two
columns, bytes stand in hexadecimal. Columns that a script must read, or that are long, stand apart
from the row, as bytes of their own.
"""

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from reconciler.domain.event import Scope

T = TypeVar("T")
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Row(Generic[T]):
    """How values of one kind stand in rows, all but the fields named `apart`."""

    def __init__(self, kind: type[T], apart: Collection[str] = ()) -> None:
        hints = get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        self._kind: Callable[..., T] = kind
        self._scoped = "scope" in names
        self._fields = [
            (name, _Cell(hints[name])) for name in names if name not in {"scope", *apart}
        ]

    def pack(self, value: object) -> bytes:
        """Return the row of a value of the kind, or of one that has the same fields."""
        cells: list[Any] = []
        if self._scoped:
            scope: Scope = value.scope  # type: ignore[attr-defined]
            cells = [scope.project, scope.mode]
        cells += [cell.write(getattr(value, name)) for name, cell in self._fields]
        return array(*cells)

    def value(self, packed: bytes, **apart: Any) -> T:
        """Return the value of a row, with the fields that stand apart."""
        cells = json.loads(packed)
        values: dict[str, Any] = {"scope": Scope(*cells[:2])} if self._scoped else {}
        for (name, cell), stored in zip(self._fields, cells[2 * self._scoped :], strict=True):
            values[name] = cell.read(stored)
        return self._kind(**values, **apart)


class _Cell:
    """How a field of one type stands in JSON."""

    def __init__(self, hint: Any) -> None:
        kind = next((part for part in get_args(hint) if part is not NoneType), hint)
        self.write: Callable[[Any], Any] = _same
        self.read: Callable[[Any], Any] = _same
        if hint == tuple[str, ...]:
            self.read = tuple
        elif kind is bytes:
            self.write, self.read = bytes.hex, bytes.fromhex
        elif issubclass(kind, StrEnum):
            self.read = lambda stored: None if stored is None else kind(stored)


def _same(value: Any) -> Any:
    return value


def array(*cells: Any) -> bytes:
    """Return values as a JSON array: different values are different bytes."""
    return _encode(cells).encode("ascii")


def text(value: str | None) -> bytes:
    """Return a text as bytes; no text is empty."""
    return b"" if value is None else value.encode("utf-8", "surrogatepass")


def number(value: int | None) -> bytes:
    """Return a number as bytes; no number is empty."""
    return b"" if value is None else b"%d" % value


def as_text(stored: bytes) -> str:
    """Return the text of bytes."""
    return stored.decode("utf-8", "surrogatepass")


def as_number(stored: bytes | None) -> int | None:
    """Return the number of bytes."""
    return int(stored) if stored else None


def fields(flat: list[bytes]) -> Mapping[bytes, bytes]:
    """Return what the server answers as a flat list of names and values."""
    return dict(zip(flat[::2], flat[1::2], strict=True))
