"""Upkeep: past minutes are sealed, what is kept stays bounded, faults are survived."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler import upkeep
from reconciler.domain import journal
from reconciler.domain.event import MovedBody
from reconciler.storage.blobs.files import open_folder
from reconciler.storage.contract import EventQuery, RefusalQuery, Store
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW, new_event, refusal

pytestmark = pytest.mark.anyio

MINUTE = 60_000
DAY = 1_440 * MINUTE


def bounds(refusals_kept: int) -> upkeep.Bounds:
    """Return bounds: two days of events, bodies from 100 bytes on after a minute."""
    return upkeep.Bounds(refusals_kept, 2 * DAY, offload_bytes=100, offload_after_ms=MINUTE)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """Give an empty ledger."""
    opened = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    yield opened
    await opened.close()


async def sealed(store: Store) -> int:
    """Return how many refusals the journal tells of."""
    entries = await store.journal.page(-1, 1_000)
    facts = [journal.decode(item.entry)[1] for item in entries]
    return sum(int(str(fact["count"])) for fact in facts if "count" in fact)


async def test_only_minutes_that_are_over_are_sealed(store: Store) -> None:
    """A minute's count enters the journal once, when nothing can be added to it any more."""
    await store.inbox.refuse([refusal(1, at=NOW), refusal(2, at=NOW + MINUTE)], NOW)
    await upkeep.tick(store.upkeep, None, NOW + MINUTE + 5, bounds(100))
    assert await sealed(store) == 1
    await upkeep.tick(store.upkeep, None, NOW + MINUTE + 10, bounds(100))
    assert await sealed(store) == 1
    await upkeep.tick(store.upkeep, None, NOW + 2 * MINUTE, bounds(100))
    assert await sealed(store) == 2


async def test_no_more_refusals_are_kept_than_configured(store: Store) -> None:
    """One round trims all that is too much; the newest stay."""
    items = [refusal(n, at=NOW + n * MINUTE) for n in range(1, 31)]
    await store.inbox.refuse(items, NOW)
    await upkeep.tick(store.upkeep, None, NOW, bounds(7))
    kept = await store.events.refusals(RefusalQuery(limit=100))
    assert [item.refusal_id for item in kept] == [f"ref_{n:026}" for n in range(30, 23, -1)]


async def test_old_events_go_in_one_round(store: Store) -> None:
    """What is older than configured goes, more than one step's worth of it."""
    for number in range(200):
        await store.inbox.record(new_event(number, remember_until_at=NOW), "cfl", NOW)
    for number in (998, 999):
        await store.inbox.record(new_event(number), "cfl", NOW + 1)

    await upkeep.tick(store.upkeep, None, NOW + 2 * DAY + 1, bounds(5))

    left = await store.events.page(EventQuery(limit=300))
    assert [item.event_id for item in left] == [f"evt_{number:026}" for number in (999, 998)]


async def test_bodies_stay_without_a_folder(store: Store) -> None:
    """Where no folder is shared, bodies stay in the ledger."""
    await store.inbox.record(new_event(1, body=b"x" * 100), "cfl", NOW)

    await upkeep.tick(store.upkeep, None, NOW + MINUTE + 1, bounds(5))

    assert await store.events.body(new_event(1).event_id) == b"x" * 100


async def test_a_folder_that_is_away_loses_nothing(store: Store, tmp_path: Path) -> None:
    """While the folder is away a body stays where it is; when it is back, the body moves."""
    folder = tmp_path / "blobs"
    blobs = open_folder(folder, is_ours=True)
    folder.rename(tmp_path / "away")
    await store.inbox.record(new_event(1, body=b"x" * 100), "cfl", NOW)
    with pytest.raises(StorageUnavailableError):
        await upkeep.tick(store.upkeep, blobs, NOW + MINUTE + 1, bounds(5))
    assert await store.events.body(new_event(1).event_id) == b"x" * 100

    (tmp_path / "away").rename(folder)
    await upkeep.tick(store.upkeep, blobs, NOW + MINUTE + 1, bounds(5))

    assert isinstance(await store.events.body(new_event(1).event_id), MovedBody)


async def test_a_ledger_that_is_away_does_not_end_upkeep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on when a round could not be done."""
    monkeypatch.setattr(upkeep, "EVERY_S", 0.01)
    store = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    await store.close()
    task = asyncio.create_task(upkeep.run(store.upkeep, None, lambda: NOW, bounds(5)))
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
