"""The composition root: everything is made here, started, and stopped in the right order.

`run` is what `serve` and `dev` share. It checks the whole configuration first, then binds the
ports, then opens the ledger; whatever is wrong stops the start with one error of a known kind
(`ConfigError`, `ListenError`, `LedgerError`) before anything else has happened.
"""

import asyncio
import contextlib
import dataclasses
import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import random
from typing import Any

from gateway.app import internal_app
from gateway.auth import TOKEN_BYTES, new_token, token_text
from gateway.cli.ledger import bounds, lease_clock, open_blobs, open_ledger
from gateway.cli.parts import Parts
from gateway.config import Config, split_listen
from gateway.context import Context
from gateway.http.body import Room
from gateway.http.limits import HttpLimits
from gateway.http.server import App, Listener, bind, serve
from gateway.intake import Intake
from gateway.published_keys import KeyView
from gateway.refusals import RefusalLog
from reconciler import logs, upkeep
from reconciler.config import ConfigError
from reconciler.domain.event import ANY, Scope
from reconciler.domain.ids import RANDOM_BYTES, make_id
from reconciler.domain.token import Role
from reconciler.effects import fetch_keys
from reconciler.effects.fetch_keys import KeyFetcher
from reconciler.effects.means import Means
from reconciler.effects.turns import Turns
from reconciler.providers.client import Limits, ProviderClient
from reconciler.storage.bodies import Bodies
from reconciler.storage.contract import Blobs, Store
from reconciler.storage.errors import StorageUnavailableError
from reconciler.worker import Worker

GATEWAY, RECONCILER = "gateway", "reconciler"
ROLES = frozenset((GATEWAY, RECONCILER))
ADMIN_TOKEN_FILE = "admin.token"  # noqa: S105  # a file's name
#: A loop that has not looked for work this long is stuck.
_TICK_AGE_MAX_MS = 30_000
_PROBE_S = 2.0


def _entropy() -> Iterator[bytes]:
    """Yield randomness for ids, drawn a page at a time.

    A system call an id would hand the interpreter's lock to the writer's thread in every request.
    """
    while True:
        page = os.urandom(400 * RANDOM_BYTES)
        for start in range(0, len(page), RANDOM_BYTES):
            yield page[start : start + RANDOM_BYTES]


_random = _entropy()
_log = logs.get("runtime")


class LoopEndedError(Exception):
    """A loop of ours ended by itself; the cause is why."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a started process tells whoever started it: real ports and the open ledger."""

    #: `None` where the role takes no requests.
    public: tuple[str, int] | None
    internal: tuple[str, int]
    store: Store
    token_file: Path


async def run(
    config: Config,
    *,
    stop: asyncio.Event,
    on_ready: Callable[[Running], None],
    roles: frozenset[str] = ROLES,
) -> None:
    """Serve until `stop` is set, then finish what was accepted and close.

    Role `gateway` takes requests, `reconciler` does due work; each serves the internal listener.
    """
    parts = Parts.build(config)
    async with contextlib.AsyncExitStack() as stack:
        sockets = _bind(config, roles, stack)
        # Its own folder is made, never one above: a mistyped path is an error, not a new place.
        config.data_folder().mkdir(mode=0o700, exist_ok=True)
        blobs = open_blobs(config)
        store = open_ledger(config, now_ms)
        stack.push_async_callback(store.close)
        token_file = await _first_token(store, config.data_folder())
        client = ProviderClient(parts.policy, limits=_call_limits(config))
        stack.push_async_callback(client.aclose)
        worker = _worker(config, store, parts, client) if RECONCILER in roles else None
        view = KeyView(parts.sources, store.published_keys, now_ms, lease_clock(config, now_ms))
        # What was good before a restart is good at once.
        await view.tick()
        refusals = RefusalLog(store.inbox, now_ms)
        stack.push_async_callback(refusals.flush)
        loops = {"keys": view.run(), **_loops(config, store, blobs, worker, refusals)}
        if worker is not None:
            loops["key fetcher"] = _key_fetcher(config, store, parts, stack).run()
        await stack.enter_async_context(_background(loops, stop))
        stack.enter_context(_reload_on_hangup(parts))
        apps: dict[str, App] = {
            "public": _intake(config, store, parts, refusals, view),
            "internal": internal_app(_context(store, blobs, parts, worker)),
        }
        limits = _http_limits(config, parts)
        listeners = [Listener(name, apps[name], sock, limits) for name, sock in sockets.items()]
        addresses = {listener.name: listener.address for listener in listeners}
        running = Running(addresses.get("public"), addresses["internal"], store, token_file)
        stopped = await serve(
            listeners,
            on_ready=lambda _fronts: on_ready(running),
            stop=stop,
            grace_s=config.settings.limits.shutdown_s,
        )
        _log.info("stopped", **dataclasses.asdict(stopped))


def _loops(
    config: Config,
    store: Store,
    blobs: Blobs | None,
    worker: Worker | None,
    refusals: RefusalLog,
) -> dict[str, Coroutine[Any, Any, None]]:
    loops: dict[str, Coroutine[Any, Any, None]] = {"refusals": refusals.run()}
    if worker is not None:
        loops["worker"] = worker.run()
        loops["upkeep"] = upkeep.run(store.upkeep, blobs, now_ms, bounds(config))
    return loops


def _key_fetcher(
    config: Config, store: Store, parts: Parts, stack: contextlib.AsyncExitStack
) -> KeyFetcher:
    limits = Limits(total_s=fetch_keys.TOTAL_S, body_bytes_max=fetch_keys.BODY_BYTES_MAX)
    client = ProviderClient(parts.policy, limits=limits)
    stack.push_async_callback(client.aclose)
    return KeyFetcher(
        keys=store.published_keys,
        presets=parts.key_presets,
        client=client,
        jitter=random,
        lease_now=lease_clock(config, now_ms),
        clock=now_ms,
    )


def _intake(
    config: Config, store: Store, parts: Parts, refusals: RefusalLog, view: KeyView
) -> Intake:
    return Intake(
        sources=parts.sources,
        inbox=store.inbox,
        refusals=refusals,
        clock=now_ms,
        new_id=new_id,
        acknowledge_s=config.settings.limits.acknowledge_s,
        room=Room(max(config.settings.limits.bodies_bytes_max, _largest_body(parts))),
        keys=view,
    )


def _largest_body(parts: Parts) -> int:
    return max((source.body_bytes_max for source in parts.sources.all()), default=0)


def now_ms() -> int:
    """Return the time, milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def new_id(prefix: str) -> str:
    """Return a fresh id."""
    return make_id(prefix, now_ms(), next(_random))


def _bind(
    config: Config, roles: frozenset[str], stack: contextlib.AsyncExitStack
) -> dict[str, socket.socket]:
    wanted = {"internal": config.settings.internal.listen}
    if GATEWAY in roles:
        wanted = {"public": config.settings.public.listen, **wanted}
    return {
        name: stack.enter_context(bind(*split_listen(listen), setting=f"{name}.listen"))
        for name, listen in wanted.items()
    }


def _worker(config: Config, store: Store, parts: Parts, client: ProviderClient) -> Worker:
    section = config.settings.worker
    means = Means(
        providers=parts.providers,
        client=client,
        turns=Turns(store.limits, lease_clock(config, now_ms)),
        clock=now_ms,
        new_id=new_id,
        jitter=random,
        actor=f"worker:{socket.gethostname()}:{os.getpid()}",
    )
    return Worker(
        work=store.work,
        means=means,
        concurrency=section.concurrency,
        lease_ttl_ms=section.lease_ttl_s * 1000,
        idle_s=section.idle_s,
        lease_now=lease_clock(config, now_ms),
    )


def _context(store: Store, blobs: Blobs | None, parts: Parts, worker: Worker | None) -> Context:
    return Context(
        store=store,
        body=Bodies(store.events, blobs).read,
        sources=parts.sources,
        profiles=parts.profiles,
        clock=now_ms,
        new_id=new_id,
        random=secrets.token_bytes,
        reload=parts.reload,
        unready=_readiness(store, worker),
    )


def _readiness(store: Store, worker: Worker | None) -> Callable[[], Awaitable[list[str]]]:
    """Return what tells the slugs of all that is wrong; the log tells once what to do about it."""
    told: str | None = None

    async def unready() -> list[str]:
        nonlocal told
        reasons, trouble = [], None
        try:
            async with asyncio.timeout(_PROBE_S):
                await store.upkeep.probe(now_ms())
        except StorageUnavailableError as error:
            trouble = str(error)
        except TimeoutError:
            trouble = f"the ledger does not answer within {_PROBE_S} s"
        if trouble is not None:
            reasons.append("storage")
        if worker is not None and now_ms() - worker.last_tick_at > _TICK_AGE_MAX_MS:
            reasons.append("worker")
        if trouble is not None and trouble != told:
            _log.warning("storage_unready", error=trouble)
        told = trouble
        return reasons

    return unready


def _call_limits(config: Config) -> Limits:
    section = config.settings.egress
    return Limits(total_s=section.deadline_s, body_bytes_max=section.response_bytes_max)


def _http_limits(config: Config, parts: Parts) -> HttpLimits:
    section = config.settings.limits
    return HttpLimits(
        head_bytes_max=section.header_bytes_max,
        fields_max=section.header_count_max,
        head_s=section.header_timeout_s,
        body_stretch_s=section.body_timeout_s,
        keep_alive_s=section.keep_alive_s,
        body_bytes_max=max(_largest_body(parts), section.body_bytes_max),
        connections_max=section.connections_max,
        connections_per_peer_max=section.connections_per_peer_max,
    )


async def _first_token(store: Store, folder: Path) -> Path:
    """Make the first admin token of a new ledger; its text goes to a private file, nowhere else."""
    file = folder / ADMIN_TOKEN_FILE
    if await store.tokens.page():
        return file
    text = token_text(secrets.token_bytes(TOKEN_BYTES))
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(text + "\n")
    token = new_token(
        new_id("tok"),
        text,
        scope=Scope(ANY, ANY),
        role=Role.ADMIN,
        label="first token of this ledger",
        created_by="start",
    )
    await store.tokens.create(token, now_ms())
    _log.info("first_token", file=str(file))
    return file


@contextlib.asynccontextmanager
async def _background(
    loops: Mapping[str, Coroutine[Any, Any, None]], stop: asyncio.Event
) -> AsyncIterator[None]:
    """Run the loops beside the body; one that ends by itself stops the process, with its error."""
    tasks = [asyncio.create_task(loop, name=name) for name, loop in loops.items()]
    for task in tasks:
        task.add_done_callback(lambda _task: stop.set())
    try:
        yield
        ended = [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        # A supervisor starts again what ends with an error, never what ends with 0.
        raise LoopEndedError(task.get_name()) from task.exception()


@contextlib.contextmanager
def _reload_on_hangup(parts: Parts) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()

    async def reload() -> None:
        try:
            await parts.reload()
        except ConfigError as error:
            _log.error("reload_refused", error=str(error))

    def hangup() -> None:
        task = loop.create_task(reload())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGHUP, hangup)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
