"""Reading a TOML table strictly.

Every key that is not taken is an error, so a misspelt one cannot be silently without effect.
A message names file, line where it can be found, key, and the nearest word that would be right.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


T = TypeVar("T")


class PresetError(Exception):
    """A preset is outside the grammar; the message says where and what would be right."""


class Table:
    """A table of which each key is taken once, and `done` refuses what was not."""

    def __init__(self, values: Mapping[str, Any], where: str, text: str | None, path: str) -> None:
        self._values = values
        self._where = where
        self._text = text
        self._path = path
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        """Return the text at `key`; it is required when there is no default."""
        value: str = self._take(key, str, "a text", default)
        return value

    def number(self, key: str, default: int | None = None) -> int:
        """Return the integer, 0 or more, at `key`."""
        value: int = self._take(key, int, "a whole number", default)
        if isinstance(value, bool) or value < 0:
            raise self.error(key, "must be a whole number, 0 or more")
        return value

    def truth(self, key: str, default: bool) -> bool:
        """Return the boolean at `key`."""
        value: bool = self._take(key, bool, "true or false", default)
        return value

    def word(self, key: str, words: Iterable[str], default: str | None = None) -> str:
        """Return the text at `key`, which must be one of `words`."""
        value, known = self.text(key, default), [str(word) for word in words]
        if value not in known:
            raise self.error(key, f"{value!r} is unknown{_suggest(value, known)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return one text or a list of them as a tuple; empty when `key` is absent."""
        value = self._take(key, (str, list), "a text or a list of texts", [])
        texts = [value] if isinstance(value, str) else value
        if not all(isinstance(text, str) for text in texts):
            raise self.error(key, "must be a text or a list of texts")
        return tuple(texts)

    def convert(self, key: str, convert: Callable[[str], T], text: str) -> T:
        """Return `convert(text)`; its ValueError becomes an error at `key`."""
        try:
            return convert(text)
        except ValueError as reason:
            raise self.error(key, str(reason)) from None

    def table(self, key: str) -> Table:
        """Return the table at `key`, an empty one when it is absent."""
        return self._table(key, self._take(key, dict, "a table", {}))

    def tables(self, key: str) -> list[Table]:
        """Return the table or the array of tables at `key`."""
        value = self._take(key, (dict, list), "a table or an array of tables", [])
        values = [value] if isinstance(value, dict) else value
        if not all(isinstance(item, dict) for item in values):
            raise self.error(key, "must be a table or an array of tables")
        return [self._table(key, item) for item in values]

    def free(self, key: str) -> Any:
        """Return what stands at `key`, of whatever kind; the caller judges it."""
        self._known.append(key)
        return self._values[key]

    def items(self) -> list[tuple[str, str]]:
        """Return all pairs of a table whose keys are free and whose values are texts."""
        return [(key, self.text(key)) for key in self._values]

    def keys(self) -> list[str]:
        """Return the keys of a table whose keys are free."""
        return list(self._values)

    def done(self) -> None:
        """Refuse any key that was not taken."""
        for key in self._values:
            if key not in self._known:
                raise self.error(key, f"unknown key{_suggest(key, self._known)}")

    def error(self, key: str, message: str) -> PresetError:
        """Return the error to raise about `key`."""
        line = _line(self._text, self._path, key)
        place = self._where if line is None else f"{self._where}:{line}"
        return PresetError(f"{place}: {self._full(key)}: {message}")

    def _take(self, key: str, kind: Any, name: str, default: Any) -> Any:
        self._known.append(key)
        value = self._values.get(key, default)
        if value is None:
            raise self.error(key, "is required")
        if not isinstance(value, kind):
            raise self.error(key, f"must be {name}")
        return value

    def _table(self, key: str, values: Mapping[str, Any]) -> Table:
        return Table(values, self._where, self._text, self._full(key))

    def _full(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key


def _suggest(word: str, known: Iterable[str]) -> str:
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(sorted(known))}"


def _line(text: str | None, path: str, key: str) -> int | None:
    """Return the line of `key` in the table `path`, or of the table when the key is not there."""
    section, header = "", None
    for number, line in enumerate((text or "").splitlines(), 1):
        if heading := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            section = heading[1].replace('"', "")
            if section in (path, f"{path}.{key}".lstrip(".")):
                header = number
        elif section == path and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", line):
            return number
    return header
