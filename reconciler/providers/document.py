"""Reading an answer's JSON strictly: one meaning or none.

`json.loads` takes the last of two equal keys, accepts NaN and guesses UTF-16; two readers of such a
body may disagree, so it counts as unreadable. Every failure is an `UnreadableError` with a slug;
nothing else is raised, whatever the bytes are.
"""

import json
import math
from datetime import UTC, datetime, timedelta
from re import compile as pattern
from typing import Any

from reconciler.providers.job_api import Pointer, TimestampForm

_RFC3339 = pattern(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999  # the end of the year 9999
_INDEX = pattern(r"0|[1-9][0-9]{0,8}")


class UnreadableError(Exception):
    """The body is no document that has one meaning; `slug` says why."""

    def __init__(self, slug: str) -> None:
        super().__init__(slug)
        self.slug = slug


def parse(body: bytes) -> Any:
    """Parse UTF-8 JSON without repeated keys, NaN, infinity or byte order mark."""
    if not body.strip(b" \t\r\n"):
        raise UnreadableError("empty_body")
    if body.lstrip()[:1] == b"<":
        raise UnreadableError("html")
    try:
        text = body.decode("utf-8")
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite
        )
    except (ValueError, RecursionError):
        # ValueError covers bad UTF-8, bad JSON and integers of thousands of digits.
        raise UnreadableError("not_json") from None


def at(document: Any, pointer: Pointer) -> Any:
    """Return the value at a JSON Pointer (RFC 6901); `None` where there is none."""
    value = document
    for token in pointer:
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and _INDEX.fullmatch(token) and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value


def instant(value: Any, form: TimestampForm) -> int | None:
    """Return a provider's timestamp as milliseconds since the epoch; `None` if it is none."""
    if form == "rfc3339":
        return _rfc3339(value) if isinstance(value, str) else None
    if type(value) is not int:
        return None
    at_ms = value * 1000 if form == "unix_s" else value
    return at_ms if 0 <= at_ms <= _LAST_MS else None


def _rfc3339(text: str) -> int | None:
    if len(text) > len("9999-12-31T23:59:59.999999999+00:00") or not _RFC3339.fullmatch(text):
        return None
    try:
        at_ms = (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None
    return at_ms if 0 <= at_ms <= _LAST_MS else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise UnreadableError("duplicate_key")
    return made


def _refuse(_word: str) -> Any:
    raise UnreadableError("not_json")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnreadableError("not_json")
    return number
