"""One connection to a server: what is written together is answered together, in order.

The connection is the library's: it dials, authenticates, encrypts and speaks the protocol. What is
ours is that an exchange which did not end well, for whatever reason, ends the connection: no later
exchange can read an answer of an earlier one. Nothing is sent a second time.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol, cast

import redis
from redis import asyncio as aio
from redis.exceptions import RedisError, ResponseError

from reconciler.storage.redis.address import Address

#: A command and its arguments. Texts are bytes already.
Command = tuple[bytes | int, ...]
#: What a server answers: bytes, int, None, a list of those, or a `ResponseError` as a value.
Reply = Any

#: How long opening a connection may take, and at start each of its first answers.
CONNECT_S = 1.0

#: What an exchange raises. A `TimeoutError` is an `OSError`.
LOST = (OSError, RedisError)


class Connection(Protocol):
    """What we use of the library's connection, with the types that it does not tell."""

    is_connected: bool

    async def connect(self) -> None:
        """Dial and greet, once."""

    async def disconnect(self, nowait: bool = False) -> None:
        """End the connection; it can be opened again."""

    async def can_read(self) -> bool:
        """Tell whether there is something to read, the end among it."""

    def mark_for_reconnect(self) -> None:
        """Remember that another connection is wanted."""

    def should_reconnect(self) -> bool:
        """Tell whether another connection is wanted; a new one forgets it."""

    def pack_commands(self, commands: Sequence[Command]) -> list[bytes]:
        """Return commands as they are written."""

    async def send_packed_command(self, command: list[bytes], check_health: bool = True) -> None:
        """Write; it would open a connection that is not, unasked."""

    async def read_response(self) -> Reply:
        """Return the next answer, or raise it where it is an error."""


def connection(address: Address) -> Connection:
    """Return a connection that is yet to be opened. Whoever waits on it says for how long."""
    timeouts = {"socket_connect_timeout": CONNECT_S, "socket_timeout": None}
    return cast("Connection", _kind(aio, address)(**address.parameters(), **timeouts))


def blocking(address: Address) -> Any:
    """Return the library's blocking connection, for where nothing else runs yet."""
    timeouts = {"socket_connect_timeout": CONNECT_S, "socket_timeout": CONNECT_S}
    return _kind(redis, address)(**address.parameters(), **timeouts)


def _kind(library: Any, address: Address) -> Any:
    if address.path is not None:
        return library.UnixDomainSocketConnection
    return library.SSLConnection if address.tls else library.Connection


class Link:
    """A connection that is opened when it is needed, and again after it was lost.

    One exchange at a time: its user is one task.
    """

    def __init__(self, address: Address) -> None:
        self._connection = connection(address)

    async def open(self) -> bool:
        """Open the connection if there is none; tell whether it is a new one."""
        if self._connection.is_connected:
            # What can be read before anything was asked is the end, or an answer of nobody's.
            if not self._connection.should_reconnect() and not await self._connection.can_read():
                return False
            await self._connection.disconnect(nowait=True)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._connection.connect()
        except BaseException as error:
            await self._connection.disconnect(nowait=True)
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"no connection within {CONNECT_S} s") from error
            raise
        return True

    async def exchange(self, commands: Sequence[Command], timeout_s: float) -> list[Reply]:
        """Write the commands at once and return their answers; `LOST` says what it raises.

        `timeout_s` is for all of it. The connection must be open.
        """
        packed = self._connection.pack_commands(commands)
        try:
            async with asyncio.timeout(timeout_s):
                await self._connection.send_packed_command(packed, check_health=False)
                return [await self._answer() for _ in commands]
        except BaseException as error:
            # Also when cancelled: what was asked is still going to be answered.
            await self._connection.disconnect(nowait=True)
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"no answer within {timeout_s} s") from error
            raise

    async def _answer(self) -> Reply:
        try:
            return await self._connection.read_response()
        except ResponseError as error:
            return error

    def drop(self) -> None:
        """Use a new connection from now on."""
        self._connection.mark_for_reconnect()

    async def close(self) -> None:
        """End the connection."""
        await self._connection.disconnect()
