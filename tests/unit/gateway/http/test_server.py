"""Listeners in one event loop: binding, caps, deadlines under attack, and the graceful stop (F45)."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gateway.http.body import Room, read_body
from gateway.http.front import Front
from gateway.http.limits import HttpLimits
from gateway.http.server import Listener, ListenError, Stopped, bind, serve

pytestmark = pytest.mark.anyio

REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
SHORT = replace(HttpLimits(), head_s=0.5, linger_s=0.2)


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """Run everything on the loop of the product and on the plain one."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


class CommittingApp:
    """Reads the body, waits for `gate` as if for a durable commit, answers 200."""

    def __init__(self, *, open_gate: bool = True) -> None:
        self.gate = asyncio.Event()
        self.started = asyncio.Event()
        self.committed = 0
        self.cancelled = 0
        if open_gate:
            self.gate.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer after the commit."""
        self.started.set()
        await read_body(scope, receive, 1 << 20, Room(1 << 30))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.committed += 1
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
        )
        await send({"type": "http.response.body", "body": b""})


@dataclass
class Server:
    """A running server and the means to stop it."""

    ports: list[int]
    fronts: Sequence[Front]
    stop: asyncio.Event
    task: asyncio.Task[Stopped]

    async def stopped(self) -> Stopped:
        """Ask for the stop and wait for it."""
        self.stop.set()
        return await self.task


@asynccontextmanager
async def serving(
    *apps: Any, limits: HttpLimits | None = None, grace_s: float = 5.0
) -> AsyncIterator[Server]:
    """Run one listener an application."""
    listeners = [
        Listener(str(n), app, bind("127.0.0.1", 0, setting="test"), limits or HttpLimits())
        for n, app in enumerate(apps)
    ]
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve(listeners, on_ready=ready.set_result, stop=stop, grace_s=grace_s)
    )
    server = Server([x.address[1] for x in listeners], await ready, stop, task)
    try:
        yield server
    finally:
        await server.stopped()


async def connect(
    port: int, data: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection and send the data."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    return reader, writer


async def head_of(reader: asyncio.StreamReader) -> bytes:
    """Return the head of the next answer."""
    return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """Return everything up to the end of the connection; a reset is an end too."""
    try:
        return await asyncio.wait_for(reader.read(), 5)
    except ConnectionError:
        return b""


async def test_two_listeners_serve_their_own_application() -> None:
    """Public and internal traffic never meet."""
    public, internal = CommittingApp(), CommittingApp()
    async with serving(public, internal) as server:
        reader, writer = await connect(server.ports[1], REQUEST)
        head = await head_of(reader)
        writer.close()

    assert (
        head.split(b"\r\n")[0],
        public.committed,
        internal.committed,
    ) == (b"HTTP/1.1 200 OK", 0, 1)


async def test_answers_carry_a_date_and_no_server() -> None:
    """RFC 9110, 6.6.1 wants a date; who we are is nobody's business."""
    async with serving(CommittingApp()) as server:
        reader, writer = await connect(server.ports[0], REQUEST)
        head = (await head_of(reader)).lower()
        writer.close()

    assert (b"\r\ndate: " in head, b"\r\nserver: " in head) == (True, False)


async def test_date_goes_on() -> None:
    """The date is that of the answer, not of the start."""
    async with serving(CommittingApp(), limits=SHORT) as server:
        server.fronts[0].default_headers = [(b"date", b"long ago")]
        await asyncio.sleep(0.3)
        reader, writer = await connect(server.ports[0], REQUEST)
        head = await head_of(reader)
        writer.close()

    assert b" GMT\r\n" in head


def test_h11_is_never_loaded() -> None:
    """The slow parser, with rules of its own, is not there to be chosen by accident."""
    script = "import sys, gateway.http.server; print('h11' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )

    assert done.stdout.strip() == "False"


def test_taken_port_is_a_sentence() -> None:
    """The operator learns address and setting before anything else is started."""
    with bind("127.0.0.1", 0, setting="a") as first:
        port = first.getsockname()[1]

        with pytest.raises(ListenError) as caught:
            bind("127.0.0.1", port, setting="listen.public")

    expected = (
        f"cannot listen on 127.0.0.1 port {port} (setting listen.public): Address already in use"
    )
    assert expected == str(caught.value)


@pytest.mark.parametrize(
    ("host", "port"), [("not..a..name", 0), ("127.0.0.1", 70000), ("192.0.2.1", 0)]
)
def test_impossible_address_is_a_sentence(host: str, port: int) -> None:
    """A name without address, a port beyond 65,535 and a foreign address are told alike."""
    with pytest.raises(ListenError, match=rf"cannot listen on {host} port {port} \(setting s\): "):
        bind(host, port, setting="s")


async def test_connections_beyond_the_cap_are_turned_away() -> None:
    """SC-50: the cap holds, and places that become free are given again."""
    async with serving(CommittingApp(), limits=HttpLimits(connections_max=2)) as server:
        held = [await connect(server.ports[0], b"POST") for _ in range(2)]
        reader, writer = await connect(server.ports[0])
        turned_away = await rest_of(reader)
        writer.close()
        held[0][1].close()
        await asyncio.sleep(0.1)
        reader, writer = await connect(server.ports[0], REQUEST)
        served = await head_of(reader)
        for _, each in [*held, (reader, writer)]:
            each.close()

    assert (turned_away[9:12], served[9:12]) == (b"503", b"200")
    assert dict(server.fronts[0].refusals) == {"http_too_many_connections": 1}


async def test_one_peer_cannot_take_all_places() -> None:
    """SC-50: the cap a peer holds for each listener."""
    async with serving(CommittingApp(), limits=HttpLimits(connections_per_peer_max=1)) as server:
        held = await connect(server.ports[0], b"POST")
        reader, writer = await connect(server.ports[0])
        turned_away = await rest_of(reader)
        for each in (held[1], writer):
            each.close()
        await asyncio.sleep(0.1)
        reader, writer = await connect(server.ports[0], REQUEST)
        served = await head_of(reader)
        writer.close()

    assert (turned_away[9:12], served[9:12]) == (b"503", b"200")


async def test_500_slow_connections_are_closed_and_others_served() -> None:
    """F40, SC-50: the attack ends at the deadline, and nobody else notices it."""
    app = CommittingApp()
    async with serving(app, limits=replace(SHORT, head_s=2.0)) as server:
        slow = [
            await connect(server.ports[0], b"POST /x HTTP/1.1\r\nHost: h\r\nX") for _ in range(500)
        ]
        started = asyncio.get_running_loop().time()
        reader, writer = await connect(server.ports[0], REQUEST)
        served = await head_of(reader)
        served_after_s = asyncio.get_running_loop().time() - started
        ends = await asyncio.gather(*(rest_of(reader) for reader, _ in slow))
        closed_after_s = asyncio.get_running_loop().time() - started
        for _, each in [*slow, (reader, writer)]:
            each.close()

    assert (b"200", {b"408"}) == (served[9:12], {end[9:12] for end in ends})
    assert served_after_s < 1.0
    assert closed_after_s < 5.0
    assert dict(server.fronts[0].refusals) == {"http_head_too_slow": 500}


async def test_peer_that_does_not_read_is_cut_off() -> None:
    """An answer that is never taken does not hold its memory for ever."""

    async def flood(scope: Any, receive: Any, send: Any) -> None:
        await read_body(scope, receive, 100, Room(1 << 30))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(400):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with serving(flood, limits=replace(SHORT, write_stall_s=0.3)) as server:
        with socket.socket() as sock:
            sock.setblocking(False)  # noqa: FBT003
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(sock, ("127.0.0.1", server.ports[0]))
            await loop.sock_sendall(sock, REQUEST)
            await asyncio.sleep(0.2)
            held = len(server.fronts[0].connections)
            async with asyncio.timeout(5):
                while server.fronts[0].connections:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)

    assert held == 1


async def test_stop_during_commit_waits_for_the_answer() -> None:
    """F45 (a): a handler inside its durable commit ends, and its sender learns of it."""
    app = CommittingApp(open_gate=False)
    async with serving(app) as server:
        reader, writer = await connect(server.ports[0], REQUEST)
        await app.started.wait()
        server.stop.set()
        await asyncio.sleep(0.2)
        app.gate.set()
        head = await head_of(reader)
        tail = await rest_of(reader)
        outcome = await server.stopped()
        writer.close()

    assert (head[9:12], tail, app.committed, app.cancelled) == (b"200", b"", 1, 0)
    assert b"\r\nconnection: close\r\n" in head
    assert Stopped(connections_cut=0, handlers_cancelled=0) == outcome


async def test_stop_during_upload_takes_the_rest() -> None:
    """F45 (b): a body that is on its way is taken, committed and acknowledged."""
    app = CommittingApp()
    async with serving(app) as server:
        reader, writer = await connect(server.ports[0], REQUEST[:-3])
        await app.started.wait()
        server.stop.set()
        await asyncio.sleep(0.2)
        writer.write(REQUEST[-3:])
        head = await head_of(reader)
        tail = await rest_of(reader)
        writer.close()

    assert (head[9:12], tail, app.committed) == (b"200", b"", 1)
    assert b"\r\nconnection: close\r\n" in head


async def test_stop_during_head_takes_the_rest() -> None:
    """A request whose first bytes have arrived is served as the last one of its connection."""
    app = CommittingApp()
    async with serving(app) as server:
        reader, writer = await connect(server.ports[0], REQUEST[:20])
        await asyncio.sleep(0.1)
        server.stop.set()
        await asyncio.sleep(0.1)
        writer.write(REQUEST[20:])
        head = await head_of(reader)
        tail = await rest_of(reader)
        writer.close()

    assert (head[9:12], tail, app.committed) == (b"200", b"", 1)
    assert b"\r\nconnection: close\r\n" in head


async def test_stop_and_reuse_in_the_same_moment_is_served() -> None:
    """F45 (c): a request that reaches an idle connection just before the stop is not dropped."""
    app = CommittingApp()
    async with serving(app) as server:
        reader, writer = await connect(server.ports[0], REQUEST)
        first = await head_of(reader)
        app.gate.clear()
        server.stop.set()
        writer.write(REQUEST)
        await asyncio.sleep(0.1)
        app.gate.set()
        second = await head_of(reader)
        tail = await rest_of(reader)
        writer.close()

    assert (first[9:12], second[9:12], tail, app.committed) == (b"200", b"200", b"", 2)
    assert (b"connection: close" in first, b"connection: close" in second) == (False, True)


async def test_stop_closes_idle_connections_at_once() -> None:
    """F45 (c): keep-alive does not delay the stop, and a later reuse is un-acknowledged."""
    async with serving(CommittingApp(), grace_s=5.0) as server:
        idle = await connect(server.ports[0])
        reader, writer = await connect(server.ports[0], REQUEST)
        await head_of(reader)
        started = asyncio.get_running_loop().time()
        outcome = await server.stopped()
        took_s = asyncio.get_running_loop().time() - started
        tails = [await rest_of(idle[0]), await rest_of(reader)]
        for each in (idle[1], writer):
            each.close()

    assert ([b"", b""], Stopped(connections_cut=0, handlers_cancelled=0)) == (tails, outcome)
    assert took_s < 0.5


async def test_stop_refuses_new_connections() -> None:
    """After the stop began nobody new is let in."""
    app = CommittingApp(open_gate=False)
    async with serving(app) as server:
        _, writer = await connect(server.ports[0], REQUEST)
        await app.started.wait()
        server.stop.set()
        await asyncio.sleep(0.1)
        with pytest.raises(ConnectionError):
            await connect(server.ports[0])
        app.gate.set()
        writer.close()


async def test_stop_is_bounded_by_the_grace() -> None:
    """A handler that does not end is left alone until the grace is over, then cancelled."""
    app = CommittingApp(open_gate=False)
    async with serving(app, grace_s=0.4) as server:
        reader, writer = await connect(server.ports[0], REQUEST)
        await app.started.wait()
        server.stop.set()
        await asyncio.sleep(0.2)
        cancelled_early = app.cancelled
        async with asyncio.timeout(5):
            outcome = await server.stopped()
        tail = await rest_of(reader)
        writer.close()

    assert (cancelled_early, app.cancelled, tail) == (0, 1, b"")
    assert Stopped(connections_cut=1, handlers_cancelled=1) == outcome
