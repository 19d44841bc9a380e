"""Valkey servers of a test's own, to be killed, filled and set wrong."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from reconciler.storage.redis.store import RedisStore, open_store
from tests.support import valkey

#: Opens a ledger of the test's server; the store is closed when the test ends.
Open = Callable[..., RedisStore]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[valkey.Server]:
    """Run a server that keeps what it acknowledges."""
    with valkey.running(tmp_path / "primary") as running:
        yield running


@pytest.fixture
def replica(tmp_path: Path, server: valkey.Server) -> Iterator[valkey.Server]:
    """Run a replica of the test's server."""
    of = f"127.0.0.1 {server.port}"
    with valkey.running(tmp_path / "replica", replicaof=of) as running:
        valkey.wait_online(server)
        yield running


@pytest.fixture
async def open_ledger(anyio_backend: str, server: valkey.Server) -> AsyncIterator[Open]:
    """Open a ledger, as often as wanted: each is a process of its own to the server."""
    assert anyio_backend == "asyncio"
    opened: list[RedisStore] = []

    def open_one(ledger: str = "test", *, queue_max: int = 100, **settings: object) -> RedisStore:
        opened.append(open_store(server.url(ledger, **settings), queue_max=queue_max))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.close()
