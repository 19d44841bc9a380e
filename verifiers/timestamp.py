"""When a request says that it was signed, and whether that is near enough to now.

The signature covers the text, so there must be one text for one instant where the notation allows
it: plain ASCII digits without sign, space, underscore or leading zero; RFC 3339 to the letter.
The text itself is what is signed, never a normalised one.
"""

import calendar
import re
from dataclasses import dataclass
from enum import StrEnum

from verifiers.locate import Locator
from verifiers.reason import Reason

_DIGITS_MAX = 12


class Unit(StrEnum):
    """How the instant is written."""

    SECONDS = "s"
    MILLISECONDS = "ms"
    RFC3339 = "rfc3339"  # 2026-05-28T20:26:40.123456789Z, or with an offset
    ISO8601 = "iso8601"  # the same; without an offset it is UTC
    HTTP_DATE = "http-date"  # Thu, 28 May 2026 20:26:40 GMT


@dataclass(frozen=True, slots=True)
class TimestampRule:
    """Where the timestamp stands and how far from now it may be.

    `past_s` and `future_s` are inclusive: an age of exactly `past_s` is accepted. `judged` is
    false where the provider's own libraries do not look at the age and old requests are genuine.
    `retry_restamps` says whether the provider signs a new timestamp for each retry.
    """

    places: tuple[Locator, ...]
    unit: Unit
    past_s: int
    future_s: int
    retry_restamps: bool
    judged: bool = True

    def parse(self, text: bytes) -> int | None:
        """Return unix seconds, or None unless `text` is the canonical form of an instant."""
        if self.unit is Unit.SECONDS:
            return _number(text, _DIGITS_MAX)
        if self.unit is Unit.MILLISECONDS:
            number = _number(text, _DIGITS_MAX + 3)
            return None if number is None else number // 1000
        if self.unit is Unit.HTTP_DATE:
            return _http_date(text)
        return _rfc3339(text, naive=self.unit is Unit.ISO8601)

    def judge(self, at: int, now: int) -> Reason | None:
        """Return why a request stamped `at` is refused at `now` (unix seconds), or None."""
        if not self.judged:
            return None
        if now - at > self.past_s:
            return Reason.TIMESTAMP_TOO_OLD
        if at - now > self.future_s:
            return Reason.TIMESTAMP_IN_FUTURE
        return None

    def write(self, now: int) -> bytes:
        """Return the text for the instant `now` (unix seconds)."""
        if self.unit is Unit.SECONDS:
            return b"%d" % now
        if self.unit is Unit.MILLISECONDS:
            return b"%d" % (now * 1000)
        if self.unit is Unit.HTTP_DATE:
            return _http_text(now)
        return b"%04d-%02d-%02dT%02d:%02d:%02dZ" % _fields(now)


def _number(text: bytes, digits_max: int) -> int | None:
    if not text.isdigit() or len(text) > digits_max:  # on bytes: ASCII digits only
        return None
    if text[:1] == b"0" and text != b"0":
        return None
    return int(text)


_RFC3339 = re.compile(
    rb"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(?:(Z)|([+-])(\d\d):(\d\d))?"
)


def _rfc3339(text: bytes, *, naive: bool) -> int | None:
    match = _RFC3339.fullmatch(text)
    if match is None or not (naive or match[7] or match[8]):
        return None
    seconds = _seconds([int(part) for part in match.groups()[:6]])
    if seconds is None or not match[8]:
        return seconds
    hours, minutes = int(match[9]), int(match[10])
    if hours > 23 or minutes > 59:  # noqa: PLR2004
        return None
    offset = hours * 3600 + minutes * 60
    return seconds - offset if match[8] == b"+" else seconds + offset


_DAYS = (b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun")
_MONTHS = (
    *(b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun"),
    *(b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"),
)
_HTTP_DATE = re.compile(rb"[A-Z][a-z]{2}, (\d\d) ([A-Z][a-z]{2}) (\d{4}) (\d\d):(\d\d):(\d\d) GMT")


def _http_date(text: bytes) -> int | None:
    """Return the instant of an IMF-fixdate (RFC 9110, section 5.6.7), the one form that is sent."""
    match = _HTTP_DATE.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        return None
    month = _MONTHS.index(match[2]) + 1
    seconds = _seconds([int(match[3]), month, *(int(match[part]) for part in (1, 4, 5, 6))])
    return seconds if seconds is not None and _http_text(seconds) == text else None


def _http_text(now: int) -> bytes:
    year, month, day, hour, minute, second = _fields(now)
    names = (_DAYS[calendar.weekday(year, month, day)], day, _MONTHS[month - 1], year)
    return b"%b, %02d %b %04d %02d:%02d:%02d GMT" % (*names, hour, minute, second)


def _seconds(fields: list[int]) -> int | None:
    """Return unix seconds of year, month, day, hour, minute, second; None for no such instant."""
    year, month, day, hour, minute, second = fields
    if not (year > 0 and 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):  # noqa: PLR2004
        return None
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004
        return None
    return calendar.timegm((year, month, day, hour, minute, second))


def _fields(now: int) -> tuple[int, int, int, int, int, int]:
    """Return year, month, day, hour, minute, second of unix seconds (proleptic, UTC)."""
    days, rest = divmod(now, 86_400)
    # Years that begin in March, so that the leap day is the last one; eras of 400 years.
    era, day_of_era = divmod(days + 719_468, 146_097)
    leap_days = day_of_era // 1460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leap_days) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9  # noqa: PLR2004
    year = year_of_era + era * 400 + (month <= 2)  # noqa: PLR2004
    return year, month, day, rest // 3600, rest // 60 % 60, rest % 60
