"""The connection under load, loss and cancelled callers."""

import asyncio
from collections import Counter
from pathlib import Path
from time import monotonic

import pytest
import uvloop

from reconciler.storage.contract import Committed, Duplicate, EventQuery, Recorded
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.redis import pipeline
from reconciler.storage.redis.store import RedisStore, open_store
from tests.support import valkey
from tests.support.builders import NOW, first_line, new_event, operation, read_decision
from tests.unit.reconciler.storage.redis.conftest import Open

pytestmark = pytest.mark.anyio


async def record(store: RedisStore, number: int) -> object:
    """Record an event."""
    return await store.inbox.record(new_event(number), "cfl", NOW)


async def test_answers_belong_to_their_questions(open_ledger: Open) -> None:
    """Hundreds of steps at once get each its own answer."""
    store = open_ledger(queue_max=2_000)

    answers = await asyncio.gather(*(record(store, number) for number in range(700)))

    assert [Recorded(new_event(number).event_id, None) for number in range(700)] == answers
    bodies = await asyncio.gather(
        *(store.events.body(new_event(number).event_id) for number in range(700))
    )
    assert [new_event(number).body for number in range(700)] == bodies


async def test_cancelled_callers(open_ledger: Open) -> None:
    """A caller that is cancelled at any moment never shifts anybody's answer (F84)."""
    store = open_ledger(queue_max=2_000)
    await record(store, 0)
    tasks = []
    for number in range(1, 601):
        tasks.append(asyncio.create_task(record(store, number)))
        if number % 7 == 0:
            await asyncio.sleep(0)
        if number % 3 == 0:
            tasks[number // 2].cancel()
        if number % 50 == 0:
            await asyncio.sleep(0.002)
            tasks[-1].cancel()

    async with asyncio.timeout(20):
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert any(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
    for number, outcome in enumerate(outcomes, start=1):
        if not isinstance(outcome, asyncio.CancelledError):
            assert Recorded(new_event(number).event_id, None) == outcome
    assert await record(store, 10_000) == Recorded(new_event(10_000).event_id, None)


async def test_killed_server(open_ledger: Open, server: valkey.Server) -> None:
    """A crash amid a batch leaves what waits unknown, what was acknowledged there, and the store usable."""
    store = open_ledger(queue_max=5_000)
    await record(store, 0)
    tasks = [asyncio.create_task(record(store, number)) for number in range(1, 3_001)]
    await asyncio.wait(tasks[:300])
    server.kill()
    begun = monotonic()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert monotonic() - begun < 1
    kinds = Counter(type(outcome) for outcome in outcomes)
    assert set(kinds) == {Recorded, StorageUnavailableError}, kinds
    server.start()
    events = await store.events.page(EventQuery(limit=5_000))
    stored = {event.event_id for event in events}
    acknowledged = {outcome.event_id for outcome in outcomes if isinstance(outcome, Recorded)}
    assert acknowledged <= stored
    again = await asyncio.gather(*(record(store, number) for number in range(1, 3_001)))
    assert all(
        isinstance(answer, Duplicate) == (new_event(number).event_id in stored)
        for number, answer in enumerate(again, start=1)
    )
    assert await store.journal.size() == 3_001


async def test_server_that_hangs(
    open_ledger: Open, server: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that answers nothing costs a bounded time, for all who wait."""
    monkeypatch.setattr(pipeline, "ANSWER_S", 0.2)
    store = open_ledger(ack_timeout_ms=100)
    await record(store, 0)
    server.pause()
    begun = monotonic()

    async with asyncio.timeout(10):
        outcomes = await asyncio.gather(
            *(record(store, number) for number in range(1, 9)), return_exceptions=True
        )

    assert {type(outcome) for outcome in outcomes} == {StorageUnavailableError}
    assert monotonic() - begun < 3
    server.resume()
    await record(store, 1)


async def test_restart_while_idle(open_ledger: Open, server: valkey.Server) -> None:
    """After a restart that nobody noticed, work goes on with at most one answer lost."""
    store = open_ledger()
    value = operation()
    await store.operations.register(value, first_line(value), NOW)
    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    server.kill()
    server.start()
    await asyncio.sleep(0.05)

    assert await store.work.commit(claimed.lease, read_decision(claimed), NOW) == Committed()


async def test_forgotten_scripts(open_ledger: Open, server: valkey.Server) -> None:
    """A server that forgot the scripts is told them again, and no step is done twice."""
    store = open_ledger(queue_max=1_000)
    value = operation(remote_job_id="other")
    await store.operations.register(value, first_line(value), NOW)

    async def forget() -> None:
        for _ in range(10):
            server.ask("SCRIPT", "FLUSH")
            await asyncio.sleep(0)

    *answers, _ = await asyncio.gather(*(record(store, n) for n in range(300)), forget())

    assert {Recorded: 300} == Counter(type(answer) for answer in answers)
    assert await store.journal.size() == 301
    server.ask("SCRIPT", "FLUSH")
    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    server.ask("SCRIPT", "FLUSH")
    assert await store.work.commit(claimed.lease, read_decision(claimed), NOW) == Committed()


async def test_demoted_server(
    open_ledger: Open, server: valkey.Server, replica: valkey.Server
) -> None:
    """A primary that became a replica acknowledges nothing; once it is primary again, all goes on."""
    store = open_ledger()
    await record(store, 1)
    replica.ask("REPLICAOF", "NO", "ONE")
    server.ask("REPLICAOF", "127.0.0.1", replica.port)

    for _ in range(3):
        with pytest.raises(StorageUnavailableError):
            await record(store, 2)

    server.ask("REPLICAOF", "NO", "ONE")
    assert await record(store, 2) == Recorded(new_event(2).event_id, None)


async def test_busy_server(
    open_ledger: Open, server: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody's script runs for ever, steps fail as unknown; after it they are done."""
    monkeypatch.setattr(pipeline, "ANSWER_S", 1.0)
    server.ask("CONFIG", "SET", "busy-reply-threshold", 50)
    store = open_ledger(ack_timeout_ms=100)
    await record(store, 1)
    endless = asyncio.create_task(asyncio.to_thread(server.ask, "EVAL", "while true do end", 0))
    await asyncio.sleep(0.2)

    with pytest.raises(StorageUnavailableError):
        await record(store, 2)

    server.ask("SCRIPT", "KILL")
    await endless
    assert await record(store, 2) == Recorded(new_event(2).event_id, None)


async def test_full_queue(open_ledger: Open, server: valkey.Server) -> None:
    """More than may wait is refused at once, and what waits is done."""
    store = open_ledger(queue_max=5)
    await record(store, 0)
    server.pause()
    waiting = [asyncio.create_task(record(store, number)) for number in range(1, 7)]
    await asyncio.sleep(0.05)
    waiting += [asyncio.create_task(record(store, number)) for number in range(7, 20)]
    await asyncio.sleep(0.05)
    server.resume()

    outcomes = await asyncio.gather(*waiting, return_exceptions=True)

    kinds = Counter(type(outcome) for outcome in outcomes)
    assert kinds[StorageUnavailableError] > 0
    assert kinds[Recorded] == await store.journal.size() - 1


async def test_close_finishes(server: valkey.Server) -> None:
    """What was accepted before the end is done; what comes after it is refused."""
    store = open_store(server.url())
    waiting = [asyncio.create_task(record(store, number)) for number in range(300)]
    await asyncio.sleep(0)
    await store.close()

    assert {Recorded: 300} == Counter(type(answer) for answer in await asyncio.gather(*waiting))
    with pytest.raises(StorageUnavailableError, match="closed"):
        await record(store, 1_000)


async def test_unix_socket(tmp_path: Path) -> None:
    """A server on this machine can be reached by a socket's path."""
    path = tmp_path / "s"
    with valkey.running(tmp_path / "data", unixsocket=str(path)):
        store = open_store(f"unix://{path}?ledger=test")
        assert await record(store, 1) == Recorded(new_event(1).event_id, None)
        await store.close()


def test_uvloop(tmp_path: Path) -> None:
    """The product runs on uvloop, whose transports are its own."""

    async def steps(server: valkey.Server) -> object:
        store = open_store(server.url())
        answer = await record(store, 1)
        await store.work.claim("w", ["a"], 1_000, NOW)
        await store.close()
        return answer

    with valkey.running(tmp_path / "data") as server:
        assert Recorded(new_event(1).event_id, None) == uvloop.run(steps(server))
