"""News that work became due, from every process that shares the ledger.

News only shorten a wait. What came while nobody waited is kept for the next wait; what may have
been missed while the connection was lost counts as news.
"""

import asyncio
import contextlib

from reconciler.storage.redis.address import Address
from reconciler.storage.redis.connection import CONNECT_S, LOST, connection

#: Between two tries to listen again.
_RETRY_S = 0.5


class News:
    """Listens from the first call on, until closed."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._channel = address.base + b":news"
        self._news = asyncio.Event()
        #: Set once the first try to listen has ended, well or not.
        self._tried = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def listening(self) -> None:
        """Return when nothing can be missed any more, or nothing can be heard at all."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen())
        await self._tried.wait()

    async def wait(self, timeout_s: float) -> None:
        """Return when there are news, or after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.listening()
                await self._news.wait()
        except TimeoutError:
            return
        self._news.clear()

    async def close(self) -> None:
        """Stop listening, and let go of all who wait."""
        self._tried.set()
        self._news.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _listen(self) -> None:
        try:
            while True:
                # Without news the waits are longer; that is all.
                with contextlib.suppress(*LOST):
                    await self._hear()
                self._tried.set()
                await asyncio.sleep(_RETRY_S)
        finally:
            self._tried.set()

    async def _hear(self) -> None:
        heard = connection(self._address)
        subscribe = heard.pack_commands([(b"SUBSCRIBE", self._channel)])
        try:
            async with asyncio.timeout(CONNECT_S):
                await heard.connect()
                await heard.send_packed_command(subscribe, check_health=False)
                await heard.read_response()
            if self._tried.is_set():
                self._news.set()
            self._tried.set()
            while True:
                await heard.read_response()
                self._news.set()
        finally:
            await heard.disconnect(nowait=True)
