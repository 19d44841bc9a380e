"""One connection to a server: what is written together is answered together, in order.

An exchange belongs to the connection, not to whoever awaits it: a caller that is cancelled leaves
nothing half read. A connection that is lost, or whose answers no longer fit, fails everything that
waits on it and is never used again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

from hiredis import HiredisError, Reader, ReplyError, pack_command

from reconciler.storage.redis.address import Address

#: A command and its arguments. Texts are bytes already.
Command = tuple[bytes | int, ...]
#: What a server answers: bytes, int, None, a list of those, or an error as a value.
Reply = Any


#: How long opening a connection may take, and each of its first answers.
CONNECT_S = 1.0


class ConnectionLostError(Exception):
    """The connection ended; what was written to it may or may not have been done."""


#: What an exchange raises. A `TimeoutError` is an `OSError`.
LOST = (OSError, ConnectionLostError)


class Connection(asyncio.Protocol):
    """Use `connect`."""

    def __init__(self, on_message: Callable[[Reply], None] | None = None) -> None:
        self._on_message = on_message
        self._reader = Reader()
        self._waiting: deque[tuple[int, list[Reply], asyncio.Future[list[Reply]]]] = deque()
        self._transport: asyncio.Transport | None = None
        self._lost = asyncio.get_running_loop().create_future()

    # ------------------------------------------------------------ for users

    @property
    def is_lost(self) -> bool:
        """True when no answer will come any more."""
        return self._lost.done()

    async def exchange(self, commands: Sequence[Command], timeout_s: float) -> list[Reply]:
        """Write the commands at once and return their answers; `ConnectionLostError`."""
        answers = self.send(commands)
        try:
            # Not cancelled with the caller: the answers are read all the same.
            return await asyncio.wait_for(asyncio.shield(answers), timeout_s)
        except TimeoutError:
            self.abort(f"no answer within {timeout_s} s")
            return await answers

    def send(self, commands: Sequence[Command]) -> asyncio.Future[list[Reply]]:
        """Write the commands at once; the future holds all their answers."""
        future: asyncio.Future[list[Reply]] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_noted)
        if self._transport is None or self.is_lost:
            future.set_exception(ConnectionLostError("the connection is closed"))
            return future
        self._waiting.append((len(commands), [], future))
        self._transport.write(pack(commands))
        return future

    def abort(self, reason: str) -> None:
        """End the connection at once; everything that waits fails."""
        self._fail(ConnectionLostError(reason))
        if self._transport is not None:
            self._transport.abort()

    async def lost(self) -> None:
        """Return when the connection has ended."""
        await asyncio.shield(self._lost)

    async def close(self) -> None:
        """End the connection; nobody should wait on it any more."""
        self.abort("closed by us")
        await self.lost()

    # ------------------------------------------------------------ for asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                self._take(reply)
        except HiredisError as error:
            self.abort(f"unreadable answer: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._fail(ConnectionLostError(str(exc or "the server ended the connection")))
        if not self._lost.done():
            self._lost.set_result(None)

    def _take(self, reply: Reply) -> None:
        if self._waiting:
            wanted, replies, future = self._waiting[0]
            replies.append(reply)
            if len(replies) == wanted:
                self._waiting.popleft()
                future.set_result(replies)
        elif self._on_message is not None:
            self._on_message(reply)
        else:
            self.abort("an answer that nobody asked for")

    def _fail(self, error: ConnectionLostError) -> None:
        while self._waiting:
            _, _, future = self._waiting.popleft()
            future.set_exception(error)


def _noted(future: asyncio.Future[list[Reply]]) -> None:
    """Keep asyncio from complaining about an outcome that a cancelled caller did not fetch."""
    if not future.cancelled():
        future.exception()


def pack(commands: Sequence[Command]) -> bytes:
    """Return commands as they are written."""
    return b"".join(pack_command(command) for command in commands)  # type: ignore[arg-type]


def greeting(address: Address) -> list[Command]:
    """Return what a new connection says first."""
    name: Command = (b"CLIENT", b"SETNAME", b"vouchback")
    if address.password is None:
        return [name]
    user = () if address.user is None else (address.user.encode(),)
    return [(b"AUTH", *user, address.password.encode()), name]


async def connect(
    address: Address,
    first: Sequence[Command] = (),
    on_message: Callable[[Reply], None] | None = None,
) -> Connection:
    """Open a connection, greet, say what comes first; `OSError` or `ConnectionLostError`."""
    loop = asyncio.get_running_loop()
    make = partial(Connection, on_message)
    async with asyncio.timeout(CONNECT_S):
        if address.path is not None:
            _, connection = await loop.create_unix_connection(make, address.path)
        else:
            _, connection = await loop.create_connection(
                make, address.host, address.port, ssl=address.tls_context()
            )
    commands = [*greeting(address), *first]
    try:
        for reply in await connection.exchange(commands, CONNECT_S):
            if isinstance(reply, ReplyError):
                raise ConnectionLostError(str(reply))  # noqa: TRY301  ends the connection, as any
    except BaseException:
        connection.abort("the greeting failed")
        raise
    return connection


class Link:
    """A connection that is opened when it is needed, and again after it was lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Connection | None = None

    async def open(self) -> bool:
        """Open the connection if there is none; tell whether it is a new one."""
        if self._connection is not None and not self._connection.is_lost:
            return False
        self._connection = await connect(self._address)
        return True

    async def exchange(self, commands: Sequence[Command], timeout_s: float) -> list[Reply]:
        """Write the commands at once and return their answers; `LOST` says what it raises."""
        await self.open()
        assert self._connection is not None
        return await self._connection.exchange(commands, timeout_s)

    def drop(self, reason: str) -> None:
        """Use a new connection from now on."""
        if self._connection is not None:
            self._connection.abort(reason)

    async def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            await self._connection.close()
