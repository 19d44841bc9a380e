"""When to try again: what `Retry-After` asks for, and how long we wait when nobody says.

The functions are pure and total. A header is another party's bytes, so everything that is not
exactly a form of RFC 9110, section 10.2.3, is no instruction at all (`None`), and what is one is
clamped: a provider can neither stop us for a year nor make us hammer it. Nothing here sleeps or
reads a clock.
"""

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Longest wait that a provider may ask for. Longer requests are cut to it, never refused.
RETRY_AFTER_CAP_MS = 86_400_000

# The longest lawful value is an RFC 850 date with "Wednesday": 33 characters. Longer is junk.
_VALUE_BYTES_MAX = 40
_SECONDS = re.compile(r"[0-9]{1,19}")

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_DAY_NAME = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_LONG_DAY_NAME = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_TIME = "(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
# RFC 9110, section 5.6.7: the fixed form, and the two obsolete ones that a recipient must still
# read.
_DATES = (
    re.compile(f"{_DAY_NAME}, (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT"),
    re.compile(f"{_LONG_DAY_NAME}, (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT"),
    re.compile(f"{_DAY_NAME} {_MONTH} (?P<day>[0-9 ][0-9]) {_TIME} (?P<year>[0-9]{{4}})"),
)


@dataclass(frozen=True, slots=True)
class Poll:
    """When to read a status if no webhook hurries us and the provider asks for nothing else."""

    #: Between two reads, whatever hints arrive.
    min_interval_ms: int
    #: The wait after a read that showed a change; it doubles with each quiet one, up to the cap.
    base_ms: int
    cap_ms: int


def retry_after_ms(
    values: Sequence[bytes | str], now: int, *, cap_ms: int = RETRY_AFTER_CAP_MS
) -> int | None:
    """Milliseconds from `now` (ms since the epoch) that the header asks us to wait.

    `values` are all `Retry-After` headers of one answer. None, unlike ones and unlawful ones give
    `None`; dates in the past give 0; the result is within [0, cap_ms]. Never raises.
    """
    distinct = {_text(value) for value in values}
    if len(distinct) != 1:
        return None
    text = distinct.pop()
    if text is None:
        return None
    wait = int(text) * 1000 if _SECONDS.fullmatch(text) else _until(text, now)
    return None if wait is None else max(0, min(wait, cap_ms))


def backoff_ms(attempt: int, *, base_ms: int, cap_ms: int, jitter: float) -> int:
    """Milliseconds to wait after failed attempt number `attempt`, counted from 0.

    Full jitter: anywhere between half of `base_ms` and the exponential ceiling, so that many
    operations that failed together do not come back together. `jitter` is the caller's random
    number in [0, 1). The result is within [1, cap_ms] (for a `cap_ms` of at least 1): it never
    hot-loops.
    """
    base = max(1, base_ms)
    cap = max(1, cap_ms)
    # 2**40 ms are 34 years: beyond any cap, and it keeps a huge attempt number from making a huge
    # integer.
    ceiling = min(cap, base << min(max(0, attempt), 40))
    floor = min(ceiling, max(1, base // 2))
    return floor + int((ceiling - floor) * jitter)


def _text(value: bytes | str) -> str | None:
    """Strip optional whitespace from a header value; `None` unless it is short ASCII."""
    if len(value) > _VALUE_BYTES_MAX:
        return None
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return text.strip(" \t") if text.isascii() else None


def _until(text: str, now: int) -> int | None:
    """Milliseconds from `now` to an HTTP-date; `None` when `text` is none."""
    for form in _DATES:
        match = form.fullmatch(text)
        if match is not None:
            at = _instant(match.groupdict(), now)
            return None if at is None else at - now
    return None


def _instant(parts: dict[str, str], now: int) -> int | None:
    """Turn a date into milliseconds since the epoch; `None` for one that no calendar has."""
    year, day = int(parts["year"]), int(parts["day"])
    if len(parts["year"]) == 2:  # noqa: PLR2004 - the RFC 850 form has a year of two digits
        year = _century(year, now)
    month = _MONTHS.index(parts["month"]) + 1
    hour, minute, second = int(parts["hour"]), int(parts["minute"]), int(parts["second"])
    # 60 is a leap second (RFC 9110 takes RFC 5322's time of day); `timegm` carries it over.
    if not (year >= 1 and hour < 24 and minute < 60 and second <= 60):  # noqa: PLR2004
        return None
    if not 1 <= day <= calendar.monthrange(year, month)[1]:
        return None
    return calendar.timegm((year, month, day, hour, minute, second)) * 1000


def _century(year: int, now: int) -> int:
    """Complete a two-digit year: what seems over 50 years ahead is in the past (RFC 9110)."""
    this_year = 1970 + now // 31_556_952_000
    latest = this_year + 50
    return latest - (latest - year) % 100
