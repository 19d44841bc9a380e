"""When a request says that it was signed, and whether that is near enough to now.

Accepted are plain ASCII digits without sign, space, underscore or leading zero: the signature
covers the text, so there must be one text for one instant.
"""

from dataclasses import dataclass
from enum import StrEnum

from verifiers.locate import Locator
from verifiers.verdict import Reason

_DIGITS_MAX = 12


class Unit(StrEnum):
    """What the number counts."""

    SECONDS = "s"
    MILLISECONDS = "ms"


@dataclass(frozen=True, slots=True)
class TimestampRule:
    """Where the timestamp stands and how far from now it may be.

    `past_s` and `future_s` are inclusive: an age of exactly `past_s` is accepted.
    `retry_restamps` says whether the provider signs a new timestamp for each retry.
    """

    places: tuple[Locator, ...]
    unit: Unit
    past_s: int
    future_s: int
    retry_restamps: bool

    def parse(self, text: bytes) -> int | None:
        """Return unix seconds, or None unless `text` is the canonical form of a number."""
        digits_max = _DIGITS_MAX if self.unit is Unit.SECONDS else _DIGITS_MAX + 3
        if not text.isdigit() or len(text) > digits_max:  # on bytes: ASCII digits only
            return None
        if text[:1] == b"0" and text != b"0":
            return None
        return int(text) if self.unit is Unit.SECONDS else int(text) // 1000

    def judge(self, at: int, now: int) -> Reason | None:
        """Return why a request stamped `at` is refused at `now` (unix seconds), or None."""
        if now - at > self.past_s:
            return Reason.TIMESTAMP_TOO_OLD
        if at - now > self.future_s:
            return Reason.TIMESTAMP_IN_FUTURE
        return None

    def write(self, now: int) -> bytes:
        """Return the text for the instant `now` (unix seconds)."""
        return b"%d" % (now if self.unit is Unit.SECONDS else now * 1000)
