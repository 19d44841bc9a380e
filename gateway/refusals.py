"""Refused requests on their way to the ledger: noted at once, written together, never unbounded.

A refusal promises nothing to its sender, so it must not cost a durable write: it waits here for a
moment and goes to the store with the others. Past a bound it is only counted, and the log says so:
a flood can neither fill memory nor the disk (the store keeps the first few of a minute whole and
counts the rest).
"""

import asyncio
import contextlib
from collections.abc import Callable

from reconciler import logs
from reconciler.domain.event import Refusal
from reconciler.storage.contract import Inbox
from reconciler.storage.errors import StorageUnavailableError

WAITING_MAX = 2_000
#: So many are written at once, without waiting for the next round: a flood is counted to the last.
FLUSH_AT = 500
FLUSH_S = 0.25


class RefusalLog:
    """Collects refusals and writes them a few times a second."""

    def __init__(self, inbox: Inbox, clock: Callable[[], int]) -> None:
        self._inbox, self._clock = inbox, clock
        self._waiting: list[Refusal] = []
        self._many = asyncio.Event()
        self._log = logs.get("refusals")
        #: Refusals that were not written because too many waited or the store could not take them.
        self.dropped = 0
        self._unlogged = 0

    def note(self, refusal: Refusal) -> None:
        """Take a refusal; never waits."""
        if len(self._waiting) == WAITING_MAX:
            self.dropped += 1
            self._unlogged += 1
            return
        self._waiting.append(refusal)
        if len(self._waiting) == FLUSH_AT:
            self._many.set()

    async def flush(self) -> None:
        """Write what waits."""
        self._many.clear()
        if self._unlogged:
            self._log.warning("refusals_dropped", count=self._unlogged, error="too many waited")
            self._unlogged = 0
        # In small steps: an event that arrives meanwhile does not wait for a whole flood.
        for _ in range(WAITING_MAX // FLUSH_AT):
            if self._waiting:
                batch, self._waiting = self._waiting[:FLUSH_AT], self._waiting[FLUSH_AT:]
                await self._write(batch)

    async def _write(self, batch: list[Refusal]) -> None:
        try:
            await self._inbox.refuse(batch, self._clock())
        except StorageUnavailableError as error:
            self.dropped += len(batch)
            self._log.warning("refusals_dropped", count=len(batch), error=str(error))

    async def run(self) -> None:
        """Flush for ever; cancelled at shutdown, after which the caller flushes once more."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    await self._many.wait()
            await self.flush()
