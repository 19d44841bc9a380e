"""Examines a ledger's file without changing what is in it, for `vouchback doctor`.

Where a process owns the ledger, only what can be seen from outside is looked at: that process says
itself whether it can write. Otherwise a real durable write is done, of no meaning.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw

from reconciler.storage.errors import LedgerError
from reconciler.storage.finding import Finding, Level
from reconciler.storage.sqlite import connection, file, upkeep

#: Below the first nothing should be received, below the second somebody should act.
FREE_BYTES_MIN, FREE_BYTES_LOW = 100 << 20, 1 << 30


def examine(path: Path, now: int) -> Iterator[Finding]:
    """Yield what is found at `path`; `now` (ms) dates the write."""
    folder = path.parent
    if not folder.is_dir():
        yield _missing(folder)
        return
    yield _place(folder.resolve())
    yield _space(folder)
    if not path.exists():
        yield Finding("ledger", Level.OK, f"{path} is not there yet; the first start makes it")
        yield _folder_write(folder)
        return
    if path.stat().st_mode & file.OTHERS:
        text = f"{path} can be read or written by others"
        yield Finding("ledger", Level.FAILED, text, f"chmod 600 {path}")
    yield from _inside(path, now)


def _missing(folder: Path) -> Finding:
    if folder.parent.is_dir():
        return Finding("ledger", Level.OK, f"{folder} is not there yet; the first start makes it")
    text = f"{folder} cannot be made: {folder.parent} does not exist"
    return Finding("ledger", Level.FAILED, text, "create it, or name another path in storage.url")


def _place(folder: Path) -> Finding:
    kind = file.filesystem(folder, file.MOUNTS.read_text()) if file.MOUNTS.exists() else None
    if kind in file.NETWORKS:
        text = f"{folder} is on a network file system ({kind}), which keeps no commits and locks"
        return Finding("file system", Level.FAILED, text, "name a local path in storage.url")
    return Finding("file system", Level.OK, f"{folder} is local ({kind or 'kind unknown'})")


def _space(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free >> 20} MiB are free at {folder}"
    if free >= FREE_BYTES_LOW:
        return Finding("disk", Level.OK, text)
    level = Level.FAILED if free < FREE_BYTES_MIN else Level.WARNING
    return Finding("disk", level, text, "make room: events are answered 503 when it is full")


def _folder_write(folder: Path) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as probe:
            probe.write(b"?")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        text = f"{folder} cannot be written: {error.strerror}"
        return Finding("write", Level.FAILED, text, "let the server's user write there")
    return Finding("write", Level.OK, "a file was written to disk there")


def _inside(path: Path, now: int) -> Iterator[Finding]:
    try:
        lock = file.Lock(path)
    except LedgerError:
        yield Finding("ledger", Level.OK, f"{path} is owned by a running process")
        return
    try:
        stands = _schema(path)
        yield _version(path, stands)
        if 0 < stands <= file.newest():
            yield _write(path, now)
    except (apsw.Error, LedgerError) as error:
        yield Finding("ledger", Level.FAILED, f"{path}: {error}", "name a ledger in storage.url")
    finally:
        lock.release()


def _schema(path: Path) -> int:
    """Return the version of a ledger's schema; 0: an empty file."""
    ledger = connection.reading(path)
    try:
        stands: int = ledger.pragma("user_version")
        is_empty = ledger.one("SELECT 1 FROM sqlite_schema") is None
        if ledger.pragma("application_id") != file.APPLICATION_ID and not is_empty:
            raise LedgerError("it is a SQLite file, but not a ledger")
        return stands
    finally:
        ledger.close()


def _version(path: Path, stands: int) -> Finding:
    newest = file.newest()
    if stands == 0:
        return Finding("ledger", Level.OK, f"{path} is empty; the first start fills it")
    if stands > newest:
        text = f"schema {stands} is newer than this program, which knows {newest}"
        return Finding("ledger", Level.FAILED, text, "start the version that wrote it")
    if stands < newest:
        text = f"schema {stands}: the next start brings it to {newest}"
        return Finding("ledger", Level.WARNING, text, f"copy {path} first")
    return Finding("ledger", Level.OK, f"{path}, schema {stands}")


def _write(path: Path, now: int) -> Finding:
    # Opening refuses anything but a write-ahead log with synchronous = FULL.
    ledger = connection.writing(path)
    try:
        with ledger:
            upkeep.probe(ledger, now)
    finally:
        ledger.close()
    return Finding("write", Level.OK, "a durable write was done (WAL, synchronous FULL)")
