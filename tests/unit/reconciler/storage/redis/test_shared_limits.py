"""Limits that clients of one server share, by the server's clock."""

import asyncio

import pytest

from reconciler.domain.pace import Pace
from tests.support import valkey
from tests.unit.reconciler.storage.redis.conftest import Open

pytestmark = pytest.mark.anyio


async def test_nodes_share_one_bucket(open_ledger: Open) -> None:
    """However many nodes ask, all of them together get the burst and then the pace."""
    nodes = [open_ledger() for _ in range(3)]
    pace = Pace.of(0.01, 5)

    waits = await asyncio.gather(
        *[node.limits.take("acme", pace, 0) for _ in range(10) for node in nodes]
    )

    assert waits.count(0) == 5


async def test_a_pause_is_everybodys(open_ledger: Open) -> None:
    """What one node was told by the provider holds for every node."""
    told, other = open_ledger(), open_ledger()
    await told.limits.pause("acme", 60_000, 0)

    assert 59_000 < await other.limits.take("acme", None, 0) <= 60_000


async def test_limits_do_not_wait_for_disks(open_ledger: Open, server: valkey.Server) -> None:
    """A turn is no promise: it is given though no replica acknowledges anything."""
    node = open_ledger(replicas=1, ack_timeout_ms=5_000)
    before = server.ask("EXISTS", "{vouchback:test}:mark")

    async with asyncio.timeout(2):
        assert await node.limits.take("acme", Pace.of(1, 1), 0) == 0
    assert server.ask("EXISTS", "{vouchback:test}:mark") == before == 0
