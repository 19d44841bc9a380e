"""Reading a TOML table strictly, with messages that an operator can act on.

Whoever reads says first which keys there are, so an unknown one is refused before anything is
missed. A mistake names the file, the line where it is known, the key, what is wrong, and the
nearest right word. The first mistake ends the reading.
"""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_HEADER = re.compile(r"\s*\[\s*([A-Za-z0-9_.-]+)\s*\]")
_SECONDS_MAX = 315_360_000  # ten years
_FINAL_STATUSES = range(200, 600)
_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_.-]+)["']?\s*=""")


class ProfileError(Exception):
    """A profile is wrong. The message says where, and how to mend it."""

    def __init__(self, where: str, key: str, problem: str, line: int | None = None) -> None:
        place = where if line is None else f"{where}:{line}"
        super().__init__(f"{place}: {key}: {problem}" if key else f"{place}: {problem}")
        self.where = where
        self.key = key
        self.problem = problem
        self.line = line


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the nearest known word, as the end of a sentence; empty when none is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def key_lines(text: str) -> dict[str, int]:
    """Find the line of each key (`section.key`) and header (`section`) of a plain TOML file."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is not None:
            section = header[1]
            lines.setdefault(section, number)
        elif key is not None:
            lines.setdefault(f"{section}.{key[1]}" if section else key[1], number)
    return lines


class Table:
    """One table of the file. Its methods return a value by key and kind, or raise `ProfileError`.

    `known` holds the keys that may stand at each path; a path that it lacks takes any key.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        where: str,
        lines: Mapping[str, int],
        known: Mapping[str, Collection[str]],
        path: str = "",
    ) -> None:
        self._values = values
        self._where = where
        self._lines = lines
        self._known = known
        self._path = path
        for key in values:
            if key not in known.get(path, values):
                raise self.error(key, f"unknown key{did_you_mean(key, known[path])}")

    def error(self, key: str, problem: str) -> ProfileError:
        """Make the error for `key` of this table."""
        full = f"{self._path}.{key}" if self._path and key else self._path or key
        line = self._lines.get(full, self._lines.get(self._path))
        return ProfileError(self._where, full, problem, line)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that is not empty; required without a default."""
        value = self._needed(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(key, "must be a text that is not empty")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a text that may be absent."""
        return self.text(key) if key in self._values else None

    def choice(self, key: str, choices: Collection[str], default: str | None = None) -> str:
        """Return one of a closed list of words."""
        value = self.text(key, default)
        if value not in choices:
            listed = ", ".join(choices)
            problem = f"{value!r} is none of {listed}{did_you_mean(value, choices)}"
            raise self.error(key, problem)
        return value

    def ms(self, key: str, default: float | None = None, *, least_s: float = 0) -> int:
        """Return seconds (a number of at least `least_s`, at most ten years), as milliseconds."""
        value = self._needed(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(key, "must be a number of seconds")
        if not least_s <= value <= _SECONDS_MAX:  # refuses nan and inf too
            raise self.error(key, f"must be at least {least_s:g} and at most ten years")
        return round(value * 1000)

    def number(
        self,
        key: str,
        least: float,
        most: float,
        default: float | None = None,
        *,
        whole: bool = False,
    ) -> float:
        """Return a number within bounds."""
        value = self._needed(key, default)
        kinds: Any = int if whole else int | float
        if not isinstance(value, kinds) or isinstance(value, bool) or not least <= value <= most:
            kind = "whole number" if whole else "number"
            raise self.error(key, f"must be a {kind} from {least:g} to {most:g}")
        return float(value)

    def statuses(self, key: str, default: tuple[int, ...]) -> frozenset[int]:
        """Return a list of HTTP statuses."""
        value = self._values.get(key)
        if value is None:
            return frozenset(default)
        if not isinstance(value, list) or not value:
            raise self.error(key, "must be a list of HTTP statuses, such as [200]")
        for item in value:
            if type(item) is not int or item not in _FINAL_STATUSES:
                raise self.error(key, f"{item!r} is no final HTTP status (200 to 599)")
        return frozenset(value)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; an absent one is empty."""
        value = self._values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(w, str) and w for w in value):
            raise self.error(key, "must be a list of texts that are not empty")
        return tuple(value)

    def pointer(self, key: str) -> tuple[str, ...]:
        """Return a JSON Pointer (RFC 6901) that is needed, as its unescaped tokens."""
        text = self.text(key)
        if not text.startswith("/") or re.search(r"~(?![01])", text):
            raise self.error(key, f"{text!r} is no JSON Pointer (RFC 6901), such as /status")
        return tuple(t.replace("~1", "/").replace("~0", "~") for t in text[1:].split("/"))

    def optional_pointer(self, key: str) -> tuple[str, ...] | None:
        """Return a JSON Pointer that may be absent."""
        return self.pointer(key) if key in self._values else None

    def table(self, key: str) -> "Table":
        """Return a table within this one; an absent one is empty, its needed keys are missing."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.error(key, f"must be a table, [{key}]")
        path = f"{self._path}.{key}" if self._path else key
        return Table(value or {}, self._where, self._lines, self._known, path)

    def all_texts(self) -> tuple[tuple[str, str], ...]:
        """Return every key and value; all values are texts."""
        return tuple((key, self.text(key)) for key in self._values)

    def has(self, key: str) -> bool:
        """Whether `key` is there."""
        return key in self._values

    def _needed(self, key: str, default: Any) -> Any:
        value = self._values.get(key, default)
        if value is None:
            raise self.error(key, "is missing")
        return value
