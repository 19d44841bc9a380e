"""Which of SQLite's errors are the world's, and which of those leave the disk's content unknown."""

import apsw

from reconciler.storage.errors import StorageUnavailableError

#: The world failed: no space, no file handle, a read-only or broken disk, another's lock.
UNAVAILABLE = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.CorruptError,
    apsw.FullError,
    apsw.IOError,
    apsw.InterruptError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.NotADBError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)

#: After these the kernel may have thrown pages away that a second fsync would call written.
_FATAL = frozenset({apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC})


def is_fatal(error: apsw.Error) -> bool:
    """Tell whether an fsync failed."""
    # Set on every error that SQLite itself returned; apsw does not declare it.
    return getattr(error, "extendedresult", None) in _FATAL


def unavailable(error: apsw.Error) -> StorageUnavailableError:
    """Return what a caller meets, with the driver's error as its cause."""
    wrapped = StorageUnavailableError(f"the ledger cannot be used: {error}")
    wrapped.__cause__ = error
    return wrapped
