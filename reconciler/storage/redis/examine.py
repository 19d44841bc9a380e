"""Examines a server and a ledger on it, for `vouchback doctor`: the start's questions, and more.

A real write passes the gate, so what it takes to acknowledge is tried and not only read.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from redis.exceptions import ResponseError

from reconciler.storage.errors import LedgerError, StorageUnavailableError
from reconciler.storage.finding import Finding, Level
from reconciler.storage.redis import check, faults
from reconciler.storage.redis.address import Address, parse
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.store import RedisStore

#: How far apart the clocks may be: leases go by the server's, deadlines by the node's.
SKEW_MS_LOW, SKEW_MS_MAX = 500, 5_000


def examine(url: str, password: str | None, now: Callable[[], int]) -> Iterator[Finding]:
    """Yield what is found; blocks, and must not be called from an event loop."""
    try:
        address = parse(url, password)
        before = now()
        *answers, time = check.ask(address, (*check.QUESTIONS, (b"TIME",)))
        between = (before + now()) // 2
    except LedgerError as error:
        yield Finding("ledger", Level.FAILED, str(error))
        return
    findings = check.judge(answers, address.replicas)
    for sentence in (*findings.refused, *findings.unready):
        yield Finding("ledger", Level.FAILED, f"{address}: {sentence}")
    if findings.refused:
        return
    if not findings.unready:
        text = f"{address} keeps what it acknowledges (appendonly, appendfsync, eviction, WAITAOF)"
        yield Finding("ledger", Level.OK, text)
    yield _copies(address)
    yield _memory(answers)
    yield _clock(time, between)
    yield asyncio.run(_write(address, now()))


def _copies(address: Address) -> Finding:
    if address.replicas:
        text = f"an acknowledged event is on {1 + address.replicas} disks"
        return Finding("replicas", Level.OK, text)
    text = "an acknowledged event is on one disk only; with it, it is lost"
    return Finding("replicas", Level.WARNING, text, "add replicas, and replicas=1 to storage.url")


def _memory(answers: Sequence[Reply]) -> Finding:
    settings = dict(zip(answers[1][::2], answers[1][1::2], strict=True))
    limit = int(settings.get(b"maxmemory", 0))
    if limit:
        return Finding("memory", Level.OK, f"maxmemory is {limit} bytes")
    text = "maxmemory is not set: a full machine kills the server instead of refusing writes"
    return Finding("memory", Level.WARNING, text, "CONFIG SET maxmemory, below the machine's")


def _clock(time: Reply, now: int) -> Finding:
    if isinstance(time, ResponseError):
        text = f"the server's clock cannot be read: {faults.text(time)}"
        return Finding("clock", Level.FAILED, text, "allow +time to the user in storage.url")
    return clock(int(time[0]) * 1000 + int(time[1]) // 1000 - now)


def clock(skew_ms: int) -> Finding:
    """Judge how far the server's clock is ahead of ours."""
    text = f"the server's clock differs from this node's by {skew_ms} ms"
    if abs(skew_ms) < SKEW_MS_LOW:
        return Finding("clock", Level.OK, text)
    level = Level.WARNING if abs(skew_ms) < SKEW_MS_MAX else Level.FAILED
    return Finding("clock", level, text, "let both follow the same time servers (chrony, ntpd)")


async def _write(address: Address, now: int) -> Finding:
    store = RedisStore(address, queue_max=16)
    try:
        await store.upkeep.probe(now)
    except StorageUnavailableError as error:
        return Finding("write", Level.FAILED, str(error))
    finally:
        await store.close()
    return Finding("write", Level.OK, "a durable write was done and acknowledged")
