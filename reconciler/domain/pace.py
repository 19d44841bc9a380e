"""How often a provider may be asked: a pace, and what has been taken of it.

The rule is the generic cell rate algorithm (ITU-T I.371, annex A): one instant, `full_at_us`, says
when all that was taken is paid back. Pure; instants here are microseconds, so that a hundred calls
a second are whole numbers. The Redis engine has the same rule in `limit_take.lua`.
"""

from dataclasses import dataclass, replace
from typing import Self

#: What a pace may be: once in twenty minutes to ten thousand a second.
PER_S_MIN, PER_S_MAX, BURST_MAX = 0.001, 10_000, 10_000
#: One answer stops nobody for longer, whatever it asked for: then one call finds out.
PAUSE_MS_MAX = 900_000
#: Those who must wait are told different instants, up to so far apart.
SPREAD_US = 60_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """One call an interval, and so many at once after a rest."""

    interval_us: int
    burst: int

    @classmethod
    def of(cls, per_s: float, burst: int) -> Self:
        """Return the pace of so many calls a second."""
        return cls(round(1_000_000 / per_s), burst)


@dataclass(frozen=True, slots=True)
class Taken:
    """What has been taken so far; all zero for what was never asked."""

    full_at_us: int = 0
    #: Whoever must wait next is told to come then.
    turn_us: int = 0
    paused_until_us: int = 0

    def take(self, pace: Pace | None, now_us: int) -> tuple["Taken", int]:
        """Return what stands afterwards and how long to wait (us); 0: the call may be made.

        Without a pace only a pause counts. Instants too far ahead, which a clock that was put back
        or another pace left behind, are cut to what they could be now.
        """
        paused_until_us = min(self.paused_until_us, now_us + PAUSE_MS_MAX * 1000)
        if pace is None:
            return self, max(0, paused_until_us - now_us)
        whole = pace.burst * pace.interval_us
        full_at_us = min(max(self.full_at_us, now_us), now_us + whole)
        soonest_us = max(full_at_us - whole + pace.interval_us, paused_until_us)
        if soonest_us <= now_us:
            return replace(self, full_at_us=full_at_us + pace.interval_us), 0
        turn_us = self.turn_us
        if not soonest_us <= turn_us <= soonest_us + SPREAD_US:
            turn_us = soonest_us
        return replace(self, turn_us=turn_us + pace.interval_us), turn_us - now_us

    def pause(self, wait_ms: int, now_us: int) -> "Taken":
        """Return what stands when nobody may ask for a while; a longer pause stays."""
        until_us = now_us + min(wait_ms, PAUSE_MS_MAX) * 1000
        return replace(self, paused_until_us=max(self.paused_until_us, until_us))
