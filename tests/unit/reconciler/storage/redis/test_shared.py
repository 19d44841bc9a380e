"""Several processes on one ledger."""

import asyncio
from collections import Counter
from time import monotonic

import pytest

from reconciler.domain.event import REFUSALS_KEPT_A_MINUTE
from reconciler.storage.contract import Committed, Duplicate, LeaseLost, Recorded, RefusalQuery
from reconciler.storage.redis.store import RedisStore
from tests.support import valkey
from tests.support.builders import NOW, first_line, new_event, operation, read_decision, refusal
from tests.unit.reconciler.storage.redis.conftest import Open

pytestmark = pytest.mark.anyio


async def register(store: RedisStore, number: int = 1, at: int = NOW) -> None:
    """Register an operation whose work is due at `at`."""
    value = operation(number)
    await store.operations.register(value, first_line(value), at)


async def test_one_event_at_two_gateways(open_ledger: Open) -> None:
    """One event that arrives at two gateways at once is one event (F50)."""
    stores = [open_ledger(), open_ledger()]

    answers = await asyncio.gather(
        *(stores[n % 2].inbox.record(new_event(event_id=f"evt_{n}"), "c", NOW) for n in range(50))
    )

    assert {Recorded: 1, Duplicate: 49} == Counter(type(answer) for answer in answers)
    assert await stores[0].journal.size() == 1


async def test_two_workers(open_ledger: Open) -> None:
    """Two workers never hold one operation, and only who holds it commits."""
    one, two = open_ledger(), open_ledger()
    for number in range(1, 21):
        await register(one, number)

    first, second = await asyncio.gather(
        one.work.claim("1", [f"a{n}" for n in range(15)], 1_000, NOW),
        two.work.claim("2", [f"b{n}" for n in range(15)], 1_000, NOW),
    )

    taken = [claimed.lease.operation_id for claimed in first + second]
    assert len(taken) == len(set(taken)) == 20
    (again, *_) = await two.work.claim("2", ["c"], 1_000, NOW + 1_000)
    old = next(c for c in first + second if c.lease.operation_id == again.lease.operation_id)
    assert await one.work.commit(old.lease, read_decision(old), NOW) == LeaseLost()
    assert await two.work.commit(again.lease, read_decision(again), NOW) == Committed()


@pytest.mark.parametrize("what", ["register", "record", "release", "commit"])
async def test_news_reach_other_processes(open_ledger: Open, what: str) -> None:
    """Work that one process makes due wakes a worker that waits in another."""
    here, there = open_ledger(), open_ledger()
    await register(there)
    (claimed,) = await there.work.claim("w", ["a"], 1_000, NOW)
    await here.work.claim("w", ["b"], 1_000, NOW)
    await here.work.wait(0.05)
    waiting = asyncio.create_task(here.work.wait(60))
    await asyncio.sleep(0.02)
    assert not waiting.done()

    if what == "register":
        await register(there, 2)
    elif what == "record":
        await there.inbox.record(new_event(), "cfl", NOW)
    elif what == "release":
        await there.work.release(claimed.lease, NOW, NOW)
    else:
        await there.work.commit(claimed.lease, read_decision(claimed), NOW)

    await asyncio.wait_for(waiting, 5)


async def test_news_between_claim_and_wait(open_ledger: Open) -> None:
    """What another process makes due after a claim is kept for the wait."""
    here, there = open_ledger(), open_ledger()
    assert await here.work.claim("w", ["a"], 1_000, NOW) == []
    await register(there)

    await asyncio.wait_for(here.work.wait(60), 5)


async def test_news_after_a_restart(open_ledger: Open, server: valkey.Server) -> None:
    """Whoever waits over a restart of the server is woken: news may have been missed."""
    store = open_ledger()
    await store.work.claim("w", ["a"], 1_000, NOW)
    waiting = asyncio.create_task(store.work.wait(60))
    await asyncio.sleep(0.02)
    server.kill()
    server.start()

    await asyncio.wait_for(waiting, 5)


async def test_wait_without_a_server(open_ledger: Open, server: valkey.Server) -> None:
    """A wait is never an error, and never longer than asked for."""
    store = open_ledger()
    server.kill()
    begun = monotonic()

    await store.work.wait(0.2)

    assert monotonic() - begun < 2


async def test_refusals_at_two_gateways(open_ledger: Open) -> None:
    """Refusals that two gateways count at once are all counted, in one chain, and few are kept."""
    stores = [open_ledger(), open_ledger(), open_ledger()]

    await asyncio.gather(
        *(stores[n % 3].inbox.refuse([refusal(2 * n), refusal(2 * n + 1)], NOW) for n in range(30))
    )

    (count,) = await stores[0].events.refusal_counts(0)
    assert count.count == 60
    assert len(await stores[0].events.refusals(RefusalQuery())) == REFUSALS_KEPT_A_MINUTE


async def test_sealed_once(open_ledger: Open) -> None:
    """Two upkeeps at once write one entry a count."""
    stores = [open_ledger(), open_ledger()]
    for minute in range(5):
        at = NOW + minute * 60_000
        await stores[0].inbox.refuse([refusal(minute, at=at)], at)

    sealed = await asyncio.gather(
        *(store.upkeep.seal_refusals(NOW + 300_000, NOW) for store in stores)
    )

    assert sum(sealed) == 5
    assert await stores[0].journal.size() == 5


async def test_server_time(open_ledger: Open, server: valkey.Server) -> None:
    """An instant of 0 is the server's: no node's clock decides when a lease ends."""
    store = open_ledger()
    seconds, micros = map(int, server.ask("TIME"))
    now = seconds * 1_000 + micros // 1_000
    await register(store, at=0)

    (claimed,) = await store.work.claim("w", ["a"], 5_000, 0)

    assert 0 <= claimed.lease.until_at - (now + 5_000) < 5_000
    assert claimed.operation.next_at is not None
    assert 0 <= claimed.operation.next_at - now < 5_000
    assert await store.work.claim("w", ["b"], 5_000, 0) == []
    await store.inbox.record(new_event(), "cfl", 0)
    event = await store.events.get(new_event().event_id)
    assert event is not None
    assert 0 <= event.received_at - now < 5_000


async def test_ledgers_are_apart(open_ledger: Open) -> None:
    """Two ledgers on one server share nothing."""
    one, other = open_ledger("one"), open_ledger("other")
    await one.inbox.record(new_event(), "cfl", NOW)
    await register(one)

    assert await other.inbox.record(new_event(), "cfl", NOW) == Recorded(new_event().event_id, None)
    assert await other.work.claim("w", ["a"], 1_000, NOW) == []


async def test_every_key_has_the_hash_tag(open_ledger: Open, server: valkey.Server) -> None:
    """No key of a ledger lies outside its slot, and none goes away by itself."""
    store = open_ledger()
    await register(store)
    for number in range(3):
        await store.inbox.record(new_event(number, remote_job_id=f"job_{number}"), "cfl", NOW)
    await store.inbox.record(new_event(body=b"other"), "cfl", NOW)
    await store.inbox.refuse([refusal()], NOW)
    await store.upkeep.probe(NOW)

    keys = server.ask("KEYS", "*")

    assert [key for key in keys if not key.startswith(b"{vouchback:test}:")] == []
    assert {server.ask("TTL", key) for key in keys} == {-1}
