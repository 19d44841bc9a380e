"""Run listeners in one event loop, and stop them without dropping what was accepted.

`bind` comes first, before stores are opened or workers started: a port that is taken stops the
start with a sentence that names the setting. `serve` then runs until `stop` is set.

Of uvicorn only the protocol and the request cycle are used, not its `Server`: that one takes the
signals of the process, drives one listener, and drops what has arrived on an idle connection.
Signals, and starting and stopping stores and workers, are the composition root's business.
"""

import asyncio
import contextlib
import os
import resource
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import Any, TypeAlias

from uvicorn.config import Config

from gateway.http.front import Front
from gateway.http.limits import HttpLimits
from gateway.http.protocol import GuardedProtocol

App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]

# Connections that the kernel holds for us while the loop is busy or the start is not finished.
_BACKLOG = 2048
_PORT_MAX = 65_535
# Files that the rest of the process may need beside the connections.
_FILES_BESIDE = 256
# How exactly deadlines are kept: a tenth of the shortest, between these.
_SWEEP_S_MIN, _SWEEP_S_MAX = 0.02, 0.5
# How long cancelled handlers get to end.
_CANCEL_S = 1.0


class ListenError(Exception):
    """A listener could not be opened; the message names host, port, setting and the reason."""


@dataclass(frozen=True, slots=True)
class Listener:
    """An ASGI application on a bound socket. `name` tells listeners apart (public, internal)."""

    name: str
    app: App
    sock: socket.socket
    limits: HttpLimits

    @property
    def address(self) -> tuple[str, int]:
        """Host and real port, also where port 0 was asked for."""
        host, port = self.sock.getsockname()[:2]
        return host, port


@dataclass(frozen=True, slots=True)
class Stopped:
    """How the stop went: what was cut off because it took longer than the grace."""

    connections_cut: int
    handlers_cancelled: int


def bind(host: str, port: int, *, setting: str) -> socket.socket:
    """Open a listening TCP socket; port 0 takes a free one.

    Connections that arrive before `serve` wait in the kernel's queue. Raises ListenError.
    """
    cannot = f"cannot listen on {host} port {port} (setting {setting})"
    if not 0 <= port <= _PORT_MAX:  # getaddrinfo would take 70000 for 4464
        raise ListenError(f"{cannot}: a port is a number from 0 to {_PORT_MAX}")
    try:
        info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = info[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:  # UnicodeError: not a host name at all
        raise ListenError(f"{cannot}: {_reason(error)}") from error


async def serve(
    listeners: Sequence[Listener],
    *,
    on_ready: Callable[[Sequence[Front]], None],
    stop: asyncio.Event,
    grace_s: float,
) -> Stopped:
    """Serve until `stop` is set, then finish what was accepted, for at most `grace_s`.

    `on_ready` gets one Front a listener, in order, when connections are being accepted.
    """
    _allow_open_files(sum(listener.limits.connections_max for listener in listeners))
    fronts = [Front(listener.limits) for listener in listeners]
    for front in fronts:
        _set_date(front)
    servers = [
        await _listen(listener, front) for listener, front in zip(listeners, fronts, strict=True)
    ]
    sweep = asyncio.create_task(_sweep(fronts))
    try:
        on_ready(fronts)
        await stop.wait()
        return await _finish(servers, fronts, grace_s)
    finally:
        sweep.cancel()
        for server in servers:
            server.close()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)  # without the address that create_server adds
    return str(error)


async def _listen(listener: Listener, front: Front) -> asyncio.Server:
    config = Config(
        listener.app,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
    )
    config.load()
    loop = asyncio.get_running_loop()
    connect = partial(GuardedProtocol, config, front, {}, loop)
    return await loop.create_server(connect, sock=listener.sock, backlog=_BACKLOG)


async def _sweep(fronts: Sequence[Front]) -> None:
    """Ask every connection for its deadlines, and keep the Date field current."""
    loop = asyncio.get_running_loop()
    pause_s = min(_sweep_s(front.limits) for front in fronts)
    while True:
        await asyncio.sleep(pause_s)
        now = loop.time()
        for front in fronts:
            _set_date(front)
            for connection in list(front.connections):
                assert isinstance(connection, GuardedProtocol)
                connection.check_deadlines(now)


def _sweep_s(limits: HttpLimits) -> float:
    shortest_s = min(limits.head_s, limits.body_stretch_s, limits.keep_alive_s, limits.linger_s)
    return max(_SWEEP_S_MIN, min(shortest_s / 10, _SWEEP_S_MAX))


def _set_date(front: Front) -> None:
    front.default_headers = [(b"date", formatdate(time.time(), usegmt=True).encode("ascii"))]


async def _finish(
    servers: Sequence[asyncio.Server], fronts: Sequence[Front], grace_s: float
) -> Stopped:
    for server, front in zip(servers, fronts, strict=True):
        server.close()
        front.stopping = True
    # Requests that have reached this machine are read before idle connections are closed.
    for _ in range(3):
        await asyncio.sleep(0)
    for front in fronts:
        for connection in list(front.connections):
            connection.shutdown()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(grace_s):
            await _drained(fronts)
    return await _cut_off(fronts)


async def _drained(fronts: Sequence[Front]) -> None:
    """Return when no connection and no handler is left."""
    # uvicorn's sets have no event to wait for.
    while any(front.connections or front.tasks for front in fronts):  # noqa: ASYNC110
        await asyncio.sleep(_SWEEP_S_MIN)


async def _cut_off(fronts: Sequence[Front]) -> Stopped:
    connections = [connection for front in fronts for connection in front.connections]
    tasks = [task for front in fronts for task in front.tasks]
    for connection in connections:
        connection.transport.abort()
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=_CANCEL_S)
    return Stopped(connections_cut=len(connections), handlers_cancelled=len(tasks))


def _allow_open_files(connections: int) -> None:
    """Raise the soft limit of open files to what the connections need, as far as we may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _FILES_BESIDE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
