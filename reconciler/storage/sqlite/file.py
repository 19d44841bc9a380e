"""The ledger's file before anybody works on it: private, ours, of this program's version, locked.

`prepare` makes the file where there is none and brings its schema up to date, one numbered file of
`schema/` a transaction. It refuses what it does not know instead of guessing. `Lock` sees to it
that one process owns a ledger.
"""

import fcntl
import os
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import apsw

from reconciler.storage.errors import LedgerError
from reconciler.storage.sqlite import connection
from reconciler.storage.sqlite.connection import Ledger

#: "vouc": what makes a SQLite file a ledger.
APPLICATION_ID = 0x766F7563
OTHERS = 0o077
MOUNTS = Path("/proc/mounts")
#: Their locks and syncs are not what SQLite's log needs (https://sqlite.org/wal.html).
NETWORKS = frozenset({"afs", "cifs", "fuse.sshfs", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"})


class Lock:
    """Held while a process owns the ledger; the kernel lets go when the process ends."""

    def __init__(self, ledger_path: Path) -> None:
        path = ledger_path.with_name(ledger_path.name + ".lock")
        try:
            self._file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LedgerError(f"{path}: {error.strerror}; create its folder, private") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise LedgerError(
                f"{ledger_path} is in use by another process. Stop that one, or let both share a "
                "Redis or Valkey ledger (storage.url = redis://...)."
            ) from error

    def release(self) -> None:
        """Let another process have the ledger."""
        os.close(self._file)


def prepare(path: Path, now: int) -> None:
    """Leave a ledger of this program's version at `path`, or raise `LedgerError`."""
    _keep_off_networks(path)
    _create(path)
    try:
        _keep_foreign_out(path)
        ledger = connection.writing(path)
        try:
            _migrate(ledger, path, now)
            # A killed process may have left commits that the kernel knows but the disk does not.
            # From here on what can be read is durable, so an answer may rest on it.
            ledger.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finally:
            ledger.close()
    except apsw.NotADBError as error:
        raise LedgerError(f"{path} is not a ledger; name another path in storage.url") from error
    except apsw.Error as error:
        raise LedgerError(f"{path} cannot be opened: {error}") from error


def _keep_off_networks(path: Path) -> None:
    kind = filesystem(path.parent.resolve(), MOUNTS.read_text()) if MOUNTS.exists() else None
    if kind in NETWORKS:
        raise LedgerError(
            f"{path} is on a network file system ({kind}), which does not keep commits and locks. "
            "Name a path on a local disk in storage.url."
        )


def filesystem(folder: Path, mounts: str) -> str | None:
    """Return the type of the file system that a folder is on, from the text of /proc/mounts."""
    kind, deepest = None, 0
    for line in mounts.splitlines():
        _, escaped, kind_here, *_ = line.split(" ")
        # Blanks, tabs, line feeds and backslashes in a path are written as three octal digits.
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped))
        if folder.is_relative_to(point) and len(point.parts) >= deepest:
            kind, deepest = kind_here, len(point.parts)
    return kind


def _create(path: Path) -> None:
    """Create the file for its owner only, and its entry in the folder, or check its mode."""
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if path.stat().st_mode & OTHERS:
            raise LedgerError(
                f"{path} can be read or written by others. Run: chmod 600 {path}"
            ) from None
        return
    except OSError as error:
        raise LedgerError(f"{path}: {error.strerror}") from error
    os.close(file)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _keep_foreign_out(path: Path) -> None:
    """Raise unless the file is a ledger or empty; a foreign file is not changed by looking."""
    look = Ledger(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        if look.pragma("application_id") == APPLICATION_ID:
            return
        if look.one("SELECT 1 FROM sqlite_schema") or look.pragma("application_id") != 0:
            raise LedgerError(
                f"{path} is a SQLite file, but not a ledger; name another path in storage.url"
            )
    finally:
        look.close()


def _migrate(ledger: Ledger, path: Path, now: int) -> None:
    stands = ledger.pragma("user_version")
    if stands > newest():
        raise LedgerError(
            f"{path} was written by a newer version (schema {stands},"
            f" this program knows {newest()}). Start that version again, or restore the copy made"
            " before the upgrade."
        )
    for version, script in list(_steps())[stands:]:
        with ledger:
            ledger.execute(script)
            ledger.execute("INSERT INTO migration (version, at) VALUES (?, ?)", (version, now))
            ledger.pragma("application_id", APPLICATION_ID)
            ledger.pragma("user_version", version)


def newest() -> int:
    """Return the schema's version that this program knows."""
    return len(list(_steps()))


def _steps() -> Iterator[tuple[int, str]]:
    """Yield the migrations' numbers, 1 and up without a gap, and their SQL."""
    folder = resources.files("reconciler.storage.sqlite") / "schema"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    for number, name in enumerate(names, start=1):
        assert int(name[:4]) == number, name
        yield number, (folder / name).read_text("utf-8")
