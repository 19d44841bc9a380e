"""`Work`: due work and the right to do it (`test_commit` has the writing)."""

import asyncio
from dataclasses import replace
from time import monotonic

import pytest

from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.observation import Meaning
from reconciler.storage.contract import Committed, LeaseLost, OperationQuery, Store
from tests.support.builders import NOW, new_event, read_decision
from tests.support.working import TTL_MS, claim_one, register

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- claim


async def test_claim(store: Store) -> None:
    """A claim hands out the operation as it stands, a lease until `now + ttl`, and the prompt."""
    value = await register(store)

    claimed = await claim_one(store, now=NOW + 5)

    stored = await store.operations.get(value.operation_id)
    lease = Lease(value.operation_id, "lease", 1, NOW + 5 + TTL_MS, 0)
    assert Claimed(lease, replace(value, next_at=NOW), "schedule") == claimed
    assert stored == claimed.operation


async def test_claim_most_overdue_first(store: Store) -> None:
    """At most one operation a lease id, those that wait longest first; nothing that is not due."""
    for number, at in [(1, NOW + 2), (2, NOW), (3, NOW + 3), (4, NOW + 1), (5, NOW + 99)]:
        await register(store, number, at=at)

    first = await store.work.claim("w", ["a", "b"], TTL_MS, NOW + 3)
    rest = await store.work.claim("w", ["c", "d", "e", "f"], TTL_MS, NOW + 3)

    assert [each.operation.remote_job_id for each in first] == ["job_2", "job_4"]
    assert [each.lease.lease_id for each in first] == ["a", "b"]
    assert [each.operation.remote_job_id for each in rest] == ["job_1", "job_3"]


async def test_claim_nothing(store: Store) -> None:
    """Without lease ids or due work there is nothing to claim."""
    assert await store.work.claim("w", ["a"], TTL_MS, NOW) == []
    await register(store)
    assert await store.work.claim("w", [], TTL_MS, NOW) == []
    assert await store.work.claim("w", ["a"], TTL_MS, NOW - 1) == []


async def test_claim_held(store: Store) -> None:
    """Work that somebody holds is not handed out until the lease ends, then with a greater fence."""
    await register(store)
    first = await claim_one(store, "a")

    assert await store.work.claim("w", ["b"], TTL_MS, NOW + TTL_MS - 1) == []

    second = await claim_one(store, "b", NOW + TTL_MS)
    assert second.lease.fence > first.lease.fence
    assert second.lease.lease_id == "b"


async def test_claim_lapsed_in_order(store: Store) -> None:
    """Work whose lease has ended waits as long as it has been due, among all the other."""
    await register(store, 1, at=NOW)
    await claim_one(store, "a")
    await register(store, 2, at=NOW - 5)
    await register(store, 3, at=NOW + 5)

    claimed = await store.work.claim("w", ["b", "c", "d"], TTL_MS, NOW + TTL_MS)

    assert [each.operation.remote_job_id for each in claimed] == ["job_2", "job_1", "job_3"]


async def test_claim_concurrently(store: Store) -> None:
    """Workers that claim at once never get the same work (O8)."""
    for number in range(1, 41):
        await register(store, number)

    claims = await asyncio.gather(
        *(store.work.claim(f"w{n}", [f"{n}_{i}" for i in range(7)], TTL_MS, NOW) for n in range(10))
    )

    taken = [each.operation.operation_id for claim in claims for each in claim]
    assert len(taken) == 40
    assert len(set(taken)) == 40


# ---------------------------------------------------------------- renew, release


async def test_renew(store: Store) -> None:
    """A renewed lease holds the work longer and stays the same lease."""
    await register(store)
    claimed = await claim_one(store)

    renewed = await store.work.renew(claimed.lease, TTL_MS, NOW + 900)

    assert replace(claimed.lease, until_at=NOW + 900 + TTL_MS) == renewed
    assert await store.work.claim("w", ["b"], TTL_MS, NOW + 900 + TTL_MS - 1) == []
    assert await store.work.commit(claimed.lease, read_decision(claimed), NOW) == Committed()


async def test_renew_after_its_end(store: Store) -> None:
    """Until somebody else took the work, its holder may hold on."""
    await register(store)
    claimed = await claim_one(store)

    renewed = await store.work.renew(claimed.lease, TTL_MS, NOW + 5 * TTL_MS)

    assert isinstance(renewed, Lease)
    assert await store.work.claim("w", ["b"], TTL_MS, NOW + 5 * TTL_MS) == []


async def test_renew_lost(store: Store) -> None:
    """A worker that was taken over cannot steal the work back by renewing (F85)."""
    await register(store)
    first = await claim_one(store, "a")
    second = await claim_one(store, "b", NOW + TTL_MS)

    assert await store.work.renew(first.lease, 9 * TTL_MS, NOW + TTL_MS) == LeaseLost()

    assert await store.work.claim("w", ["c"], TTL_MS, second.lease.until_at - 1) == []
    assert (await claim_one(store, "c", second.lease.until_at)).lease.fence == 3


async def test_release(store: Store) -> None:
    """Released work is due when it is said, for anybody, and its fence goes on growing."""
    await register(store)
    claimed = await claim_one(store)

    await store.work.release(claimed.lease, NOW + 50, NOW + 1)

    assert await store.work.claim("w", ["b"], TTL_MS, NOW + 49) == []
    again = await claim_one(store, "b", NOW + 50)
    assert again.lease.fence == 2
    assert claimed.operation.version == again.operation.version


async def test_release_lost(store: Store) -> None:
    """Releasing what another holds changes nothing."""
    await register(store)
    first = await claim_one(store, "a")
    second = await claim_one(store, "b", NOW + TTL_MS)

    await store.work.release(first.lease, NOW, NOW + TTL_MS)

    assert await store.work.claim("w", ["c"], TTL_MS, NOW + TTL_MS) == []
    decision = read_decision(second)
    assert await store.work.commit(second.lease, decision, NOW + TTL_MS) == Committed()


async def test_release_keeps_a_hint(store: Store) -> None:
    """A hint that came while the work was held is not put off by giving it back."""
    await register(store)
    claimed = await claim_one(store)
    await store.inbox.record(new_event(), "cfl", NOW + 1)

    await store.work.release(claimed.lease, NOW + 500_000, NOW + 2)

    again = await claim_one(store, "b", NOW + 2)
    assert new_event().event_id == again.prompted_by


# ---------------------------------------------------------------- wait, next_due_at


async def test_next_due_at(store: Store) -> None:
    """The next instant is the earliest of due work and of leases that end; `None` without any."""
    assert await store.work.next_due_at(NOW) is None
    await register(store, 1, at=NOW + 500)
    assert await store.work.next_due_at(NOW) == NOW + 500
    claimed = await claim_one(store, now=NOW + 500)
    assert claimed.lease.until_at == await store.work.next_due_at(NOW)
    await register(store, 2, at=NOW + 700)
    assert await store.work.next_due_at(NOW) == NOW + 700


async def test_next_due_at_is_no_promise_of_a_later_one(store: Store) -> None:
    """An operation that ended is no work."""
    await register(store)
    claimed = await claim_one(store)
    await store.work.commit(claimed.lease, read_decision(claimed, Meaning.FAILED), NOW)

    assert await store.work.next_due_at(NOW) is None
    assert len(await store.operations.page(OperationQuery())) == 1


async def test_wait_times_out(store: Store) -> None:
    """Without news a wait ends with its timeout, and is no error."""
    start = monotonic()

    await store.work.wait(0.05)

    assert 0.04 < monotonic() - start < 5


@pytest.mark.parametrize("what", ["register", "record", "commit", "release"])
async def test_wait_returns(store: Store, what: str) -> None:
    """Whoever waits is woken by whatever made work due."""
    await register(store, 1)
    claimed = await claim_one(store)
    await store.work.wait(0.01)
    waiting = asyncio.create_task(store.work.wait(60))
    await asyncio.sleep(0.01)
    assert not waiting.done()

    if what == "register":
        await register(store, 2)
    elif what == "record":
        await store.inbox.record(new_event(), "cfl", NOW)
    elif what == "commit":
        await store.work.commit(claimed.lease, read_decision(claimed), NOW)
    else:
        await store.work.release(claimed.lease, NOW, NOW)

    await asyncio.wait_for(waiting, 5)


async def test_wait_keeps_what_came_before(store: Store) -> None:
    """Work that came due between a claim and the wait does not get lost."""
    await store.work.claim("w", ["a"], TTL_MS, NOW)
    await register(store)

    await asyncio.wait_for(store.work.wait(60), 5)


async def test_wait_is_not_woken_by_strangers(store: Store) -> None:
    """Events that no operation belongs to wake no worker."""
    waiting = asyncio.create_task(store.work.wait(60))
    await store.inbox.record(new_event(), "cfl", NOW)
    await asyncio.sleep(0.02)

    assert not waiting.done()
    waiting.cancel()
