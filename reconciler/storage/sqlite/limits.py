"""How often providers may be asked, one row a provider."""

from functools import partial

from reconciler.domain.pace import Pace, Taken
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.writer import Executor

_TAKEN = "SELECT full_at_us, turn_us, paused_until_us FROM provider_limit WHERE name = ?"
_PUT = "INSERT OR REPLACE INTO provider_limit VALUES (?, ?, ?, ?)"


def take(ledger: Ledger, name: str, pace: Pace | None, now: int) -> int:
    """Take one call, or return how long to wait (ms); without a pace nothing is written."""
    taken, wait_us = _taken(ledger, name).take(pace, now * 1000)
    if pace is not None:
        _put(ledger, name, taken)
    return -(-wait_us // 1000)


def pause(ledger: Ledger, name: str, wait_ms: int, now: int) -> None:
    """Let nobody ask for a while."""
    _put(ledger, name, _taken(ledger, name).pause(wait_ms, now * 1000))


def _taken(ledger: Ledger, name: str) -> Taken:
    return Taken(*(ledger.one(_TAKEN, (name,)) or ()))


def _put(ledger: Ledger, name: str, taken: Taken) -> None:
    ledger.execute(_PUT, (name, taken.full_at_us, taken.turn_us, taken.paused_until_us))


class Limits:
    """`contract.Limits` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def take(self, name: str, pace: Pace | None, now: int) -> int:
        """See the contract."""
        step = partial(take, name=name, pace=pace, now=now)
        if pace is None:
            return await self._executor.read(step)
        return await self._executor.write(step)

    async def pause(self, name: str, wait_ms: int, now: int) -> None:
        """See the contract."""
        await self._executor.write(partial(pause, name=name, wait_ms=wait_ms, now=now))
