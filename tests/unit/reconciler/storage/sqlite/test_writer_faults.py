"""The truth about what failed: a full disk, a write, an fsync, a lock, a bug."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from reconciler.storage.contract import Duplicate, EventQuery, Recorded
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite import checkpoint
from reconciler.storage.sqlite.store import SQLiteStore, open_store
from reconciler.storage.sqlite.writer import Inline
from tests.support.builders import NOW, new_event
from tests.support.writing import Held, records
from tests.unit.reconciler.storage.sqlite.conftest import Disk

pytestmark = pytest.mark.anyio


Open = Callable[[], SQLiteStore]


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
