"""What an effect may use: whatever reaches outside or is not the same twice, as parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from reconciler.domain.ids import IdMaker
from reconciler.effects.turns import Turns
from reconciler.providers.answer import Answer
from reconciler.providers.provider import Provider
from reconciler.providers.request import Outbound


class Client(Protocol):
    """Makes a guarded, bounded call."""

    async def send(self, request: Outbound) -> Answer:
        """Return the answer; `ProviderError` if there is none."""


@dataclass(frozen=True, slots=True)
class Means:
    """The outside of the effects. `clock` is milliseconds, `jitter` a number in [0, 1)."""

    providers: Mapping[str, Provider]
    client: Client
    turns: Turns
    clock: Callable[[], int]
    new_id: IdMaker
    jitter: Callable[[], float]
    #: Who acts, as the history names it.
    actor: str
