"""The record of each operation, and the work on it."""

from collections.abc import Sequence
from typing import Protocol

from reconciler.domain.decide import Decision, Read
from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.operation import Operation, Transition
from reconciler.storage.contract.outcome import (
    AlreadyRegistered,
    Committed,
    LeaseLost,
    Registered,
    Stale,
)
from reconciler.storage.contract.question import OperationQuery


class Operations(Protocol):
    """The record of each operation."""

    async def register(
        self, operation: Operation, cause: Transition, now: int
    ) -> Registered | AlreadyRegistered:
        """Store an operation that runs already, with its first line of history; a read is due.

        What is due and when is the store's to say: `next_at` as given is not kept, and a state that
        waits for a person or is an end has nothing due. Events parked for its job or reference are
        attached in the same step. Unique are the operation's id and, within scope and profile, the
        remote job id and the client reference.
        """

    async def get(self, operation_id: str) -> Operation | None:
        """Return the operation."""

    async def page(self, query: OperationQuery) -> list[Operation]:
        """Return a page, newest first."""

    async def history(self, operation_id: str) -> list[Transition]:
        """Return the lines in the order they were written."""

    async def observations(self, operation_id: str) -> list[Read]:
        """Return every status read in the order they were written."""


class Work(Protocol):
    """Due work and the right to do it."""

    async def claim(
        self, worker: str, lease_ids: Sequence[str], ttl_ms: int, now: int
    ) -> list[Claimed]:
        """Take the most overdue work that nobody holds, at most one operation a lease id.

        Each claim raises the operation's fence. Work whose lease has ended counts as held by
        nobody.
        """

    async def renew(self, lease: Lease, ttl_ms: int, now: int) -> Lease | LeaseLost:
        """Hold on longer, compared by fence and lease id, not by time.

        What loses a lease is another's claim: one that has ended and that nobody took can still be
        renewed, and its decision still be committed.
        """

    async def release(self, lease: Lease, due_at: int, now: int) -> None:
        """Give work back undone, due at `due_at`; nothing happens if the lease was lost.

        If a hint arrived since the claim, the work is due as that made it, if that is sooner.
        """

    async def commit(
        self, lease: Lease, decision: Decision, now: int
    ) -> Committed | LeaseLost | Stale:
        """Write state, history, observation, journal, next due time, and end the lease; or nothing.

        If a hint arrived since the claim, and the new state has an effect, a read is due at
        `decision.not_before_at`, or when the decision says if that is sooner. A job id that the
        decision brings attaches its parked events, unless another operation owns it.
        """

    async def wait(self, timeout_s: float) -> None:
        """Return when new work may have become due, or after `timeout_s`; never an error.

        News that came while nobody waited is kept for the next wait.
        """

    async def next_due_at(self, now: int) -> int | None:
        """Return when work is due next or a lease on it ends; `None` if there is none."""
