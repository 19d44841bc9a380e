"""A ledger in one SQLite file, owned by one process."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from reconciler.storage import contract
from reconciler.storage.sqlite import file
from reconciler.storage.sqlite.bell import Bell
from reconciler.storage.sqlite.events import Events
from reconciler.storage.sqlite.inbox import Inbox
from reconciler.storage.sqlite.journal import Journal
from reconciler.storage.sqlite.limits import Limits
from reconciler.storage.sqlite.operations import Operations
from reconciler.storage.sqlite.published_keys import PublishedKeys
from reconciler.storage.sqlite.tokens import Tokens
from reconciler.storage.sqlite.upkeep import Upkeep
from reconciler.storage.sqlite.work import Work
from reconciler.storage.sqlite.writer import Executor, OnFatal, WriterThread, end_process


class StartExecutor(Protocol):
    """Makes the executor of an open ledger: `WriterThread`, or `Inline` in the simulation."""

    def __call__(self, path: Path, on_due: Callable[[], None], on_fatal: OnFatal) -> Executor:
        """Open the connections; `on_due` is called on the event loop's thread."""


class SQLiteStore:
    """All roles of one open ledger (`contract.Store`)."""

    inbox: contract.Inbox
    events: contract.Events
    operations: contract.Operations
    work: contract.Work
    journal: contract.Journal
    tokens: contract.Tokens
    published_keys: contract.PublishedKeys
    limits: contract.Limits
    upkeep: contract.Upkeep

    def __init__(self, executor: Executor, bell: Bell, lock: file.Lock) -> None:
        self._executor, self._bell, self._lock = executor, bell, lock
        self.inbox = Inbox(executor)
        self.events = Events(executor)
        self.operations = Operations(executor)
        self.work = Work(executor, bell)
        self.journal = Journal(executor)
        self.tokens = Tokens(executor)
        self.published_keys = PublishedKeys(executor)
        self.limits = Limits(executor)
        self.upkeep = Upkeep(executor)

    async def close(self) -> None:
        """Finish what was accepted, then close."""
        try:
            await self._executor.close()
        finally:
            self._lock.release()
            self._bell.ring()


def open_store(
    path: Path,
    *,
    now: Callable[[], int],
    executor: StartExecutor = WriterThread,
    on_fatal: OnFatal = end_process,
) -> SQLiteStore:
    """Open the ledger at `path`, a new one where there is none; `LedgerError` says the way out.

    `now` (milliseconds) dates the migrations. `on_fatal` is called, on any thread, when an fsync
    failed: it should not return.
    """
    lock = file.Lock(path)
    try:
        file.prepare(path, now())
        bell = Bell()
        return SQLiteStore(executor(path, bell.ring, on_fatal), bell, lock)
    except BaseException:
        lock.release()
        raise
