"""An exchange that does not end well ends its connection; the library's part does what we rest on."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from reconciler.storage.errors import LedgerError
from reconciler.storage.redis import check, faults
from reconciler.storage.redis.address import Address, parse
from reconciler.storage.redis.connection import LOST, Command, Link
from tests.support import valkey
from tests.support.certificates import server_context

pytestmark = pytest.mark.anyio

ECHO: list[Command] = [(b"ECHO", b"mine")]


@contextlib.asynccontextmanager
async def opened(address: Address) -> AsyncIterator[Link]:
    """Open a link; close it in the end."""
    link = Link(address)
    try:
        assert await link.open()
        yield link
    finally:
        await link.close()


@contextlib.asynccontextmanager
async def saying(answer: bytes, *, chunk: bytes = b"PING") -> AsyncIterator[Address]:
    """Run a server that greets well, and says `answer` to whatever holds `chunk`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(answer if chunk in data else b"+OK\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield Address("test", port=server.sockets[0].getsockname()[1])


async def test_many_answers(server: valkey.Server) -> None:
    """Answers come in the order of the commands, whatever their kind and size; errors are answers."""
    big = b"x" * 300_000
    commands: list[Command] = [
        *((b"SET", b"{a}", big), (b"GET", b"{a}"), (b"INCR", b"{a}"), (b"EVALSHA", b"0" * 40, 0)),
        *((b"GET", b"{none}"), (b"LRANGE", b"{none}", 0, -1), (b"ECHO", b"")),
    ]
    async with opened(parse(server.url())) as link:
        assert not await link.open()
        done, got, refused, forgotten, *rest = await link.exchange(commands, 5)

    assert [b"OK", big, [None, [], b""]] == [done, got, rest]
    assert isinstance(refused, ResponseError)
    assert faults.text(refused) == "ERR value is not an integer or out of range"
    assert faults.code(forgotten) == faults.NOSCRIPT


async def test_cancelled_exchange(server: valkey.Server) -> None:
    """After an exchange that was cancelled the next one gets its own answers, never the former's."""
    async with opened(parse(server.url())) as link:
        for wait_s in (0.0, 0.001, 0.02):
            task = asyncio.create_task(link.exchange([(b"BLPOP", b"{none}", 1), *ECHO], 5))
            await asyncio.sleep(wait_s)
            task.cancel()
            await asyncio.wait([task])
            await link.open()
            assert await link.exchange([(b"ECHO", b"other")], 5) == [b"other"]


async def test_late_answers(server: valkey.Server) -> None:
    """The time is for the whole exchange; what comes after it is nobody's."""
    async with opened(parse(server.url())) as link:
        with pytest.raises(TimeoutError, match=r"no answer within 0\.1 s"):
            await link.exchange([*ECHO, (b"BLPOP", b"{none}", 0.3)], 0.1)  # type: ignore[list-item]
        assert await link.open()
        assert await link.exchange(ECHO, 5) == [b"mine"]


async def test_answer_of_nobodys() -> None:
    """An answer more than was asked for costs the connection, and is taken for nobody's."""
    async with saying(b"+first\r\n+second\r\n") as address, opened(address) as link:
        assert await link.exchange([(b"PING",)], 5) == [b"first"]
        assert await link.open()
        assert await link.exchange([(b"PING",)], 5) == [b"first"]


@pytest.mark.parametrize(
    "answer",
    [
        b"-LOADING the dataset\r\n",
        b"-NOAUTH Authentication required.\r\n",
        b"-ERR max number of clients reached\r\n",
        b"!what\r\n",
    ],
)
async def test_answers_that_end_the_connection(answer: bytes) -> None:
    """A server that serves nobody, or that nobody understands, is a connection that was lost."""
    async with saying(answer) as address, opened(address) as link:
        with pytest.raises(LOST):
            await link.exchange([(b"PING",)], 5)
        assert await link.open()


async def test_dropped(server: valkey.Server) -> None:
    """A connection that was dropped is replaced by a new one."""
    async with opened(parse(server.url())) as link:
        (before,) = await link.exchange([(b"CLIENT", b"ID")], 5)
        link.drop()
        assert await link.open()
        (after,) = await link.exchange([(b"CLIENT", b"ID")], 5)

    assert after > before


async def test_nobody_greets() -> None:
    """Opening a connection to a server that says nothing takes a bounded time."""
    async with saying(b"", chunk=b"SETNAME") as address:
        link = Link(address)
        async with asyncio.timeout(3):
            with pytest.raises(TimeoutError, match=r"no connection within 1\.0 s"):
                await link.open()
            with pytest.raises(LedgerError, match="cannot be reached"):
                await asyncio.to_thread(check.start, address)


async def test_user_and_password(tmp_path: Path) -> None:
    """A user with a password is let in, by TCP and by a socket's path; a wrong password is said."""
    path = tmp_path / "s"
    with valkey.running(tmp_path / "data", unixsocket=str(path)) as server:
        server.ask("ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all")
        server.ask("ACL", "SETUSER", "default", "off")
        for url in (f"redis://me@127.0.0.1:{server.port}/", f"unix://me@{path}"):
            address = parse(url, "secret")
            await asyncio.to_thread(check.start, address)
            async with opened(address) as link:
                assert await link.exchange([(b"ACL", b"WHOAMI")], 5) == [b"me"]
            with pytest.raises(LedgerError, match="WRONGPASS") as caught:
                await asyncio.to_thread(check.start, parse(url, "wrong!"))
            assert "wrong!" not in str(caught.value)
            with pytest.raises(LOST):
                await Link(parse(url, "wrong!")).open()


async def test_tls(server: valkey.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With TLS the server must have a certificate that is trusted, for the host of the URL."""
    context, trusted = server_context(tmp_path, ["127.0.0.1"])

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.gather(carry(reader, here), carry(there, writer))

    async with await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context) as outside:
        port = outside.sockets[0].getsockname()[1]
        secure, misnamed = (
            parse(f"rediss://{host}:{port}/") for host in ("127.0.0.1", "localhost")
        )
        with pytest.raises(LOST):
            await Link(secure).open()
        with pytest.raises(LedgerError, match="cannot be reached"):
            await asyncio.to_thread(check.start, secure)

        monkeypatch.setenv(ssl.get_default_verify_paths().openssl_cafile_env, str(trusted))
        await asyncio.to_thread(check.start, secure)
        async with opened(secure) as link:
            assert await link.exchange(ECHO, 5) == [b"mine"]
        with pytest.raises(LOST):
            await Link(misnamed).open()
        with pytest.raises(LedgerError, match="cannot be reached"):
            await asyncio.to_thread(check.start, misnamed)


async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Carry one direction of a connection, to its end."""
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            sink.write(data)
    sink.close()
