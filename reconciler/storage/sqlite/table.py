"""Rows as values: the columns of a table are named as the fields of a frozen dataclass.

A `scope` is two columns, flags are one text, a text that is no Unicode comes back as it was.
Nothing is looked up by name at run time: the lists are made when the module loads.
"""

import dataclasses
from collections.abc import Callable, Sequence
from enum import StrEnum
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_type_hints

from reconciler.domain.event import Scope
from reconciler.storage.sqlite.connection import Row, Value, text

T = TypeVar("T")


class Table(Generic[T]):
    """How values of one kind stand in rows. `columns` is their order, in rows and in SQL."""

    def __init__(self, kind: type[T]) -> None:
        hints = get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
        self._kind: Callable[..., T] = kind
        self._fields = [(name, _reader(hints[name])) for name in names if name != "scope"]
        self._scoped = "scope" in names
        self.columns = (
            *(("project", "mode") if self._scoped else ()),
            *(f for f, _ in self._fields),
        )

    def value(self, row: Row) -> T:
        """Return the value that stands in a row of `columns`."""
        values: dict[str, Any] = {"scope": Scope(*row[:2])} if self._scoped else {}
        for (name, read), cell in zip(self._fields, row[2 * self._scoped :], strict=True):
            values[name] = cell if read is None or cell is None else read(cell)
        return self._kind(**values)

    def row(self, value: T) -> dict[str, Value]:
        """Return the columns of a value."""
        cells: dict[str, Value] = {}
        if self._scoped:
            scope: Scope = value.scope  # type: ignore[attr-defined]
            cells = {"project": scope.project, "mode": scope.mode}
        for name, _ in self._fields:
            cell = getattr(value, name)
            cells[name] = " ".join(cell) if isinstance(cell, tuple) else cell
        return cells


def _reader(hint: Any) -> Callable[[Value], Any] | None:
    """Return what turns a cell that is not NULL into a field of type `hint`; `None`: nothing."""
    if hint == tuple[str, ...]:
        return lambda cell: tuple(text(cell).split())
    kind: type = next((part for part in get_args(hint) if part is not NoneType), hint)
    if issubclass(kind, StrEnum):
        return lambda cell: kind(text(cell))
    return text if kind is str else None


def names(columns: Sequence[str], *, of: str = "") -> str:
    """Return the columns as SQL names them, e.g. `w.due_at, w.fence`."""
    return ", ".join(f'{of}"{column}"' for column in columns)


def insert(table: str, columns: Sequence[str]) -> str:
    """Return the statement that inserts one row."""
    marks = ", ".join("?" * len(columns))
    return f'INSERT INTO "{table}" ({names(columns)}) VALUES ({marks})'  # noqa: S608  our own names
