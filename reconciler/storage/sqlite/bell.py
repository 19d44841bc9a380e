"""Rung when a commit made work due; lets a worker sleep without missing it."""

import asyncio


class Bell:
    """A ring that nobody waited for is kept for the next who does."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Wake all who wait; called on the event loop's thread."""
        self._rung.set()

    async def wait(self, timeout_s: float) -> None:
        """Return when rung, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._rung.wait()
        except TimeoutError:
            return
        self._rung.clear()
