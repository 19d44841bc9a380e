"""Moving what the WAL holds into the ledger's file, away from the commits.

A thread with a connection of its own does a PASSIVE checkpoint, which never blocks the writer, soon
after commits. Under constant load that alone never lets the WAL start over, so when it passes
`WAL_PAGES_MAX` the writer itself copies the little that is left, between two transactions.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import apsw

from reconciler.storage.sqlite import connection
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.faults import UNAVAILABLE, is_fatal

INTERVAL_S = 0.25
#: 32 MB of pages of 4 KiB; and how much further the WAL must grow before the writer tries again (a
#: reader that still needs an old page keeps the WAL from starting over).
WAL_PAGES_MAX = 8_192
WAL_PAGES_STEP = 2_048


class Checkpointer:
    """Its thread sleeps while nothing is committed."""

    def __init__(self, path: Path, on_fatal: Callable[[BaseException], None]) -> None:
        self._on_fatal = on_fatal
        self._ledger = connection.writing(path)
        self._committed, self._closing = threading.Event(), threading.Event()
        self._writer_at = WAL_PAGES_MAX
        self._thread = threading.Thread(target=self._work, name="ledger-checkpoint", daemon=True)
        self._thread.start()

    def committed(self, writer: Ledger) -> None:
        """Note a commit; called on the writer's thread, with its connection, after the COMMIT."""
        if not self._committed.is_set():
            self._committed.set()
        if writer.wal_pages < WAL_PAGES_MAX:
            self._writer_at = WAL_PAGES_MAX
        elif writer.wal_pages >= self._writer_at:
            self._writer_at = writer.wal_pages + WAL_PAGES_STEP
            self._checkpoint(writer)

    def close(self) -> None:
        """Stop the thread and close the connection."""
        self._closing.set()
        self._committed.set()
        self._thread.join()
        self._ledger.close()

    def _work(self) -> None:
        while self._committed.wait() and not self._closing.wait(INTERVAL_S):
            self._committed.clear()
            self._checkpoint(self._ledger)

    def _checkpoint(self, ledger: Ledger) -> None:
        try:
            ledger.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except UNAVAILABLE as error:
            # No harm done: the WAL still holds everything, and the next round tries again.
            if is_fatal(error):
                self._on_fatal(error)
