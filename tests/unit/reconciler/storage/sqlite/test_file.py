"""The ledger's file: private, ours, of a known version, owned by one process."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from reconciler.storage.contract import Duplicate, Recorded
from reconciler.storage.errors import LedgerError
from reconciler.storage.sqlite import connection, file
from reconciler.storage.sqlite.inbox import record
from reconciler.storage.sqlite.store import SQLiteStore
from tests.support.builders import NOW, new_event
from tests.unit.reconciler.storage.sqlite.conftest import Disk

Open = Callable[[], SQLiteStore]


def test_new_file_is_private(path: Path) -> None:
    """A new ledger can be read by its owner only, whatever the umask, and so can its log."""
    before = os.umask(0)
    try:
        file.prepare(path, NOW)
        ledger = apsw.Connection(str(path))
        ledger.execute("INSERT INTO probe (id, at) VALUES (1, 1)")
        modes = {each.name: each.stat().st_mode & 0o777 for each in path.parent.iterdir()}
        ledger.close()
    finally:
        os.umask(before)

    assert modes == {"ledger.db": 0o600, "ledger.db-wal": 0o600, "ledger.db-shm": 0o600}


def test_open_file_is_refused(path: Path) -> None:
    """A ledger that others can read is refused with the command that mends it."""
    file.prepare(path, NOW)
    path.chmod(0o640)

    with pytest.raises(LedgerError, match=f"chmod 600 {path}"):
        file.prepare(path, NOW)


def test_prepare_twice(path: Path) -> None:
    """A ledger that is up to date is left as it is."""
    file.prepare(path, NOW)
    before = path.read_bytes()

    file.prepare(path, NOW + 1)

    assert before == path.read_bytes()


def test_empty_file_becomes_a_ledger(path: Path) -> None:
    """A start that was cut off before the first table is simply done again."""
    path.touch(0o600)

    file.prepare(path, NOW)

    assert apsw.Connection(str(path)).pragma("application_id") == file.APPLICATION_ID


def test_foreign_sqlite_is_refused(path: Path) -> None:
    """Another program's SQLite file is refused, and not changed by looking at it."""
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE mine (a)")
    other.close()
    path.chmod(0o600)
    before = path.read_bytes()

    with pytest.raises(LedgerError, match="not a ledger"):
        file.prepare(path, NOW)

    assert before == path.read_bytes()


def test_foreign_application_is_refused(path: Path) -> None:
    """An empty SQLite file that another program marked as its own is refused."""
    other = apsw.Connection(str(path))
    other.pragma("application_id", 7)
    other.close()
    path.chmod(0o600)

    with pytest.raises(LedgerError, match="not a ledger"):
        file.prepare(path, NOW)


def test_no_sqlite_is_refused(path: Path) -> None:
    """A file that is no SQLite file at all is refused."""
    path.touch(0o600)
    path.write_text("something else entirely\n" * 100)

    with pytest.raises(LedgerError, match="not a ledger"):
        file.prepare(path, NOW)


def test_newer_schema_is_refused(path: Path) -> None:
    """A ledger of a newer version is refused with the way out."""
    file.prepare(path, NOW)
    newer = apsw.Connection(str(path))
    newer.pragma("user_version", 9_999)
    newer.close()

    with pytest.raises(LedgerError, match=r"newer version.*9999.*Start that version"):
        file.prepare(path, NOW)


MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/vdb /home/local ext4 rw 0 0
//server/share /mnt/with\\040blank cifs rw 0 0
tmpfs /home/over tmpfs rw 0 0
server:/x /home/over nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/var/lib/vouchback", "ext4"),
        ("/home", "nfs4"),
        ("/home/someone", "nfs4"),
        ("/home2", "ext4"),
        ("/home/local/data", "ext4"),
        ("/mnt/with blank/data", "cifs"),
        ("/home/over", "nfs"),
    ],
)
def test_filesystem(folder: str, expected: str) -> None:
    """The file system of a folder is that of the deepest, then latest, mount above it."""
    assert file.filesystem(Path(folder), MOUNTS) == expected


def test_network_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger on a network file system is refused before a file is made there (F81)."""
    mounts = path.with_name("mounts")
    mounts.write_text(f"server:/x {path.parent} nfs4 rw 0 0\n")
    monkeypatch.setattr(file, "MOUNTS", mounts)

    with pytest.raises(LedgerError, match=r"network file system \(nfs4\)"):
        file.prepare(path, NOW)

    assert not path.exists()


def test_missing_folder(tmp_path: Path) -> None:
    """A folder that is not there is the operator's to make."""
    with pytest.raises(LedgerError, match="No such file"):
        file.Lock(tmp_path / "none" / "ledger.db")
    with pytest.raises(LedgerError, match="No such file"):
        file.prepare(tmp_path / "none" / "ledger.db", NOW)


def test_migration_is_whole_or_not_at_all(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration that fails midway leaves the version before, which opens again."""
    broken = "CREATE TABLE half (a); CREATE TABLE event (a);"
    good = list(file._steps())
    steps = [*good, (len(good) + 1, broken)]
    file.prepare(path, NOW)

    with monkeypatch.context() as patch:
        patch.setattr(file, "_steps", lambda: iter(steps))
        with pytest.raises(LedgerError, match="event already exists"):
            file.prepare(path, NOW)

    file.prepare(path, NOW)
    ledger = apsw.Connection(str(path))
    assert ledger.pragma("user_version") == len(good)
    assert not ledger.table_exists("main", "half")
    assert tmp_path == path.parent


@pytest.mark.anyio
async def test_one_owner(open_ledger: Open) -> None:
    """A ledger that is open is refused with the way out; closed, it may be had."""
    first = open_ledger()

    with pytest.raises(LedgerError, match=r"in use by another process.*redis"):
        open_ledger()

    await first.close()
    await open_ledger().close()


@pytest.mark.anyio
async def test_refusal_lets_go(path: Path, open_ledger: Open) -> None:
    """A ledger that could not be opened is not held."""
    os.close(os.open(path, os.O_CREAT, 0o600))
    os.chmod(path, 0o644)  # noqa: PTH101
    with pytest.raises(LedgerError):
        open_ledger()
    os.chmod(path, 0o600)  # noqa: PTH101

    await open_ledger().close()


def test_recovered_commits_are_made_durable(path: Path, tmp_path: Path, disk: Disk) -> None:
    """What a killed process left in the log is synced before anything is answered from it."""
    file.prepare(path, NOW)
    killed = connection.writing(path)
    record(killed, new_event(), "cfl", NOW)
    copy = tmp_path / "copy.db"
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    killed.close()
    disk.fails["sync"] = apsw.SQLITE_IOERR_FSYNC
    with pytest.raises(LedgerError, match="cannot be opened"):
        file.prepare(copy, NOW)
    disk.fails.clear()
    disk.synced.clear()

    file.prepare(copy, NOW)

    assert disk.synced[:2] == ["wal", "db"]
    ledger = apsw.Connection(str(copy))
    assert ledger.execute("SELECT count(*) FROM event").fetchall() == [(1,)]
    ledger.close()


_KILLED = """
import asyncio, sys
from pathlib import Path
from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW, new_event

async def main():
    store = open_store(Path(sys.argv[1]), now=lambda: NOW)
    async def send(start):
        for number in range(start, 1_000_000, 8):
            await store.inbox.record(new_event(number), "cfl", NOW)
            print(number, flush=True)
    await asyncio.gather(*(send(start) for start in range(8)))

asyncio.run(main())
"""


@pytest.mark.anyio
async def test_killed_owner(path: Path, open_ledger: Open) -> None:
    """After kill -9 the ledger opens, and every event that was acknowledged is a duplicate."""
    child = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", _KILLED, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    acknowledged = [child.stdout.readline() for _ in range(300)]
    with pytest.raises(LedgerError, match="in use"):
        open_ledger()
    child.send_signal(signal.SIGKILL)
    acknowledged += child.stdout.read().splitlines()[:-1]
    child.wait()
    child.stdout.close()

    store = open_ledger()
    kinds = {
        type(await store.inbox.record(new_event(int(number)), "cfl", NOW))
        for number in acknowledged
    }
    fresh = await store.inbox.record(new_event(2_000_000), "cfl", NOW)
    await store.close()

    assert len(acknowledged) >= 299
    assert kinds == {Duplicate}
    assert isinstance(fresh, Recorded)
