"""What a ledger forgets: old events, in small steps, while events go on arriving."""

import asyncio
import time
from hashlib import sha256

import pytest

from reconciler.domain.observation import Meaning
from reconciler.storage.contract import Duplicate, EventQuery, Recorded, Store
from tests.support.builders import NOW, first_line, new_event, operation, read_decision

pytestmark = pytest.mark.anyio

OLD = NOW - 1
DAY_MS = 86_400_000


async def trim(store: Store, before_at: int = NOW, now: int = NOW) -> int:
    """Trim until nothing goes; return how many went."""
    gone = 0
    while went := await store.upkeep.trim_events(before_at, now):
        gone += went
        await asyncio.sleep(0)
    return gone


async def left(store: Store) -> list[int]:
    """Return the numbers of the events that are there, oldest first."""
    page = await store.events.page(EventQuery(limit=10_000))
    return [int(event.event_id[4:]) for event in reversed(page)]


async def arrive(store: Store, number: int, at: int = OLD, **fields: object) -> None:
    """Record an event whose key need not be remembered unless it is said."""
    event = new_event(number, **{"remember_until_at": NOW, **fields})
    await store.inbox.record(event, "cfl", at)


async def test_old_events_go(store: Store) -> None:
    """What was received before the instant goes, what was received at it stays."""
    await arrive(store, 1)
    await arrive(store, 2, NOW)
    await arrive(store, 3)
    await arrive(store, 4, NOW)

    assert await trim(store) == 2

    assert await left(store) == [2, 4]
    assert await store.events.get(new_event(1).event_id) is None
    assert await store.events.body(new_event(1).event_id) is None


async def test_remembered_keys_stay(store: Store) -> None:
    """A duplicate of a key that must still be remembered is one, however old the event is."""
    await arrive(store, 1, remember_until_at=NOW + 1)
    await arrive(store, 2, NOW)

    assert await trim(store) == 0
    again = await store.inbox.record(new_event(1, event_id="evt_x"), "cfl", NOW)
    assert again == Duplicate(new_event(1).event_id, 2)

    assert await trim(store, NOW, NOW + 1) == 1
    anew = await store.inbox.record(new_event(1, event_id="evt_y"), "cfl", NOW)
    assert anew == Recorded("evt_y", None)


async def test_open_operations_keep_their_events(store: Store) -> None:
    """An event stays until its operation has ended, also one that was parked first."""
    value = operation(1)
    await arrive(store, 1)
    await store.operations.register(value, first_line(value), NOW)
    await arrive(store, 2)
    await arrive(store, 3, NOW, remote_job_id="job_3")
    assert await trim(store) == 0

    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    await store.work.commit(claimed.lease, read_decision(claimed, Meaning.FAILED), NOW)

    assert await trim(store) == 2
    assert await store.events.page(EventQuery(operation_id=value.operation_id)) == []
    assert len(await store.operations.history(value.operation_id)) > 1


async def test_all_of_an_event_goes(store: Store) -> None:
    """Conflicts and large bodies go with their event; the journal stays as it was."""
    await arrive(store, 1, body=b"x" * 300_000)
    await store.inbox.record(new_event(1, body=b"other"), "cfl_1", OLD)
    await arrive(store, 2, NOW)
    entries = await store.journal.page(-1, 10)

    assert await trim(store) == 1

    assert await store.events.conflicts(new_event(1).event_id) == []
    assert await store.events.body(new_event(1).event_id) is None
    assert await store.journal.page(-1, 10) == entries
    assert len(entries) == 3


async def test_numbers_are_never_used_again(store: Store) -> None:
    """A `seq` means one event for ever, also after all that could go went."""
    for number in range(1, 4):
        await arrive(store, number)
    greatest = (await store.events.page(EventQuery()))[0].seq
    await trim(store)

    await arrive(store, 4)

    assert (await store.events.page(EventQuery()))[0].seq == greatest + 1


async def test_what_stays_holds_nobody_up(store: Store) -> None:
    """Events that must be remembered long never keep younger ones from going."""
    for number in range(1_100):
        await arrive(store, number, remember_until_at=NOW + DAY_MS * (number < 1_050))
    await arrive(store, 2_000, NOW)

    assert await trim(store) == 50

    assert await left(store) == [*range(1_050), 2_000]
    assert await trim(store, NOW + DAY_MS, NOW + DAY_MS) >= 1_050


async def test_a_file_is_in_use_until_its_last_event_goes(store: Store) -> None:
    """Events of one content share a file; it is needed as long as one of them is there."""
    digest = sha256(b"body").digest()
    for number, at in ((1, OLD - 1), (2, OLD), (3, NOW)):
        await arrive(store, number, at, body=b"body")
        if number < 3:
            await store.upkeep.body_moved(new_event(number).event_id, digest, NOW)

    assert await trim(store, OLD) == 1
    assert await store.upkeep.blobs_in_use([digest, b"\0" * 32]) == {digest}
    assert await trim(store) == 1
    assert await store.upkeep.blobs_in_use([digest]) == set()


@pytest.mark.slow
async def test_intake_goes_on(store: Store) -> None:
    """While 5,000 events go, what arrives is recorded without a wait that anybody notices."""
    for start in range(0, 5_000, 500):
        await asyncio.gather(*(arrive(store, start + n) for n in range(500)))
    trimming = asyncio.create_task(trim(store))
    waits: list[float] = []
    number = 10_000
    while not trimming.done():
        began = time.perf_counter()
        await arrive(store, number, NOW)
        waits.append(time.perf_counter() - began)
        number += 1
        await asyncio.sleep(0)

    assert await trimming == 5_000
    assert await left(store) == list(range(10_000, number))
    assert len(waits) >= 10
    assert max(waits) < 1.0
