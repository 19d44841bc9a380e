"""Refused requests on their way to the ledger: noted at once, written together, never unbounded.

A refusal promises nothing to its sender, so it must not cost a durable write: it waits here for a
moment and goes to the store with the others. Past a bound it is only counted, and the log says so:
a flood can neither fill memory nor the disk (the store keeps the first few of a minute whole and
counts the rest).
"""

import asyncio
from collections.abc import Callable

from reconciler import logs
from reconciler.domain.event import Refusal
from reconciler.storage.contract import Inbox
from reconciler.storage.errors import StorageUnavailableError

WAITING_MAX = 2_000
FLUSH_S = 0.25


class RefusalLog:
    """Collects refusals and writes them a few times a second."""

    def __init__(self, inbox: Inbox, clock: Callable[[], int]) -> None:
        self._inbox, self._clock = inbox, clock
        self._waiting: list[Refusal] = []
        self._log = logs.get("refusals")
        #: Refusals that were not written because too many waited or the store could not take them.
        self.dropped = 0

    def note(self, refusal: Refusal) -> None:
        """Take a refusal; never waits."""
        if len(self._waiting) < WAITING_MAX:
            self._waiting.append(refusal)
        else:
            self.dropped += 1

    async def flush(self) -> None:
        """Write what waits."""
        batch, self._waiting = self._waiting, []
        if not batch:
            return
        try:
            await self._inbox.refuse(batch, self._clock())
        except StorageUnavailableError as error:
            self.dropped += len(batch)
            self._log.warning("refusals_dropped", count=len(batch), error=str(error))

    async def run(self) -> None:
        """Flush for ever; cancelled at shutdown, after which the caller flushes once more."""
        while True:
            await asyncio.sleep(FLUSH_S)
            await self.flush()
