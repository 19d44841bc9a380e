"""The acknowledgement gate."""

import asyncio
from pathlib import Path
from time import monotonic

import pytest

from reconciler.storage.contract import AlreadyRegistered, Duplicate, Recorded
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.redis import gate
from reconciler.storage.redis.store import RedisStore
from tests.support import valkey
from tests.support.builders import NOW, first_line, new_event, new_token, operation
from tests.unit.reconciler.storage.redis.conftest import Open

pytestmark = pytest.mark.anyio

MARK = "{vouchback:test}:mark"


def marks(server: valkey.Server) -> int:
    """Return how many marks the gate has written."""
    return int(server.ask("GET", MARK) or 0)


def connections(server: valkey.Server) -> int:
    """Return how many connections the server has taken so far."""
    (told,) = (
        line
        for line in server.ask("INFO", "stats").splitlines()
        if line.startswith(b"total_connections_received:")
    )
    return int(told.partition(b":")[2])


async def record(store: RedisStore, number: int = 1) -> object:
    """Record an event."""
    return await store.inbox.record(new_event(number), "cfl", NOW)


# ---------------------------------------------------------------- what WAITAOF says


async def test_waitaof_without_a_write_says_nothing(
    server: valkey.Server, replica: valkey.Server
) -> None:
    """A fact that the gate rests on: a connection that wrote nothing is answered at once, while the data that it read is on no replica."""
    replica.pause()
    with valkey.Client(server.port) as writer, valkey.Client(server.port) as reader:
        writer.ask("SET", "key", "value")
        assert writer.ask("WAITAOF", 1, 1, 100) == [1, 0]
        assert reader.ask("GET", "key") == b"value"

        begun = monotonic()
        without = reader.ask("WAITAOF", 1, 1, 300)
        waited_s = monotonic() - begun
        reader.ask("INCR", "mark")
        with_own_write = reader.ask("WAITAOF", 1, 1, 300)
    replica.resume()

    assert waited_s < 0.2
    assert without != [1, 0]
    assert with_own_write == [1, 0]


async def test_every_answer_has_a_mark(open_ledger: Open, server: valkey.Server) -> None:
    """Whatever is acknowledged follows a write of its own, also where the step itself wrote nothing."""
    store = open_ledger()
    value, token = operation(), new_token()
    steps = (
        record(store),
        record(store),
        store.operations.register(value, first_line(value), NOW),
        store.operations.register(value, first_line(value), NOW),
        store.tokens.create(token, NOW),
        store.tokens.create(token, NOW),
        store.tokens.revoke(token.token_id, "me", NOW),
        store.tokens.revoke(token.token_id, "me", NOW),
        store.work.claim("w", ["a"], 1_000, NOW),
        store.upkeep.probe(NOW),
    )

    for number, step in enumerate(steps):
        before = marks(server)
        await step
        assert marks(server) > before, number


async def test_batch_has_one_mark(open_ledger: Open, server: valkey.Server) -> None:
    """Steps that come at once share one gate."""
    store = open_ledger()
    await record(store, 1_000)
    before = marks(server)

    await asyncio.gather(*(record(store, number) for number in range(90)))

    assert marks(server) - before <= 3


# ---------------------------------------------------------------- replicas


async def test_replica_acknowledges(open_ledger: Open, replica: valkey.Server) -> None:
    """With its replica there, a step is answered, and what it wrote is on the replica."""
    store = open_ledger(replicas=1)

    assert Recorded(new_event().event_id, None) == await record(store)

    assert replica.ask("XLEN", "{vouchback:test}:event") == 1


async def test_replica_is_nudged(open_ledger: Open, replica: valkey.Server) -> None:
    """A lone write does not wait for the replica's heartbeat, which comes once a second."""
    store = open_ledger(replicas=1)
    await record(store, 0)
    begun = monotonic()

    for number in range(1, 6):
        await record(store, number)

    assert replica.ask("XLEN", "{vouchback:test}:event") == 6
    assert monotonic() - begun < 2.5


async def test_nudges_end_with_their_batch(
    open_ledger: Open, server: valkey.Server, replica: valkey.Server
) -> None:
    """While nothing waits nobody nudges, and all nudges go over one connection."""
    assert replica.port != server.port
    store = open_ledger(replicas=1)
    await record(store, 0)
    connected = connections(server)

    for number in range(1, 60):
        await record(store, number)

    await asyncio.sleep(0.1)
    nudges = int(server.ask("GET", "{vouchback:test}:nudge"))
    await asyncio.sleep(0.2)
    assert nudges == int(server.ask("GET", "{vouchback:test}:nudge"))
    # Our own three questions, the nudges' connection, and one that a busy machine may cost.
    assert connections(server) <= connected + 5


async def test_lone_write_waits_without_a_nudge(
    open_ledger: Open, replica: valkey.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason for the nudge: without it a lone write waits about a second."""
    monkeypatch.setattr(gate, "NUDGE_EVERY_S", 1_000)
    store = open_ledger(replicas=1, ack_timeout_ms=5_000)
    await record(store, 0)
    begun = monotonic()

    for number in range(1, 4):
        await record(store, number)

    assert replica.ask("XLEN", "{vouchback:test}:event") == 4
    assert monotonic() - begun > 1.2


async def test_replica_that_hangs(open_ledger: Open, replica: valkey.Server) -> None:
    """What a replica should have and has not is not acknowledged; said again later, it is a duplicate."""
    store = open_ledger(replicas=1, ack_timeout_ms=200)
    await record(store, 0)
    replica.pause()
    begun = monotonic()

    with pytest.raises(StorageUnavailableError, match="on 0 of 1 replicas"):
        await record(store)
    with pytest.raises(StorageUnavailableError, match="on 0 of 1 replicas"):
        await record(store)

    assert monotonic() - begun < 3
    replica.resume()
    assert Duplicate(new_event().event_id, 3) == await record(store)


async def test_known_answers_pass_the_gate_too(open_ledger: Open, replica: valkey.Server) -> None:
    """That an operation is known is said only when it is as safe as a new one."""
    store = open_ledger(replicas=1, ack_timeout_ms=200)
    value = operation()
    await store.operations.register(value, first_line(value), NOW)
    replica.pause()

    with pytest.raises(StorageUnavailableError):
        await store.operations.register(value, first_line(value), NOW)

    replica.resume()
    again = await store.operations.register(value, first_line(value), NOW)
    assert isinstance(again, AlreadyRegistered)


async def test_missing_replica(open_ledger: Open, server: valkey.Server, tmp_path: Path) -> None:
    """Without the replica nothing is acknowledged and the node is not ready; with it, all goes on."""
    store = open_ledger(replicas=1, ack_timeout_ms=300)
    with pytest.raises(StorageUnavailableError, match="on 0 of 1 replicas"):
        await record(store)
    with pytest.raises(StorageUnavailableError):
        await store.upkeep.probe(NOW)

    with valkey.running(tmp_path / "late", replicaof=f"127.0.0.1 {server.port}"):
        valkey.wait_online(server)
        assert Duplicate(new_event().event_id, 2) == await record(store)
        await store.upkeep.probe(NOW)


async def test_promoted_replica_has_what_was_acknowledged(
    open_ledger: Open, server: valkey.Server, replica: valkey.Server
) -> None:
    """What was acknowledged is there on the replica when the primary is gone, fences included."""
    store = open_ledger(queue_max=500, replicas=1)
    value = operation()
    await store.operations.register(value, first_line(value), NOW)
    await asyncio.gather(*(record(store, number) for number in range(200)))
    (claimed,) = await store.work.claim("w", ["lease"], 1_000, NOW)

    server.kill()
    replica.ask("REPLICAOF", "NO", "ONE")

    assert replica.ask("XLEN", "{vouchback:test}:event") == 200
    held = replica.ask(
        "HMGET", f"{{vouchback:test}}:operation:{value.operation_id}", "fence", "lease"
    )
    assert held == [b"%d" % claimed.lease.fence, b"lease"]
