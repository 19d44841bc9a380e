"""The writer: one transaction for whatever waits, and the truth about what failed."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from reconciler.storage.contract import Duplicate, EventQuery, Recorded
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite import checkpoint, writer
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.inbox import record
from reconciler.storage.sqlite.store import SQLiteStore, open_store
from reconciler.storage.sqlite.writer import Inline
from tests.support.builders import NOW, new_event
from tests.unit.reconciler.storage.sqlite.conftest import Disk

pytestmark = pytest.mark.anyio

Open = Callable[[], SQLiteStore]


class Held:
    """A step that keeps the writer busy until it is let go."""

    def __init__(self, store: SQLiteStore) -> None:
        self._go, self._runs = threading.Event(), threading.Event()
        self.done = asyncio.ensure_future(store._executor.write(self._step))

    async def running(self) -> None:
        """Return when the writer is busy with it."""
        assert await asyncio.to_thread(self._runs.wait, 5)

    async def let_go(self) -> None:
        """Let the writer go on."""
        self._go.set()
        await self.done

    def _step(self, _ledger: Ledger) -> None:
        self._runs.set()
        assert self._go.wait(10)


def size(path: Path) -> int:
    """Return a file's size in bytes."""
    return path.stat().st_size


def records(store: SQLiteStore, numbers: range) -> list["asyncio.Task[object]"]:
    """Start recording events."""
    return [
        asyncio.ensure_future(store.inbox.record(new_event(number), "cfl", NOW))
        for number in numbers
    ]


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


# ---------------------------------------------------------------- the disk fails


async def test_full_disk(store: SQLiteStore) -> None:
    """A full disk refuses what does not fit, keeps what it has, and recovers when space returns."""
    await store.inbox.record(new_event(1), "cfl", NOW)
    pages = await store._executor.write(lambda ledger: ledger.pragma("page_count"))
    await store._executor.write(lambda ledger: ledger.pragma("max_page_count", pages + 2))

    with pytest.raises(StorageUnavailableError) as raised:
        await store.inbox.record(new_event(2, body=bytes(100_000)), "cfl", NOW)

    assert isinstance(raised.value.__cause__, apsw.FullError)
    assert await store.events.get(new_event(1).event_id) is not None
    assert await store.events.get(new_event(2).event_id) is None
    await store._executor.write(lambda ledger: ledger.pragma("max_page_count", 1_000_000))
    event = new_event(2, body=bytes(100_000))
    assert await store.inbox.record(event, "cfl", NOW) == Recorded(event.event_id, None)


async def test_full_disk_leaves_no_mark(store: SQLiteStore) -> None:
    """A key is not remembered by a step that failed: the resend is stored (F52)."""
    for number in range(5):
        pages = await store._executor.write(lambda ledger: ledger.pragma("page_count"))
        await store._executor.write(lambda ledger, n=pages: ledger.pragma("max_page_count", n))
        event = new_event(number, body=bytes(200_000))
        with pytest.raises(StorageUnavailableError):
            await store.inbox.record(event, "cfl", NOW)
        await store._executor.write(lambda ledger: ledger.pragma("max_page_count", 1_000_000))
        assert isinstance(await store.inbox.record(event, "cfl", NOW), Recorded)

    assert await store.journal.size() == 5


async def test_write_error_fails_the_whole_batch(
    disk: Disk, store: SQLiteStore, fatal: list[BaseException]
) -> None:
    """A commit that failed answers no one in its batch with success; the next one may succeed."""
    held = Held(store)
    await held.running()
    waiting = records(store, range(10))
    await asyncio.sleep(0)
    disk.fails["write"] = apsw.SQLITE_IOERR_WRITE
    await held.let_go()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    disk.fails.clear()

    assert {type(answer) for answer in answers} == {StorageUnavailableError}
    assert len({id(answer) for answer in answers}) == 10
    assert fatal == []
    resent = await asyncio.gather(*records(store, range(10)))
    assert {type(answer) for answer in resent} <= {Recorded, Duplicate}
    assert len(await store.events.page(EventQuery())) == 10
    assert await store.journal.size() == 10


@pytest.mark.parametrize("code", [apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC])
async def test_fsync_error_is_fatal(
    disk: Disk, open_ledger: Open, fatal: list[BaseException], code: int
) -> None:
    """After a failed fsync nothing more is acknowledged, and the process is told to end (F93)."""
    store = open_ledger()
    await store.inbox.record(new_event(1), "cfl", NOW)
    disk.fails["sync"] = code

    with pytest.raises(StorageUnavailableError):
        await store.inbox.record(new_event(2), "cfl", NOW)

    assert [type(error) for error in fatal] == [apsw.IOError]
    disk.fails.clear()
    with pytest.raises(StorageUnavailableError, match="opened anew"):
        await store.inbox.record(new_event(3), "cfl", NOW)
    await store.close()

    again = open_ledger()
    outcomes = [await again.inbox.record(new_event(n), "cfl", NOW) for n in (1, 2)]
    assert outcomes[0] == Duplicate(new_event(1).event_id, 2)
    assert len(await again.events.page(EventQuery())) == 2
    await again.close()


async def test_fsync_error_of_a_checkpoint_is_fatal(
    disk: Disk, open_ledger: Open, fatal: list[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages that a failed checkpoint lost must not be taken for written either."""
    monkeypatch.setattr(checkpoint, "INTERVAL_S", 0.2)
    store = open_ledger()
    await store.inbox.record(new_event(1), "cfl", NOW)
    disk.fails["sync"] = apsw.SQLITE_IOERR_FSYNC
    for _ in range(100):
        if fatal:
            break
        await asyncio.sleep(0.05)
    disk.fails.clear()

    assert len(fatal) == 1
    with pytest.raises(StorageUnavailableError, match="opened anew"):
        await store.inbox.record(new_event(2), "cfl", NOW)
    await store.close()


def test_end_process() -> None:
    """In production a failed fsync ends the process at once, not with success, and says why."""
    script = "from reconciler.storage.sqlite.writer import end_process as e; e(OSError('why'))"

    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 74
    assert "fsync of the ledger failed: why" in ended.stderr


@pytest.mark.parametrize(
    ("what", "code"), [("write", apsw.SQLITE_IOERR_WRITE), ("sync", apsw.SQLITE_IOERR_FSYNC)]
)
async def test_any_one_failure(
    disk: Disk, tmp_path: Path, fatal: list[BaseException], what: str, code: int
) -> None:
    """Whichever call to the disk fails, what was acknowledged is there once, and the resend too."""
    failed = 0
    for before in range(24):
        path = tmp_path / f"{before}.db"
        store = open_store(path, now=lambda: NOW, executor=Inline, on_fatal=fatal.append)
        disk.fails, disk.succeeds_first = {what: code}, before
        acknowledged = []
        for number in range(4):
            try:
                await store.inbox.record(new_event(number), "cfl", NOW)
            except StorageUnavailableError:
                failed += 1
                break
            acknowledged.append(number)
        disk.fails.clear()
        await store.close()

        again = open_store(path, now=lambda: NOW, executor=Inline)
        answers = [await again.inbox.record(new_event(n), "cfl", NOW) for n in range(4)]
        assert {type(answers[number]) for number in acknowledged} <= {Duplicate}
        assert len(await again.events.page(EventQuery())) == 4
        assert await again.journal.size() == 4
        await again.close()

    assert failed > 3
    assert len(fatal) == (failed if what == "sync" else 0)


async def test_lock_of_another_program(store: SQLiteStore, path: Path) -> None:
    """While another program keeps the file locked, callers are told so within two seconds."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StorageUnavailableError) as raised:
        await asyncio.wait_for(store.inbox.record(new_event(), "cfl", NOW), 2)

    other.execute("ROLLBACK")
    other.close()
    assert isinstance(raised.value.__cause__, apsw.BusyError)
    assert isinstance(await store.inbox.record(new_event(), "cfl", NOW), Recorded)


async def test_bug_in_a_step(store: SQLiteStore) -> None:
    """A step that ends the transaction behind the writer's back does not end the writer."""
    with pytest.raises(apsw.SQLError):
        await store._executor.write(lambda ledger: ledger.execute("ROLLBACK"))

    assert isinstance(await store.inbox.record(new_event(), "cfl", NOW), Recorded)


async def test_reader_error(open_ledger: Open, path: Path) -> None:
    """A read that the disk refuses is an unavailable storage, not another error."""
    store = open_ledger()
    moved = path.with_name("moved.db")
    os.rename(path, moved)  # noqa: PTH104
    with pytest.raises(StorageUnavailableError) as raised:
        await store.events.page(EventQuery())
    os.rename(moved, path)  # noqa: PTH104
    await store.close()

    assert isinstance(raised.value.__cause__, apsw.CantOpenError)


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
