"""Connections to a ledger's file, set so that what is committed is on disk.

Every connection that writes runs in WAL mode with `synchronous=FULL`, which is read back after it
was set: with NORMAL a power loss takes acknowledged commits away. Nothing here knows a table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from reconciler.storage.errors import LedgerError

_FULL = 2
#: How long a connection waits for another one's lock, in milliseconds: a caller whose provider
#: waits for the answer is told "try again" before that provider gives up.
_BUSY_MS = 1_500

_WRITING = (
    "PRAGMA synchronous = FULL",
    # On macOS an fsync reaches the disk only so; elsewhere these change nothing.
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    # The checkpointer does it, away from the commits.
    "PRAGMA wal_autocheckpoint = 0",  # must precede the WAL hook: it is one itself
    "PRAGMA recursive_triggers = ON",
)
_ALWAYS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -32000",
)

Value = str | bytes | int | None
#: A row as it was read; whoever reads one knows its columns.
Row = tuple[Any, ...]


class Ledger(apsw.Connection):
    """One connection to the ledger's file."""

    #: Set by a step that made work due or due sooner; read and cleared by who commits it.
    work_changed = False
    #: Pages in the WAL after the last commit of this connection.
    wal_pages = 0

    def run(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """Execute one statement and return all its rows.

        A text that is no Unicode (a provider's JSON can say a lone surrogate) is bound as bytes; a
        column of type ANY takes it and `text` gives it back.
        """
        try:
            return self.execute(sql, values).fetchall()
        except UnicodeEncodeError:
            return self.execute(sql, [_bindable(value) for value in values]).fetchall()

    def one(self, sql: str, values: Sequence[Value] = ()) -> Row | None:
        """Execute one statement and return its first row."""
        rows = self.run(sql, values)
        return rows[0] if rows else None


def _bindable(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def text(value: Value) -> str:
    """Return the text that was bound to a column of type ANY."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    assert isinstance(value, str)
    return value


def writing(path: Path) -> Ledger:
    """Open a connection for writing. The file exists and is a ledger."""
    ledger = Ledger(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    ledger.set_busy_timeout(_BUSY_MS)
    ledger.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    mode = ledger.pragma("journal_mode", "wal")
    for statement in (*_ALWAYS, *_WRITING):
        ledger.execute(statement)
    ledger.set_wal_hook(_note_wal)
    if mode != "wal" or ledger.pragma("synchronous") != _FULL:
        ledger.close()
        raise LedgerError(f"{path}: SQLite does not keep commits here; use a local file system")
    return ledger


def _note_wal(ledger: apsw.Connection, _database: str, pages: int) -> int:
    assert isinstance(ledger, Ledger)
    ledger.wal_pages = pages
    return apsw.SQLITE_OK


def reading(path: Path) -> Ledger:
    """Open a connection that cannot write."""
    ledger = Ledger(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    ledger.set_busy_timeout(_BUSY_MS)
    for statement in _ALWAYS:
        ledger.execute(statement)
    return ledger
