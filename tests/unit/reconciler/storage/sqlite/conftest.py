"""A disk that can be told to fail, under the real engine."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import apsw
import pytest

from reconciler.storage.sqlite.store import SQLiteStore, open_store
from tests.support.builders import NOW


class Disk(apsw.VFS):  # type: ignore[misc]
    """Passes everything on to the real one, but notes syncs and fails what `fails` names."""

    def __init__(self) -> None:
        super().__init__("disk", "unix", makedefault=True)
        #: `sync` or `write`: the extended result code that it fails with.
        self.fails: dict[str, int] = {}
        #: How many calls of that kind still succeed first; after one failure all succeed again.
        self.succeeds_first: int | None = None
        #: Suffixes of the files that were synced, in order.
        self.synced: list[str] = []

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        """Open a file of this disk."""
        return _File(self, name, flags)

    def check(self, what: str) -> None:
        """Fail, if that is wanted."""
        if what in self.fails:
            if self.succeeds_first:
                self.succeeds_first -= 1
                return
            error = apsw.IOError(f"injected: {what}")
            error.extendedresult = self.fails[what]  # type: ignore[attr-defined]
            if self.succeeds_first is not None:
                self.fails.clear()
            raise error


class _File(apsw.VFSFile):  # type: ignore[misc]
    def __init__(self, disk: Disk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._suffix = path.rpartition("-")[2] if path.endswith("-wal") else "db"

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.check("sync")
        self._disk.synced.append(self._suffix)
        super().xSync(flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.check("write")
        super().xWrite(data, offset)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """Make all SQLite files of the test stand on a `Disk`."""
    disk = Disk()
    yield disk
    disk.fails.clear()
    disk.unregister()


@pytest.fixture
def fatal() -> list[BaseException]:
    """Collect what would have ended the process."""
    return []


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the test's ledger stands."""
    return tmp_path / "ledger.db"


@pytest.fixture
def open_ledger(path: Path, fatal: list[BaseException]) -> Callable[[], SQLiteStore]:
    """Open the test's ledger."""
    return lambda: open_store(path, now=lambda: NOW, on_fatal=fatal.append)


@pytest.fixture
async def store(
    anyio_backend: str, open_ledger: Callable[[], SQLiteStore]
) -> AsyncIterator[SQLiteStore]:
    """Give an open ledger. Tests that need the disk name it before the store."""
    assert anyio_backend == "asyncio"
    opened = open_ledger()
    yield opened
    await opened.close()
