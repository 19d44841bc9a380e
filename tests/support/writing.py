"""Steps that keep the SQLite engine's writer busy."""

import asyncio
import threading
from pathlib import Path

from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.store import SQLiteStore
from tests.support.builders import NOW, new_event


class Held:
    """A step that keeps the writer busy until it is let go."""

    def __init__(self, store: SQLiteStore) -> None:
        self._go, self._runs = threading.Event(), threading.Event()
        self.done = asyncio.ensure_future(store._executor.write(self._step))

    async def running(self) -> None:
        """Return when the writer is busy with it."""
        assert await asyncio.to_thread(self._runs.wait, 5)

    async def let_go(self) -> None:
        """Let the writer go on."""
        self._go.set()
        await self.done

    def _step(self, _ledger: Ledger) -> None:
        self._runs.set()
        assert self._go.wait(10)


def size(path: Path) -> int:
    """Return a file's size in bytes."""
    return path.stat().st_size


def records(store: SQLiteStore, numbers: range) -> list["asyncio.Task[object]"]:
    """Start recording events."""
    return [
        asyncio.ensure_future(store.inbox.record(new_event(number), "cfl", NOW))
        for number in numbers
    ]
