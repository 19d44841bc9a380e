"""Due work and the right to do it, on one narrow row an operation.

A lease is ended by another's claim, not by time: until somebody took the work over, its holder may
still renew and commit. Fence and lease id are compared in the same transaction that writes.
"""

from collections.abc import Sequence
from functools import partial

from reconciler.domain.decide import Decision
from reconciler.domain.lease import Claimed, Lease
from reconciler.storage.contract import Committed, LeaseLost, Stale
from reconciler.storage.sqlite import journal, naming, operations
from reconciler.storage.sqlite.bell import Bell
from reconciler.storage.sqlite.connection import Ledger, text
from reconciler.storage.sqlite.writer import Executor

# Two narrow indexes: what nobody holds, and the few rows whose lease has ended.
_CLAIMABLE = """
    SELECT operation_id FROM (
        SELECT * FROM (
            SELECT operation_id, due_at FROM work
            WHERE until_at IS NULL AND due_at <= ?1 ORDER BY due_at LIMIT ?2
        ) UNION ALL SELECT * FROM (
            SELECT operation_id, due_at FROM work
            WHERE until_at IS NOT NULL AND until_at <= ?1 AND due_at <= ?1
            ORDER BY due_at LIMIT ?2
        )
    ) ORDER BY due_at, operation_id LIMIT ?2
"""
_CLAIM = """
    UPDATE work SET fence = fence + 1, lease_id = ?2, worker = ?3, until_at = ?4
    WHERE operation_id = ?1 RETURNING fence, hints, prompted_by
"""
_RENEW = "UPDATE work SET until_at = ?4 WHERE operation_id = ?1 AND lease_id = ?2 AND fence = ?3"
# A hint since the claim is not yet answered: its due time stays if it is sooner.
_RELEASE = """
    UPDATE work SET lease_id = NULL, worker = NULL, until_at = NULL,
        due_at = iif(hints > ?5, min(?4, max(?6, coalesce(not_before_at, ?6))), ?4)
    WHERE operation_id = ?1 AND lease_id = ?2 AND fence = ?3
"""
_HELD = """
    SELECT work.hints, operation.version
    FROM work JOIN operation ON operation.operation_id = work.operation_id
    WHERE work.operation_id = ? AND work.lease_id = ? AND work.fence = ?
"""
_END = """
    UPDATE work SET lease_id = NULL, worker = NULL, until_at = NULL,
        due_at = ?4, not_before_at = ?5, has_effect = ?6,
        prompted_by = iif(?7, prompted_by, 'schedule')
    WHERE operation_id = ?1 AND lease_id = ?2 AND fence = ?3
"""
_NEXT = """
    SELECT min(at) FROM (
        SELECT min(due_at) AS at FROM work WHERE until_at IS NULL AND due_at IS NOT NULL
        UNION ALL SELECT min(until_at) FROM work WHERE until_at IS NOT NULL
    )
"""


# ---------------------------------------------------------------- steps


def claim(
    ledger: Ledger, worker: str, lease_ids: Sequence[str], ttl_ms: int, now: int
) -> list[Claimed]:
    """Take the most overdue work that nobody holds."""
    due = ledger.run(_CLAIMABLE, (now, len(lease_ids)))
    return [
        _take(ledger, text(operation_id), lease_id, worker, now + ttl_ms)
        for (operation_id,), lease_id in zip(due, lease_ids, strict=False)
    ]


def _take(ledger: Ledger, operation_id: str, lease_id: str, worker: str, until_at: int) -> Claimed:
    row = ledger.one(_CLAIM, (operation_id, lease_id, worker, until_at))
    operation = operations.get(ledger, operation_id)
    assert row is not None
    assert operation is not None
    fence, hints, prompted_by = row
    return Claimed(
        Lease(operation_id, lease_id, fence, until_at, hints), operation, text(prompted_by)
    )


def renew(ledger: Ledger, lease: Lease, ttl_ms: int, now: int) -> Lease | LeaseLost:
    """Hold on longer, compared with fence and lease id."""
    until_at = now + ttl_ms
    ledger.execute(_RENEW, (lease.operation_id, lease.lease_id, lease.fence, until_at))
    if not ledger.changes():
        return LeaseLost()
    return Lease(lease.operation_id, lease.lease_id, lease.fence, until_at, lease.hints)


def release(ledger: Ledger, lease: Lease, due_at: int, now: int) -> None:
    """Give work back undone."""
    key = (lease.operation_id, lease.lease_id, lease.fence)
    ledger.execute(_RELEASE, (*key, due_at, lease.hints, now))
    ledger.work_changed = True


def commit(
    ledger: Ledger, lease: Lease, decision: Decision, now: int
) -> Committed | LeaseLost | Stale:
    """Write everything that was decided and end the lease, or nothing."""
    operation = decision.operation
    assert operation.operation_id == lease.operation_id
    held = ledger.one(_HELD, (lease.operation_id, lease.lease_id, lease.fence))
    if held is None:
        return LeaseLost()
    hints, version = held
    if version != decision.based_on:
        return Stale()
    operations.update(ledger, operation)
    naming.claim(ledger, operation)
    for line in decision.transitions:
        operations.write_line(ledger, operation.operation_id, line)
    if decision.read is not None:
        operations.write_read(ledger, operation.operation_id, decision.read)
    for entry in decision.entries():
        journal.append(ledger, entry, now)
    _end(ledger, lease, decision, hinted=hints > lease.hints)
    return Committed()


def _end(ledger: Ledger, lease: Lease, decision: Decision, *, hinted: bool) -> None:
    has_effect = decision.operation.rule.effect is not None
    due = [] if decision.due_at is None else [decision.due_at]
    if hinted and has_effect:
        due.append(decision.not_before_at)
    key = (lease.operation_id, lease.lease_id, lease.fence)
    schedule = (min(due, default=None), decision.not_before_at, has_effect)
    ledger.execute(_END, (*key, *schedule, hinted))
    ledger.work_changed = True


def _next_due_at(ledger: Ledger) -> int | None:
    row = ledger.one(_NEXT)
    assert row is not None
    at: int | None = row[0]
    return at


# ---------------------------------------------------------------- the role


class Work:
    """`contract.Work` on SQLite."""

    def __init__(self, executor: Executor, bell: Bell) -> None:
        self._executor, self._bell = executor, bell

    async def claim(
        self, worker: str, lease_ids: Sequence[str], ttl_ms: int, now: int
    ) -> list[Claimed]:
        """See the contract."""
        step = partial(claim, worker=worker, lease_ids=lease_ids, ttl_ms=ttl_ms, now=now)
        return await self._executor.write(step)

    async def renew(self, lease: Lease, ttl_ms: int, now: int) -> Lease | LeaseLost:
        """See the contract."""
        return await self._executor.write(partial(renew, lease=lease, ttl_ms=ttl_ms, now=now))

    async def release(self, lease: Lease, due_at: int, now: int) -> None:
        """See the contract."""
        await self._executor.write(partial(release, lease=lease, due_at=due_at, now=now))

    async def commit(
        self, lease: Lease, decision: Decision, now: int
    ) -> Committed | LeaseLost | Stale:
        """See the contract."""
        return await self._executor.write(partial(commit, lease=lease, decision=decision, now=now))

    async def wait(self, timeout_s: float) -> None:
        """See the contract."""
        await self._bell.wait(timeout_s)

    async def next_due_at(self, now: int) -> int | None:  # noqa: ARG002  the answer is an instant
        """See the contract."""
        return await self._executor.read(_next_due_at)
