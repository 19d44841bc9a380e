"""When a provider may be asked: its pace and its pauses, which all nodes share."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.domain.decide import Decision
from reconciler.domain.observation import Meaning, Observation
from reconciler.providers.provider import Provider
from reconciler.storage.contract import Limits

#: Without a pace nothing spreads those who wait for a pause to end: each waits a bit longer, up to
#: this part of the wait.
_SPREAD = 0.25


@dataclass(frozen=True, slots=True)
class Later:
    """Nothing was done: the provider is not to be asked before `due_at`."""

    due_at: int


#: What an effect comes to.
Outcome = Decision | Later


@dataclass(frozen=True, slots=True)
class Turns:
    """Asks the ledger for a turn before a call, and tells it what the provider asked for."""

    limits: Limits
    #: What the ledger's steps are told of the time; 0 where its own clock counts.
    ledger_now: Callable[[], int]

    async def wait_ms(self, provider: Provider, jitter: float) -> int:
        """Take a turn: 0, or how long to wait before asking for one again."""
        pace = provider.profile.pace
        wait_ms = await self.limits.take(provider.name, pace, self.ledger_now())
        return wait_ms if pace else wait_ms + int(wait_ms * _SPREAD * jitter)

    async def note(self, provider: Provider, seen: Observation) -> None:
        """Pause a provider that said how long it wants to be left alone (429, 503)."""
        if seen.meaning is Meaning.THROTTLED and seen.not_before_at is not None:
            wait_ms = seen.not_before_at - seen.fetched_at
            if wait_ms > 0:
                await self.limits.pause(provider.name, wait_ms, self.ledger_now())
