"""How often providers may be asked, one record a provider.

Not a promise to anybody, so it does not pass the gate: a server that takes over with a little less
taken costs a few calls too many, once.
"""

from reconciler.domain.pace import PAUSE_MS_MAX, SPREAD_US, Pace
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.script import load

_TAKE, _PAUSE = load("limit_take"), load("limit_pause")


class Limits:
    """`contract.Limits` on Redis."""

    def __init__(self, ungated: Pipeline) -> None:
        self._ungated = ungated

    async def take(self, name: str, pace: Pace | None, now: int) -> int:
        """See the contract."""
        asked = (0, 0) if pace is None else (pace.interval_us, pace.burst)
        wait_ms: int = await self._ungated.run(
            _TAKE, now, name.encode(), *asked, PAUSE_MS_MAX, SPREAD_US
        )
        return wait_ms

    async def pause(self, name: str, wait_ms: int, now: int) -> None:
        """See the contract."""
        await self._ungated.run(_PAUSE, now, name.encode(), min(wait_ms, PAUSE_MS_MAX))
