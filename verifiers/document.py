"""The body as JSON, read with suspicion.

The signature proves who wrote these bytes, not that two readers understand them alike. So a body
gives a value only when there is one way to read it: UTF-8, no key twice in one object (exactly or
but for its case), no NaN, bounded size and depth. Numbers keep their text, so no digit is lost.
Reading never raises; a body that cannot be read has a state that says why.

It does not validate the payload and it does not follow references.
"""

from collections import Counter
from enum import StrEnum
from itertools import accumulate
from json import JSONDecoder
from re import DOTALL
from re import compile as compile_pattern
from typing import Any, NoReturn

# A parse holds the event loop. These two bound it to some tens of milliseconds: what costs is not
# the bytes but the containers, members and escapes, and they are counted before the parse.
BYTES_MAX = 4 * 1024 * 1024
PARTS_MAX = 100_000
# Far below the interpreter's recursion limit, so that the outcome is the same in every caller.
DEPTH_MAX = 100


class Readability(StrEnum):
    """Whether values may be taken from a body."""

    READABLE = "readable"
    AMBIGUOUS = "ambiguous"
    UNREADABLE = "unreadable"


class _AmbiguousError(ValueError):
    """A key stands twice."""


class Document:
    """A body that is parsed when the first value is asked for, and only then."""

    __slots__ = ("_body", "_root", "_state")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._state: Readability | None = None
        self._root: Any = None

    @property
    def state(self) -> Readability:
        """Whether values may be taken from this body."""
        if self._state is None:
            self._state, self._root = _read(self._body)
        return self._state

    def at(self, pointer: tuple[str, ...]) -> str | None:
        """Return the text of the string or number at an RFC 6901 pointer, else None.

        `pointer` holds the unescaped reference tokens. A number is given as it is written.
        """
        value = self.value(pointer)
        return value if isinstance(value, str) else None

    def texts(self) -> list[tuple[str, str]]:
        """Return the members of an object that are strings or numbers, as (name, text)."""
        root = self.value(())
        members = root.items() if isinstance(root, dict) else ()
        return [(name, value) for name, value in members if isinstance(value, str)]

    def value(self, pointer: tuple[str, ...]) -> Any:
        """Return what stands at `pointer`, numbers as texts; None where there is nothing."""
        if self.state is not Readability.READABLE:
            return None
        return value_at(self._root, pointer)

    def certain(self, pointer: tuple[str, ...]) -> Any:
        """Return what stands at `pointer` if all readers agree on that, whatever else is there.

        A body with a key that stands twice elsewhere still has one time at which it was signed.
        """
        if self.state is not Readability.AMBIGUOUS:
            return self.value(pointer)
        try:
            root = _ONE_WAY.decode(self._body.decode())
        except (ValueError, RecursionError):  # reading had stopped at the key, before the end
            return None
        return value_at(root, pointer)


def value_at(value: Any, pointer: tuple[str, ...]) -> Any:
    """Return what stands at `pointer` within `value`; None where there is nothing."""
    for token in pointer:
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and _is_index(token, len(value)):
            value = value[int(token)]
        else:
            return None
    return value


def _is_index(text: str, length: int) -> bool:
    plain = text.isascii() and text.isdigit() and len(text) < 10  # noqa: PLR2004  # int() stays cheap
    return plain and str(int(text)) == text and int(text) < length


def _read(body: bytes) -> tuple[Readability, Any]:
    if len(body) > BYTES_MAX or _parts(body) > PARTS_MAX or not _is_shallow(body):
        return Readability.UNREADABLE, None
    try:
        return Readability.READABLE, _DECODER.decode(body.decode())
    except _AmbiguousError:
        return Readability.AMBIGUOUS, None
    except (ValueError, RecursionError):  # not UTF-8, not JSON
        return Readability.UNREADABLE, None


def _parts(body: bytes) -> int:
    """Return at least how many containers, members and escapes a parser meets."""
    return sum(map(body.count, (b"{", b"[", b",", b"\\")))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _AmbiguousError
    names = "".join(found)
    if names.islower() and names.isascii():  # nothing to fold, so nothing to fall together
        return found
    # Readers that ignore case (Go's, for one) fold "Status" and even the long s into "status".
    if len({name.casefold() for name in found}) != len(found):
        raise _AmbiguousError
    return found


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = JSONDecoder(
    object_pairs_hook=_object, parse_int=str, parse_float=str, parse_constant=_constant
)


def _agreed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object whose names stand once, in whatever case."""
    names = [name.casefold() for name, _ in pairs]
    counts = Counter(names)
    return {name: value for (name, value), folded in zip(pairs, names, strict=True)
            if counts[folded] == 1}  # fmt: skip


_ONE_WAY = JSONDecoder(
    object_pairs_hook=_agreed, parse_int=str, parse_float=str, parse_constant=_constant
)

_ESCAPE = compile_pattern(rb"\\.", DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def _is_shallow(body: bytes) -> bool:
    """Whether no value lies deeper than DEPTH_MAX; exact for every body that is valid JSON."""
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX:
        return True
    if b"\\" in body:  # in valid JSON it stands in strings only
        body = _ESCAPE.sub(b"", body)
    outside = b"".join(body.split(b'"')[::2])
    brackets = outside.translate(None, _NOT_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) <= DEPTH_MAX
