"""One run of `vouchback dev`: gateway, reconciler and demo provider, in one process.

The demo provider is called and calls back over real loopback sockets, and operations are registered
through the API, so what is seen here is what a user would build.
"""

import asyncio
import contextlib
import signal
import socket
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from gateway.cli.client import exchange
from gateway.cli.dev.folder import SOURCE, told_addresses
from gateway.cli.dev.stage import Script, Stage, Voice, act, api_secret
from gateway.cli.dev.summary import Summary, summarize
from gateway.cli.dev.watch import Watch
from gateway.cli.errors import CommandError, Exit
from gateway.cli.runtime import Running, now_ms, run
from gateway.config import Config
from gateway.demo.app import build_app
from gateway.demo.provider import DemoProvider
from gateway.http.limits import HttpLimits
from gateway.http.server import Listener, serve
from reconciler.config import resolve_secret

_LOOK_S = 0.15
_POST_S = 0.02
#: What is still on its way when everything has ended: the last duplicates and refusals.
_SETTLE_S = 0.8
_ONCE_S = 90.0


async def play(config: Config, demo: socket.socket, script: Script, voice: Voice) -> Summary:
    """Run until everything has ended (`once`) or until a signal.

    `demo` is the demo provider's bound socket. `ListenError` means that nothing has happened yet.
    """
    stop = asyncio.Event()
    _stop_on_signals(stop)
    async with _started(config, stop) as running:
        provider = _provider(config, script)
        stage = Stage(config, script, provider, running, Watch(running.store, now_ms), [], stop)
        await stage.watch.skip()
        with told_addresses(config):
            voice.started(config)
            parts = _demo(provider, config, demo), _post(provider), act(stage)
            async with _beside(stop, *parts):
                await _watch(stage, voice)
                return summarize(await stage.records(), provider, stage.watch.tally)


def _stop_on_signals(stop: asyncio.Event) -> None:
    """End well at the first signal, at once at the second."""
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ask, number)


@contextlib.asynccontextmanager
async def _started(config: Config, stop: asyncio.Event) -> AsyncIterator[Running]:
    """Run gateway and reconciler beside the body, which reads the ledger until its own end.

    A start that fails raises what it met; a server that ends by itself sets `stop`.
    """
    end = asyncio.Event()
    ready: asyncio.Future[Running] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(run(config, stop=end, on_ready=ready.set_result))
    server.add_done_callback(lambda _: stop.set())
    first: set[asyncio.Future[Any]] = {server, ready}
    await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        await server
        raise CommandError("stopped before it was ready", Exit.NEGATIVE)
    try:
        yield ready.result()
    finally:
        end.set()
        await server


# ---------------------------------------------------------------- the demo provider


def _provider(config: Config, script: Script) -> DemoProvider:
    url, path = f"http://{config.settings.public.listen}", f"/in/{SOURCE}"
    key = config.settings.sources[SOURCE].keys[-1]

    async def post(headers: list[tuple[str, str]], body: bytes) -> int:
        try:
            answer = await asyncio.to_thread(
                exchange, url, "POST", path, headers=headers, body=body
            )
        except CommandError:
            return 0
        return answer.status

    return DemoProvider(
        secret=resolve_secret(key.secret, config.folder).encode(),
        post=post,
        clock=now_ms,
        random=script.random,
    )


async def _demo(provider: DemoProvider, config: Config, sock: socket.socket) -> None:
    listener = Listener("demo", build_app(provider, api_secret(config)), sock, HttpLimits())
    await serve([listener], on_ready=lambda _: None, stop=asyncio.Event(), grace_s=0)


async def _post(provider: DemoProvider) -> None:
    while True:
        await provider.post_due()
        await asyncio.sleep(_POST_S)


@contextlib.asynccontextmanager
async def _beside(stop: asyncio.Event, *parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the parts beside the body; one that fails ends the run with what it met."""

    def ended(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            stop.set()

    tasks = [asyncio.create_task(part) for part in parts]
    for task in tasks:
        task.add_done_callback(ended)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _watch(stage: Stage, voice: Voice) -> None:
    """Tell what happens until a signal; with `once` until everything has ended."""
    give_up_at = time.monotonic() + _ONCE_S
    settled_at: float | None = None
    said_done = False
    while not stage.stop.is_set():
        for line in await stage.watch.look():
            voice.step(line)
        now = time.monotonic()
        if settled_at is None and await stage.over():
            settled_at = now + _SETTLE_S
        over = settled_at is not None and now >= settled_at
        if stage.script.once and (over or now >= give_up_at):
            return
        if over and not said_done:
            voice.ended(stage)
            said_done = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stage.stop.wait(), _LOOK_S)
