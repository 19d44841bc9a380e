"""`Work.commit`: everything that a decision says, if the lease still holds, or nothing."""

import asyncio
from dataclasses import replace

import pytest

from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import State, Trigger
from reconciler.storage.contract import Committed, LeaseLost, Stale, Store
from tests.support.builders import (
    NOW,
    amended,
    first_line,
    new_event,
    operation,
    read_decision,
    trigger_decision,
)
from tests.support.working import TTL_MS, claim_one, register, written

pytestmark = pytest.mark.anyio


async def test_commit(store: Store) -> None:
    """A commit writes state, history, observation, journal and next due time, and ends the lease."""
    value = await register(store)
    claimed = await claim_one(store)
    decision = read_decision(claimed)

    assert await store.work.commit(claimed.lease, decision, NOW + 3) == Committed()

    assert decision.read is not None
    lines = [first_line(value), *decision.transitions]
    stored, history, observations, entries = await written(store, value.operation_id)
    assert decision.operation == stored
    assert lines == history
    assert [decision.read] == observations
    assert isinstance(entries, list)
    assert list(decision.entries()) == [entry.entry for entry in entries[1:]]
    assert decision.due_at is not None
    assert decision.due_at == await store.work.next_due_at(NOW)
    again = await claim_one(store, "b", decision.due_at)
    assert (again.prompted_by, again.lease.fence) == ("schedule", 2)


async def test_commit_without_a_read(store: Store) -> None:
    """Evidence that is no read is committed without an observation."""
    value = await register(store, state=State.RESULT_COLLECTING)
    claimed = await claim_one(store)
    decision = trigger_decision(claimed.operation, Trigger.NOTHING_TO_COLLECT)

    assert await store.work.commit(claimed.lease, decision, NOW) == Committed()

    assert await store.operations.observations(value.operation_id) == []
    stored = await store.operations.get(value.operation_id)
    assert decision.operation == stored


async def test_commit_taken_over(store: Store) -> None:
    """What a worker decided that was taken over is not written, not even in part (F85)."""
    value = await register(store)
    first = await claim_one(store, "a")
    second = await claim_one(store, "b", NOW + TTL_MS)
    before = await written(store, value.operation_id)

    assert await store.work.commit(first.lease, read_decision(first), NOW + TTL_MS) == LeaseLost()

    assert before == await written(store, value.operation_id)
    outcome = await store.work.commit(second.lease, read_decision(second), NOW + TTL_MS)
    assert outcome == Committed()


async def test_commit_compares_fence_and_lease_id(store: Store) -> None:
    """Neither the right fence nor the right lease id alone is a right to write."""
    value = await register(store)
    claimed = await claim_one(store)
    before = await written(store, value.operation_id)

    for wrong in (replace(claimed.lease, fence=2), replace(claimed.lease, lease_id="other")):
        assert await store.work.commit(wrong, read_decision(claimed), NOW) == LeaseLost()
        assert await store.work.renew(wrong, TTL_MS, NOW) == LeaseLost()
        await store.work.release(wrong, NOW, NOW)

    assert before == await written(store, value.operation_id)
    assert await store.work.claim("w", ["b"], TTL_MS, NOW) == []


async def test_commit_twice(store: Store) -> None:
    """A lease ends with its commit: the same decision is not written again."""
    value = await register(store)
    claimed = await claim_one(store)
    await store.work.commit(claimed.lease, read_decision(claimed), NOW)
    before = await written(store, value.operation_id)

    outcome = await store.work.commit(claimed.lease, read_decision(claimed, number=2), NOW)

    assert outcome == LeaseLost()
    assert before == await written(store, value.operation_id)


async def test_commit_unknown(store: Store) -> None:
    """There is no lease on an operation that does not exist."""
    claimed = Claimed(Lease("op_none", "a", 1, NOW, 0), operation(operation_id="op_none"), "x")

    assert await store.work.commit(claimed.lease, read_decision(claimed), NOW) == LeaseLost()


async def test_commit_stale(store: Store) -> None:
    """A decision about an older version is not written, and the lease stands."""
    value = await register(store)
    claimed = await claim_one(store)
    before = await written(store, value.operation_id)
    decision = read_decision(claimed)
    older = amended(decision, version=value.version)

    outcome = await store.work.commit(claimed.lease, older, NOW)

    assert outcome == Stale()
    assert before == await written(store, value.operation_id)
    assert await store.work.commit(claimed.lease, decision, NOW) == Committed()


async def test_commit_after_the_lease_ended(store: Store) -> None:
    """What ends a lease is another's claim: late work that nobody took over is not lost."""
    await register(store)
    claimed = await claim_one(store)
    now = NOW + 9 * TTL_MS

    outcome = await store.work.commit(claimed.lease, read_decision(claimed, now=now), now)

    assert outcome == Committed()


async def test_commit_concurrently(store: Store) -> None:
    """Of two commits under one lease at once, exactly one is written."""
    value = await register(store)
    claimed = await claim_one(store)

    outcomes = await asyncio.gather(
        *(store.work.commit(claimed.lease, read_decision(claimed, number=n), NOW) for n in range(2))
    )

    assert sorted(map(repr, outcomes)) == ["Committed()", "LeaseLost()"]
    assert len(await store.operations.observations(value.operation_id)) == 1


async def test_commit_with_a_hint_since_the_claim(store: Store) -> None:
    """An event that arrives during a read keeps a read due, as soon as the provider allows."""
    await register(store)
    claimed = await claim_one(store)
    await store.inbox.record(new_event(), "cfl", NOW)
    decision = read_decision(claimed)
    await store.work.commit(claimed.lease, decision, NOW)

    assert decision.due_at is not None
    assert decision.not_before_at <= decision.due_at
    assert decision.not_before_at == await store.work.next_due_at(NOW)
    again = await claim_one(store, "b", decision.not_before_at)
    assert new_event().event_id == again.prompted_by
    assert decision.not_before_at == again.operation.next_at


async def test_commit_with_a_hint_before_the_claim(store: Store) -> None:
    """An event that the read came after is answered by it."""
    await register(store)
    await store.inbox.record(new_event(), "cfl", NOW)
    claimed = await claim_one(store)
    decision = amended(read_decision(claimed), next_at=NOW + 77_000)
    await store.work.commit(claimed.lease, decision, NOW)

    assert await store.work.next_due_at(NOW) == NOW + 77_000


async def test_commit_sooner_than_the_hint(store: Store) -> None:
    """A hint never puts off work that the decision makes due sooner."""
    await register(store)
    claimed = await claim_one(store)
    await store.inbox.record(new_event(), "cfl", NOW)
    decision = amended(read_decision(claimed), next_at=NOW + 1)
    await store.work.commit(claimed.lease, decision, NOW)

    assert await store.work.next_due_at(NOW) == NOW + 1


async def test_commit_an_end_with_a_hint(store: Store) -> None:
    """A hint that arrives while the last read runs makes nothing due after the end."""
    await register(store)
    claimed = await claim_one(store)
    await store.inbox.record(new_event(), "cfl", NOW)
    await store.work.commit(claimed.lease, read_decision(claimed, Meaning.FAILED), NOW)

    assert await store.work.next_due_at(NOW) is None


async def test_commit_a_persons_turn_with_a_hint(store: Store) -> None:
    """A hint during the last read before a person's turn makes one more read due."""
    await register(store, result_deadline_at=NOW)
    claimed = await claim_one(store)
    await store.inbox.record(new_event(), "cfl", NOW)
    decision = read_decision(claimed)
    await store.work.commit(claimed.lease, decision, NOW)

    assert decision.operation.state is State.RESULT_TIMED_OUT
    assert decision.due_at is None
    assert decision.not_before_at == await store.work.next_due_at(NOW)
