"""Reads beside the writer: a few threads, each with a connection of its own that cannot write."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite import connection
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.faults import UNAVAILABLE, unavailable

T = TypeVar("T")
#: One slow page must not hold up the look-up of a token.
THREADS = 2


class Readers:
    """A read sees every write whose result was seen before the read began."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="ledger-reader")
        self._own = threading.local()
        self._opened: list[Ledger] = []
        self._closed = False

    async def read(self, step: Callable[[Ledger], T]) -> T:
        """Run the step on one of the threads."""
        if self._closed:
            raise StorageUnavailableError("the ledger is closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._run, step)

    async def close(self) -> None:
        """Finish what runs, then close the connections."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        for ledger in self._opened:
            ledger.close()

    def _run(self, step: Callable[[Ledger], T]) -> T:
        try:
            return step(self._connection())
        except UNAVAILABLE as error:
            raise unavailable(error) from error

    def _connection(self) -> Ledger:
        mine: Ledger | None = getattr(self._own, "ledger", None)
        if mine is None:
            mine = self._own.ledger = connection.reading(self._path)
            self._opened.append(mine)
        return mine
