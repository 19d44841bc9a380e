"""What arrives, and reading it."""

from collections.abc import Sequence
from typing import Protocol

from reconciler.domain.event import (
    ConflictEvidence,
    Event,
    MovedBody,
    NewEvent,
    Refusal,
    RefusalCount,
)
from reconciler.storage.contract.outcome import Conflict, Duplicate, Recorded
from reconciler.storage.contract.question import EventQuery, RefusalQuery


class Inbox(Protocol):
    """The gateway's side: what arrived."""

    async def record(
        self, event: NewEvent, conflict_id: str, now: int
    ) -> Recorded | Duplicate | Conflict:
        """Store the event, claim its key, write the journal and make the read due, in one step.

        A known key with the same content counts as seen once more (that write, too, is durable)
        and, where no provider's id stands behind the key, makes a read due again; with other
        content it is kept as evidence under `conflict_id` (once, however often the step is done)
        and makes a read due. An event finds its operation by profile and remote job id, else client
        reference, inside its scope; without one it is parked. A read that is due already stays one
        read; none is due before the operation's `not_before_at`, and none in a state without an
        effect.
        """

    async def refuse(self, refusals: Sequence[Refusal], now: int) -> None:
        """Count each refusal by scope, source, reason and minute; keep the first few whole."""


class Events(Protocol):
    """Reading what arrived."""

    async def get(self, event_id: str) -> Event | None:
        """Return the event."""

    async def body(self, event_id: str) -> bytes | MovedBody | None:
        """Return the raw body, or which of the `Blobs` holds it."""

    async def page(self, query: EventQuery) -> list[Event]:
        """Return a page, newest first."""

    async def conflicts(self, event_id: str) -> list[ConflictEvidence]:
        """Return the conflicts with the event, oldest first."""

    async def refusals(self, query: RefusalQuery) -> list[Refusal]:
        """Return a page of kept refusals, newest first."""

    async def refusal_counts(self, since_at: int) -> list[RefusalCount]:
        """Return the counts of all minutes from `since_at` on."""
