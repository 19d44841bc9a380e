"""The writer: one transaction for whatever waits, also while it closes and checkpoints."""

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.storage.contract import Duplicate, EventQuery, Recorded
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite import checkpoint, writer
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.inbox import record
from reconciler.storage.sqlite.store import SQLiteStore, open_store
from reconciler.storage.sqlite.writer import Inline
from tests.support.builders import NOW, new_event
from tests.support.writing import Held, records, size
from tests.unit.reconciler.storage.sqlite.conftest import Disk

pytestmark = pytest.mark.anyio


Open = Callable[[], SQLiteStore]


# ---------------------------------------------------------------- group commit


async def test_whatever_waits_is_one_transaction(disk: Disk, store: SQLiteStore) -> None:
    """A hundred steps that wait behind a busy writer are synced once."""
    await store.upkeep.probe(NOW)
    held = Held(store)
    await held.running()
    waiting = records(store, range(100))
    await asyncio.sleep(0)
    disk.synced.clear()

    await held.let_go()
    answers = await asyncio.gather(*waiting)

    assert {type(answer) for answer in answers} == {Recorded}
    # The transaction of the step that kept the writer busy wrote nothing.
    assert disk.synced.count("wal") == 1


async def test_one_failure_harms_no_other(store: SQLiteStore) -> None:
    """A step that fails changes nothing and fails its own caller only."""

    def broken(ledger: Ledger) -> None:
        record(ledger, new_event(1), "cfl", NOW)
        raise ZeroDivisionError

    held = Held(store)
    await held.running()
    before = records(store, range(10, 15))
    failing = asyncio.ensure_future(store._executor.write(broken))
    after = records(store, range(15, 20))
    await asyncio.sleep(0)
    await held.let_go()

    with pytest.raises(ZeroDivisionError):
        await failing
    assert {type(answer) for answer in await asyncio.gather(*before, *after)} == {Recorded}
    assert await store.events.get(new_event(1).event_id) is None
    assert await store.journal.size() == 10


async def test_nobody_sees_what_is_not_committed(store: SQLiteStore) -> None:
    """Readers see an event when its transaction is committed, not before."""
    held = Held(store)
    await held.running()
    waiting = records(store, range(3))
    await asyncio.sleep(0)

    assert await store.events.page(EventQuery()) == []

    await held.let_go()
    await asyncio.gather(*waiting)
    assert len(await store.events.page(EventQuery())) == 3


async def test_cancelled_caller(store: SQLiteStore) -> None:
    """Who stops waiting does not stop the step, and harms no other caller."""
    held = Held(store)
    await held.running()
    first, second = records(store, range(1, 3))
    await asyncio.sleep(0)
    first.cancel()
    await held.let_go()

    assert isinstance(await second, Recorded)
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await store.inbox.record(new_event(1), "cfl", NOW) == Duplicate(new_event(1).event_id, 2)


async def test_overflow(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """When too many wait, the next is refused at once instead of waiting too."""
    monkeypatch.setattr(store._executor, "_queue_max", 5)
    held = Held(store)
    await held.running()
    waiting = records(store, range(5))
    await asyncio.sleep(0)

    with pytest.raises(StorageUnavailableError, match="too many"):
        await asyncio.wait_for(store.inbox.record(new_event(9), "cfl", NOW), 1)

    await held.let_go()
    assert {type(answer) for answer in await asyncio.gather(*waiting)} == {Recorded}
    assert isinstance(await store.inbox.record(new_event(9), "cfl", NOW), Recorded)


async def test_batches_are_bounded(store: SQLiteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """More steps than a batch holds are committed in several."""
    monkeypatch.setattr(writer, "BATCH_MAX", 7)

    answers = await asyncio.gather(*records(store, range(100)))

    assert {type(answer) for answer in answers} == {Recorded}


# ---------------------------------------------------------------- closing


async def test_close_finishes(open_ledger: Open) -> None:
    """What was accepted before the close is committed and answered."""
    store = open_ledger()
    waiting = records(store, range(50))
    await asyncio.sleep(0)
    await store.close()

    assert {type(answer) for answer in await asyncio.gather(*waiting)} == {Recorded}
    again = open_ledger()
    assert len(await again.events.page(EventQuery(limit=100))) == 50
    await again.close()


async def test_closed(open_ledger: Open) -> None:
    """A closed ledger answers like one that cannot be reached."""
    store = open_ledger()
    await store.close()

    with pytest.raises(StorageUnavailableError):
        await store.inbox.record(new_event(), "cfl", NOW)
    with pytest.raises(StorageUnavailableError):
        await store.events.page(EventQuery())


async def test_close_leaves_one_file(open_ledger: Open, path: Path) -> None:
    """A ledger that was closed stands in one file, so that it can be copied."""
    store = open_ledger()
    await store.inbox.record(new_event(), "cfl", NOW)
    await store.events.page(EventQuery())
    await store.close()

    assert sorted(os.listdir(path.parent)) == [path.name, f"{path.name}.lock"]  # noqa: PTH208


# ---------------------------------------------------------------- checkpoints


async def test_checkpoint_beside_the_commits(store: SQLiteStore, path: Path) -> None:
    """Soon after commits the ledger's file holds what the log held."""
    before = size(path)
    await asyncio.gather(*records(store, range(300)))

    for _ in range(100):
        if size(path) > before:
            break
        await asyncio.sleep(0.05)
    assert size(path) > before


async def test_log_is_bounded(
    open_ledger: Open, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under constant load the log starts over instead of growing for ever."""
    monkeypatch.setattr(checkpoint, "WAL_PAGES_MAX", 200)
    monkeypatch.setattr(checkpoint, "WAL_PAGES_STEP", 50)
    monkeypatch.setattr(checkpoint, "INTERVAL_S", 1_000)
    store = open_ledger()
    for number in range(0, 3_000, 10):
        await asyncio.gather(*records(store, range(number, number + 10)))
    wal = size(path.with_name(path.name + "-wal"))
    monkeypatch.setattr(checkpoint, "INTERVAL_S", 0)
    store._executor._checkpointer._closing.set()
    await store.close()

    assert wal < 600 * 4_096


# ---------------------------------------------------------------- simulation


async def test_inline(path: Path, fatal: list[BaseException]) -> None:
    """In the simulation each step is done and committed before the call gives way to another."""
    store = open_store(path, now=lambda: NOW, executor=Inline, on_fatal=fatal.append)
    task = asyncio.ensure_future(store.inbox.record(new_event(), "cfl", NOW))
    await asyncio.sleep(0)

    assert task.done()
    assert threading.active_count() == 1 or "ledger-writer" not in {
        thread.name for thread in threading.enumerate()
    }
    await store.close()
    again = open_store(path, now=lambda: NOW, executor=Inline)
    assert await again.inbox.record(new_event(), "cfl", NOW) == Duplicate(new_event().event_id, 2)
    await again.close()
