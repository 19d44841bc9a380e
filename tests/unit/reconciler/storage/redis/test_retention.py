"""What a ledger forgets."""

import asyncio

import pytest

from reconciler.domain.observation import Meaning
from reconciler.storage.contract import EventQuery, Recorded
from reconciler.storage.redis import retention
from reconciler.storage.redis.store import RedisStore
from reconciler.storage.redis.upkeep import Upkeep
from tests.support import valkey
from tests.support.builders import NOW, first_line, new_event, operation, read_decision
from tests.unit.reconciler.storage.redis.conftest import Open

pytestmark = pytest.mark.anyio

OLD = NOW - 1
DAY_MS = 86_400_000


async def trim(store: RedisStore, before_at: int = NOW, now: int = NOW) -> int:
    """Trim until nothing goes; return how many went."""
    gone = 0
    assert isinstance(store.upkeep, Upkeep)
    while went := await store.upkeep.trim_events(before_at, now):
        gone += went
    return gone


async def left(store: RedisStore) -> list[int]:
    """Return the numbers of the events that are there, newest first."""
    return [int(event.event_id[4:]) for event in await store.events.page(EventQuery(limit=1_000))]


async def test_old_events_go(open_ledger: Open) -> None:
    """What is old and need not be remembered goes; what is young or remembered stays and counts as known."""
    store = open_ledger()
    for number, at, until_at in [(1, OLD, NOW), (2, OLD, NOW + 1), (3, NOW, NOW), (4, OLD, NOW)]:
        event = new_event(number, remember_until_at=until_at)
        await store.inbox.record(event, "cfl", at)

    assert await trim(store) == 2

    assert await left(store) == [3, 2]
    assert await store.events.body(new_event(1).event_id) is None
    fresh = new_event(1, event_id="evt_5")
    assert await store.inbox.record(fresh, "cfl", NOW) == Recorded("evt_5", None)
    assert await store.journal.size() == 5


async def test_nothing_is_left_of_them(open_ledger: Open, server: valkey.Server) -> None:
    """An event that goes leaves nothing behind but the journal, empty lists and what it had in common with others."""
    store = open_ledger()
    for number in range(250):
        event = new_event(number, client_reference=f"r{number}", remember_until_at=NOW)
        await store.inbox.record(event, "cfl", OLD)
    await store.inbox.record(new_event(7, client_reference="r7"), "cfl", OLD)
    await store.inbox.record(new_event(8, body=b"other"), "cfl", OLD)

    assert await trim(store) == 250

    keys = {key.rpartition(b"}:")[2] for key in server.ask("KEYS", "*")}
    streams = {key for key in keys if key.startswith((b"event", b"body"))}
    assert keys - streams == {b"journal", b"ledger", b"mark", b"kind", b"kinds"}
    assert {server.ask("XLEN", b"{vouchback:test}:" + key) for key in streams} == {0}


async def test_events_of_open_operations_stay(open_ledger: Open) -> None:
    """An event stays as long as its operation goes on."""
    store = open_ledger()
    value = operation(1)
    await store.operations.register(value, first_line(value), NOW)
    await store.inbox.record(new_event(1, remember_until_at=NOW), "cfl", OLD)
    assert await trim(store) == 0

    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    await store.work.commit(claimed.lease, read_decision(claimed, Meaning.FAILED), NOW)

    assert await trim(store) == 1
    assert await store.events.page(EventQuery(operation_id=value.operation_id)) == []


async def test_parked_events_that_went_are_not_attached(open_ledger: Open) -> None:
    """An operation that is registered late gets the parked events that are still there."""
    store = open_ledger()
    await store.inbox.record(new_event(1, remember_until_at=NOW), "cfl", OLD)
    await store.inbox.record(new_event(2), "cfl", OLD)
    await trim(store)
    value = operation(1)

    await store.operations.register(value, first_line(value), NOW)

    attached = await store.events.page(EventQuery(operation_id=value.operation_id))
    assert [event.event_id for event in attached] == [new_event(2).event_id]


async def test_what_stays_holds_nobody_up(
    open_ledger: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that must be remembered long never keep younger ones from going."""
    monkeypatch.setattr(retention, "LOOK", 10)
    store = open_ledger()
    for number in range(100):
        until_at = NOW + DAY_MS if number < 50 else NOW
        await store.inbox.record(new_event(number, remember_until_at=until_at), "cfl", OLD)

    assert await trim(store) == 50

    assert await left(store) == list(range(49, -1, -1))
    assert await trim(store, NOW + DAY_MS, NOW + DAY_MS) == 50


async def test_attached_between_look_and_deletion(open_ledger: Open) -> None:
    """An event that an operation took while it was about to go stays the operation's."""
    store = open_ledger()
    await store.inbox.record(new_event(1, remember_until_at=NOW), "cfl", OLD)
    seen = await store.events.page(EventQuery())
    value = operation(1)
    await store.operations.register(value, first_line(value), NOW)

    went = await store._writes.run(retention._FORGET, *retention._leads(seen))

    assert went == 0
    attached = await store.events.page(EventQuery(operation_id=value.operation_id))
    assert [event.event_id for event in attached] == [new_event(1).event_id]


async def test_moved_bodies_leave_the_memory(open_ledger: Open, server: valkey.Server) -> None:
    """A body that moved takes no memory, also between others that stay; nothing is left of it at last."""
    store = open_ledger()
    for number in range(40):
        body = b"x" * 50_000 if number % 2 else b"small"
        event = new_event(number, body=body, remember_until_at=NOW)
        await store.inbox.record(event, "cfl", OLD)
    before = server.ask("MEMORY", "USAGE", "{vouchback:test}:body", "SAMPLES", "0")
    while found := await store.upkeep.bodies_to_move(50_000, NOW, 8):
        for event_id, _ in found:
            await store.upkeep.body_moved(event_id, b"\1" * 32, NOW)

    after = server.ask("MEMORY", "USAGE", "{vouchback:test}:body", "SAMPLES", "0")
    assert (before > 1_000_000, after < 20_000) == (True, True)
    assert await trim(store) == 40
    assert server.ask("EXISTS", "{vouchback:test}:moved", "{vouchback:test}:files") == 0


async def test_trim_beside_intake(open_ledger: Open) -> None:
    """Two upkeeps that trim while events arrive lose none that is young."""
    stores = [open_ledger(queue_max=2_000), open_ledger()]
    for number in range(300):
        await stores[0].inbox.record(new_event(number, remember_until_at=NOW), "cfl", OLD)

    async def arrive() -> None:
        for number in range(300, 500):
            await stores[0].inbox.record(new_event(number), "cfl", NOW)

    one, two, _ = await asyncio.gather(trim(stores[0]), trim(stores[1]), arrive())

    assert one + two == 300
    assert await left(stores[0]) == list(range(499, 299, -1))
