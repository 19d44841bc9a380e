"""Reading a TOML table strictly, with messages that an operator can act on.

Each value is taken once, by name and kind; what is left over is an unknown key. A mistake names the
file, the line where it is known, the key, what is wrong, and the nearest right word. The first
mistake ends the reading.
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
    """One table of the file: `take_*` removes and checks a key, `close` refuses the rest."""

    def __init__(
        self, values: Mapping[str, Any], where: str, lines: Mapping[str, int], path: str = ""
    ) -> None:
        self._values = dict(values)
        self._where = where
        self._lines = lines
        self._path = path
        self._known: list[str] = []

    def error(self, key: str, problem: str) -> ProfileError:
        """Make the error for `key` of this table."""
        full = f"{self._path}.{key}" if self._path and key else self._path or key
        line = self._lines.get(full, self._lines.get(self._path))
        return ProfileError(self._where, full, problem, line)

    def take(self, key: str) -> Any:
        """Take a value of any kind; `None` when the key is absent (TOML has no null)."""
        self._known.append(key)
        return self._values.pop(key, None)

    def take_text(self, key: str, default: str | None = None) -> str:
        """Take a text that is not empty; required without a default."""
        value = self.take(key)
        if value is None:
            value = self._needed(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(key, "must be a text that is not empty")
        return value

    def take_optional_text(self, key: str) -> str | None:
        """Take a text that may be absent."""
        return self.take_text(key) if key in self._values else self.take(key)

    def take_choice(self, key: str, choices: Collection[str], default: str | None = None) -> str:
        """Take one of a closed list of words."""
        value = self.take_text(key, default)
        if value not in choices:
            listed = ", ".join(choices)
            problem = f"{value!r} is none of {listed}{did_you_mean(value, choices)}"
            raise self.error(key, problem)
        return value

    def take_ms(self, key: str, default: float | None = None, *, least_s: float = 0) -> int:
        """Take seconds (a number of at least `least_s`, at most ten years), as milliseconds."""
        value = self._needed(key, default) if key not in self._values else self.take(key)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.error(key, "must be a number of seconds")
        if not least_s <= value <= _SECONDS_MAX:  # refuses nan and inf too
            raise self.error(key, f"must be at least {least_s:g} and at most ten years")
        return round(value * 1000)

    def take_statuses(self, key: str, default: tuple[int, ...]) -> frozenset[int]:
        """Take a list of HTTP statuses."""
        value = self.take(key)
        if value is None:
            return frozenset(default)
        if not isinstance(value, list) or not value:
            raise self.error(key, "must be a list of HTTP statuses, such as [200]")
        for item in value:
            if type(item) is not int or item not in _FINAL_STATUSES:
                raise self.error(key, f"{item!r} is no final HTTP status (200 to 599)")
        return frozenset(value)

    def take_words(self, key: str) -> tuple[str, ...]:
        """Take a list of texts; an absent one is empty."""
        value = self.take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(w, str) and w for w in value):
            raise self.error(key, "must be a list of texts that are not empty")
        return tuple(value)

    def take_pointer(self, key: str) -> tuple[str, ...]:
        """Take a JSON Pointer (RFC 6901) that is needed, as its unescaped tokens."""
        text = self.take_text(key)
        if not text.startswith("/") or re.search(r"~(?![01])", text):
            raise self.error(key, f"{text!r} is no JSON Pointer (RFC 6901), such as /status")
        return tuple(t.replace("~1", "/").replace("~0", "~") for t in text[1:].split("/"))

    def take_optional_pointer(self, key: str) -> tuple[str, ...] | None:
        """Take a JSON Pointer that may be absent."""
        return self.take_pointer(key) if key in self._values else self.take(key)

    def take_table(self, key: str) -> "Table":
        """Take a table within this one; an absent one is empty, so its required keys are missed."""
        value = self.take(key)
        if value is not None and not isinstance(value, dict):
            raise self.error(key, f"must be a table, [{key}]")
        path = f"{self._path}.{key}" if self._path else key
        return Table(value or {}, self._where, self._lines, path)

    def take_all_texts(self) -> tuple[tuple[str, str], ...]:
        """Take every key that is left; all values are texts."""
        return tuple((key, self.take_text(key)) for key in tuple(self._values))

    def has(self, key: str) -> bool:
        """Whether `key` is there and not yet taken."""
        return key in self._values

    def close(self) -> None:
        """Refuse what nobody took."""
        for key in self._values:
            raise self.error(key, f"unknown key{did_you_mean(key, self._known)}")

    def _needed(self, key: str, default: Any) -> Any:
        self._known.append(key)
        if default is None:
            # A misspelt key is the likelier mistake than a forgotten one: say that first.
            for other in self._values:
                if difflib.get_close_matches(other, [key], n=1, cutoff=0.75):
                    raise self.error(other, f"unknown key; did you mean {key!r}?")
            raise self.error(key, "is missing")
        return default
