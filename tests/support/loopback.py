"""Raw servers on loopback: what they send is written by the test, byte for byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

#: Writes an answer; the request's head has been read already.
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Loopback:
    """A running server: its port, and the heads of the requests that it read."""

    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        """Its plain address."""
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(
    script: Script, tls: ssl.SSLContext | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Loopback]:
    """Serve `script` on a (free) port of loopback to every request of every connection."""
    server = Loopback()
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        try:
            while True:
                server.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await script(reader, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(talk(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(accept, host, port, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def answering(raw: bytes, *, close: bool = False) -> Script:
    """Make a script that sends `raw` and, if told so, closes."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)
        await writer.drain()
        if close:
            writer.close()
            await writer.wait_closed()
            raise ConnectionAbortedError

    return script


def trickling(start: bytes, piece: bytes, *, pause_s: float) -> Script:
    """Make a script that sends `start` and then `piece` for ever, with a pause between."""

    async def script(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return script
