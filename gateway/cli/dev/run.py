"""One run of `vouchback dev`: gateway, reconciler and demo provider, in one process.

The demo provider is called and calls back over real loopback sockets, and operations are registered
through the API, so what is seen here is what a user would build.
"""

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any

from gateway.cli.client import Api, exchange
from gateway.cli.dev.folder import PROFILE, SOURCE, Ports, told_addresses
from gateway.cli.dev.summary import Summary, summarize
from gateway.cli.dev.watch import Line, Watch
from gateway.cli.errors import CommandError, Exit
from gateway.cli.runtime import Running, run
from gateway.config import Config
from gateway.demo.app import build_app
from gateway.demo.provider import DemoProvider
from gateway.http.limits import HttpLimits
from gateway.http.server import Listener, bind, serve
from reconciler.config import resolve_secret
from reconciler.domain.operation import Operation

_LOOK_S = 0.15
_POST_S = 0.02
_BETWEEN_JOBS_S = 0.35
#: Every so many jobs one is registered late, so that its events arrive before its operation.
_LATE_EVERY = 8
_LATE_S = 1.5
#: What is still on its way when everything has ended: the last duplicates and refusals.
_SETTLE_S = 0.8
_ONCE_S = 90.0


@dataclass(frozen=True, slots=True)
class Script:
    """What a run is to do."""

    operations: int
    once: bool
    random: Random


@dataclass(slots=True)
class Stage:
    """What the parts of a run share."""

    config: Config
    script: Script
    provider: DemoProvider
    running: Running
    watch: Watch
    operations: list[str]
    stop: asyncio.Event

    def public_url(self) -> str:
        """Return where providers post."""
        return f"http://{self.config.settings.public.listen}"

    async def records(self) -> list[Operation]:
        """Return the operations of this run as they stand."""
        found = [await self.running.store.operations.get(name) for name in self.operations]
        return [operation for operation in found if operation is not None]

    async def over(self) -> bool:
        """Whether every operation has ended and the provider has nothing left to tell."""
        records = await self.records()
        complete = len(records) == self.script.operations and self.provider.quiet
        return complete and all(operation.rule.final for operation in records)

    def api(self) -> Api:
        """Return the API with the first token."""
        token = self.running.token_file.read_text("ascii").strip()
        return Api(f"http://{self.config.settings.internal.listen}", token)


Tell = Callable[[Line], None]


async def play(
    config: Config, ports: Ports, script: Script, tell: Tell, done: Callable[[Stage], None]
) -> Summary:
    """Run until everything has ended (`once`) or until a signal.

    `tell` gets every line; `done` is called when all operations have ended and the run goes on.
    """
    stop = asyncio.Event()
    _stop_on_signals(stop)
    async with _started(config, stop) as running:
        provider = _provider(config, script)
        stage = Stage(config, script, provider, running, Watch(running.store, _now), [], stop)
        await stage.watch.skip()
        with told_addresses(config):
            parts = _demo(provider, config, ports), _post(provider), _act(stage)
            async with _beside(stop, *parts):
                await _watch(stage, tell, done)
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
        secret=resolve_secret(key.secret).encode(), post=post, clock=_now, random=script.random
    )


def _api_secret(config: Config) -> str:
    reference = config.settings.profiles[PROFILE].secret
    assert reference is not None  # `folder.load` has looked
    return resolve_secret(reference)


def _now() -> int:
    return time.time_ns() // 1_000_000


async def _demo(provider: DemoProvider, config: Config, ports: Ports) -> None:
    sock = bind("127.0.0.1", ports.provider, setting="profiles.demo.base_url")
    listener = Listener("demo", build_app(provider, _api_secret(config)), sock, HttpLimits())
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


# ---------------------------------------------------------------- the play


async def _act(stage: Stage) -> None:
    """Create jobs at the provider and register each as an operation."""
    async with asyncio.TaskGroup() as registering:
        for number in range(1, stage.script.operations + 1):
            job_id = await asyncio.to_thread(_create, stage, number)
            late_s = _LATE_S if number % _LATE_EVERY == 0 else 0
            registering.create_task(_register(stage, job_id, late_s))
            await asyncio.sleep(_BETWEEN_JOBS_S)


def _create(stage: Stage, number: int) -> str:
    url = stage.config.settings.profiles[PROFILE].base_url or ""
    headers = [("Authorization", f"Bearer {_api_secret(stage.config)}")]
    body = json.dumps({"reference": f"order-{number}"}).encode()
    answer = exchange(url, "POST", "/jobs", headers=headers, body=body)
    job_id: str = json.loads(answer.body)["id"]
    return job_id


async def _register(stage: Stage, job_id: str, late_s: float) -> None:
    await asyncio.sleep(late_s)
    document = {"profile": PROFILE, "remote_job_id": job_id}
    _, operation = await asyncio.to_thread(stage.api().post, "/v1/operations", document)
    stage.operations.append(operation["operation_id"])


async def _watch(stage: Stage, tell: Tell, done: Callable[[Stage], None]) -> None:
    """Tell what happens until a signal; with `once` until everything has ended."""
    give_up_at = time.monotonic() + _ONCE_S
    settled_at: float | None = None
    said_done = False
    while not stage.stop.is_set():
        for line in await stage.watch.look():
            tell(line)
        now = time.monotonic()
        if settled_at is None and await stage.over():
            settled_at = now + _SETTLE_S
        over = settled_at is not None and now >= settled_at
        if stage.script.once and (over or now >= give_up_at):
            return
        if over and not said_done:
            done(stage)
            said_done = True
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stage.stop.wait(), _LOOK_S)
