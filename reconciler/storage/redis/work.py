"""Due work and the right to do it.

A lease is ended by another's claim, not by time: until somebody took the work over, its holder may
still renew and commit. Fence and lease id stand with the operation's record and are compared in the
script that writes, so no server that takes over can count back.
"""

from collections.abc import Mapping, Sequence

from reconciler.domain.decide import Decision
from reconciler.domain.lease import Claimed, Lease
from reconciler.storage.contract import Committed, LeaseLost, Stale
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.news import News
from reconciler.storage.redis.operations import names, pack_line, pack_read, shown, stands
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import as_number, as_text, number
from reconciler.storage.redis.script import load

_CLAIM, _RENEW, _RELEASE = load("claim"), load("renew"), load("release")
_COMMIT, _NEXT_DUE = load("commit"), load("next_due")
_OUTCOMES: Mapping[bytes, Committed | LeaseLost | Stale] = {
    b"committed": Committed(),
    b"lost": LeaseLost(),
    b"stale": Stale(),
}


class Work:
    """`contract.Work` on Redis."""

    def __init__(self, reads: Pipeline, writes: Pipeline, news: News) -> None:
        self._reads, self._writes, self._news = reads, writes, news

    async def claim(
        self, worker: str, lease_ids: Sequence[str], ttl_ms: int, now: int
    ) -> list[Claimed]:
        """See the contract."""
        # Heard first: what comes due after this look is news for the next wait.
        await self._news.listening()
        leases = [lease_id.encode() for lease_id in lease_ids]
        taken = await self._writes.run(_CLAIM, now, ttl_ms, worker.encode(), *leases)
        return [_claimed(each) for each in taken]

    async def renew(self, lease: Lease, ttl_ms: int, now: int) -> Lease | LeaseLost:
        """See the contract."""
        until_at = await self._writes.run(_RENEW, now, *_key(lease), ttl_ms)
        if until_at is None:
            return LeaseLost()
        return Lease(lease.operation_id, lease.lease_id, lease.fence, int(until_at), lease.hints)

    async def release(self, lease: Lease, due_at: int, now: int) -> None:
        """See the contract."""
        await self._writes.run(_RELEASE, now, *_key(lease), lease.hints, due_at)

    async def commit(
        self, lease: Lease, decision: Decision, now: int
    ) -> Committed | LeaseLost | Stale:
        """See the contract."""
        operation = decision.operation
        assert operation.operation_id == lease.operation_id
        outcome = await self._writes.run(
            _COMMIT,
            *(now, *_key(lease), lease.hints, decision.based_on),
            *stands(operation),
            *(number(decision.due_at), decision.not_before_at),
            *names(operation),
            *(pack_read(decision.read), len(decision.transitions)),
            *map(pack_line, decision.transitions),
            *decision.entries(),
        )
        return _OUTCOMES[outcome]

    async def wait(self, timeout_s: float) -> None:
        """See the contract."""
        await self._news.wait(timeout_s)

    async def next_due_at(self, now: int) -> int | None:  # noqa: ARG002  the answer is an instant
        """See the contract."""
        return as_number(await self._reads.run(_NEXT_DUE))


def _key(lease: Lease) -> tuple[bytes | int, ...]:
    return (lease.operation_id.encode(), lease.lease_id.encode(), lease.fence)


def _claimed(stored: Reply) -> Claimed:
    operation_id, lease_id, fence, until_at, hints, prompted_by, operation = stored
    lease = Lease(as_text(operation_id), as_text(lease_id), fence, int(until_at), int(hints))
    return Claimed(lease, shown(operation), as_text(prompted_by))
