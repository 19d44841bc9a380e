"""Connections keep what they commit."""

from pathlib import Path

import apsw
import pytest

from reconciler.storage.errors import LedgerError
from reconciler.storage.sqlite import connection
from reconciler.storage.sqlite.file import prepare
from reconciler.storage.sqlite.store import SQLiteStore
from tests.support.builders import NOW, new_event
from tests.unit.reconciler.storage.sqlite.conftest import Disk


def test_writing_is_durable(path: Path) -> None:
    """A writing connection is in WAL mode with synchronous FULL, and checks what it stores."""
    prepare(path, NOW)
    ledger = connection.writing(path)

    pragmas = ("journal_mode", "synchronous", "foreign_keys", "trusted_schema")
    assert [ledger.pragma(name) for name in pragmas] == ["wal", 2, 1, 0]
    assert ledger.pragma("wal_autocheckpoint") == 0
    assert ledger.pragma("fullfsync") == 1
    ledger.close()


def test_reading_cannot_write(path: Path) -> None:
    """A reader's connection cannot change the ledger."""
    prepare(path, NOW)
    ledger = connection.reading(path)

    with pytest.raises(apsw.ReadOnlyError):
        ledger.execute("DELETE FROM event")
    ledger.close()


def test_no_wal_no_ledger() -> None:
    """Where SQLite cannot keep a write-ahead log, nothing is acknowledged: it does not start."""
    with pytest.raises(LedgerError, match="local file system"):
        connection.writing(Path(":memory:"))


@pytest.mark.anyio
async def test_every_answer_follows_a_sync(disk: Disk, store: SQLiteStore) -> None:
    """New, duplicate and conflict are answered after the log was synced, each one (F81, R4)."""
    for event in (new_event(), new_event(), new_event(body=b"other")):
        disk.synced.clear()
        await store.inbox.record(event, "cfl", NOW)
        assert "wal" in disk.synced


@pytest.mark.anyio
async def test_probe_follows_a_sync(disk: Disk, store: SQLiteStore) -> None:
    """A probe proves that a durable write can be done, also when nothing changes by it."""
    for _ in range(2):
        disk.synced.clear()
        await store.upkeep.probe(NOW)
        assert "wal" in disk.synced
