"""A server that would forget is refused, with the setting to change."""

from pathlib import Path

import pytest

from reconciler.storage.errors import LedgerError, StorageUnavailableError
from reconciler.storage.redis import check, gate
from reconciler.storage.redis.store import open_store
from tests.support import valkey
from tests.support.builders import NOW, new_event, refusal
from tests.unit.reconciler.storage.redis.conftest import Open

pytestmark = pytest.mark.anyio

WRONG = [
    ("appendonly", "no"),
    ("appendfsync", "everysec"),
    ("appendfsync", "no"),
    ("maxmemory-policy", "volatile-lru"),
    ("maxmemory-policy", "allkeys-random"),
    ("no-appendfsync-on-rewrite", "yes"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
async def test_start_refuses(server: valkey.Server, name: str, value: str) -> None:
    """A start on a server that would forget is refused, and nothing is written there."""
    server.ask("CONFIG", "SET", name, value)

    with pytest.raises(LedgerError, match=f"{name} is {value}; set: CONFIG SET {name}"):
        open_store(server.url())

    assert server.ask("KEYS", "*") == []


@pytest.mark.parametrize(("name", "value"), WRONG)
async def test_running_refuses(
    open_ledger: Open, server: valkey.Server, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting that is weakened while we run is noticed, acknowledgements stop, and come back with it."""
    monkeypatch.setattr(gate, "CHECK_EVERY_S", 0.0)
    store = open_ledger(ack_timeout_ms=200)
    await store.inbox.record(new_event(1), "cfl", NOW)
    before = server.ask("CONFIG", "GET", name)[1]
    server.ask("CONFIG", "SET", name, value)

    with pytest.raises(StorageUnavailableError, match=name):
        await store.inbox.record(new_event(2), "cfl", NOW)
    with pytest.raises(StorageUnavailableError, match=name):
        await store.upkeep.probe(NOW)

    server.ask("CONFIG", "SET", name, before)
    await store.inbox.record(new_event(2), "cfl", NOW)
    await store.upkeep.probe(NOW)


async def test_probe_looks_at_once(open_ledger: Open, server: valkey.Server) -> None:
    """A probe does not rest on what was seen seconds ago."""
    store = open_ledger()
    await store.upkeep.probe(NOW)
    server.ask("CONFIG", "SET", "appendfsync", "everysec")

    with pytest.raises(StorageUnavailableError, match="appendfsync"):
        await store.upkeep.probe(NOW)


async def test_restart_with_other_settings(open_ledger: Open, server: valkey.Server) -> None:
    """A server that comes back without its settings is noticed with the first write."""
    store = open_ledger()
    await store.inbox.record(new_event(1), "cfl", NOW)
    server.kill()
    server.settings["maxmemory-policy"] = "allkeys-lru"
    server.start()

    # The first may only learn that the connection was lost.
    with pytest.raises(StorageUnavailableError):
        await store.inbox.record(new_event(2), "cfl", NOW)
    with pytest.raises(StorageUnavailableError, match="maxmemory-policy"):
        await store.inbox.record(new_event(2), "cfl", NOW)


async def test_start_refuses_a_replica(replica: valkey.Server) -> None:
    """The URL must name the primary."""
    with pytest.raises(LedgerError, match="is a replica; name the primary"):
        open_store(replica.url())


async def test_start_refuses_nobody_there(server: valkey.Server) -> None:
    """Where no server is, the start ends with where it looked."""
    server.kill()

    with pytest.raises(LedgerError, match=f"127.0.0.1:{server.port} cannot be reached"):
        open_store(server.url())


async def test_start_refuses_a_newer_ledger(server: valkey.Server) -> None:
    """A ledger that a newer version wrote is left alone."""
    server.ask("HSET", "{vouchback:test}:ledger", "format", check.FORMAT + 1)

    with pytest.raises(LedgerError, match="newer version"):
        open_store(server.url())


async def test_password(tmp_path: Path) -> None:
    """A password is used, and a wrong one is said without showing it."""
    with valkey.running(tmp_path / "closed") as server:
        server.ask("CONFIG", "SET", "requirepass", "hunter2")
        with pytest.raises(LedgerError, match="NOAUTH"):
            open_store(server.url())
        with pytest.raises(LedgerError, match=r"WRONGPASS.*storage\.password") as caught:
            open_store(server.url(), password="hunter3")
        store = open_store(server.url(), password="hunter2")
        await store.inbox.record(new_event(), "cfl", NOW)
        await store.close()

    assert "hunter3" not in str(caught.value)


async def test_memory_near_its_limit(open_ledger: Open, server: valkey.Server) -> None:
    """Before memory ends the node is not ready and says why, while events are still taken."""
    store = open_ledger()
    server.ask("SET", "much", b"x" * (16 << 20))
    used = int(server.ask("INFO", "memory").split(b"used_memory:")[1].split()[0])
    server.ask("CONFIG", "SET", "maxmemory", used + used // 20)

    with pytest.raises(StorageUnavailableError, match="raise maxmemory"):
        await store.upkeep.probe(NOW)

    await store.inbox.record(new_event(), "cfl", NOW)


async def test_memory_at_its_limit(open_ledger: Open, server: valkey.Server) -> None:
    """At the limit an event is refused whole, nothing is evicted, trimming works, and room lets all go on."""
    store = open_ledger()
    await store.inbox.record(new_event(1), "cfl", NOW)
    await store.inbox.refuse([refusal()], NOW)
    server.ask("CONFIG", "SET", "maxmemory", 1)

    with pytest.raises(StorageUnavailableError, match="OOM"):
        await store.inbox.record(new_event(2), "cfl", NOW)

    assert await store.events.get(new_event(2).event_id) is None
    assert await store.events.body(new_event(1).event_id) == new_event(1).body
    assert await store.upkeep.trim_refusals(0, NOW) == 1
    server.ask("CONFIG", "SET", "maxmemory", 0)
    await store.inbox.record(new_event(2), "cfl", NOW)
    assert await store.journal.size() == 2


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([[None], [], b""], "no WAITAOF"),
        ([[b"x"], valkey.error("NOPERM no"), b""], "settings cannot be read"),
        ([[b"x"], [], valkey.error("NOPERM no")], "settings cannot be read"),
        ([[b"x"], [], b""], "appendonly is unknown"),
    ],
)
def test_judge_refuses(answers: list[object], reason: str) -> None:
    """A server that cannot promise, or that does not say, is refused."""
    assert reason in check.judge(answers, 0).refused[0]
