"""How much a worker does at once, and how it stops."""

import asyncio
from typing import Any

import pytest

from reconciler.domain.operation import State
from reconciler.providers.answer import Answer
from reconciler.providers.request import Outbound
from tests.support.builders import NOW
from tests.support.rig import Faulty, Gate, Rig
from tests.support.scripted import ScriptedClient, about, asked_for, eventually

pytestmark = pytest.mark.anyio


async def test_no_more_than_the_concurrency_runs_at_once(rig: Rig) -> None:
    """Twelve due reads with room for three: never four calls, and all get their turn."""

    async def slow(request: Outbound) -> Answer:
        await asyncio.sleep(0.02)
        return about(request, "succeeded")

    client = ScriptedClient(slow)
    for number in range(1, 13):
        await rig.register(number)
    async with rig.working(rig.worker(client, concurrency=3)):
        await rig.until(State.SUCCEEDED, *range(1, 13))
    assert (client.most_under_way, len(client.requests)) == (3, 12)


async def test_one_slow_provider_takes_no_more_than_its_slots(rig: Rig) -> None:
    """Calls that hang hold their own slots; work behind them goes on in the others."""
    gate = Gate()

    async def reply(request: Outbound) -> Answer:
        return (
            await gate(request)
            if asked_for(request) in {"job_1", "job_2"}
            else about(request, "succeeded")
        )

    for number in range(1, 9):
        await rig.register(number)
    async with rig.working(rig.worker(ScriptedClient(reply), concurrency=3)):
        await rig.until(State.SUCCEEDED, *range(3, 9))
        gate.opened.set()
        await rig.until(State.SUCCEEDED, 1, 2)


async def test_a_busy_worker_does_not_look_stuck(rig: Rig) -> None:
    """With every slot taken by a slow call the loop still says that it lives."""
    gate = Gate()
    await rig.register()
    worker = rig.worker(ScriptedClient(gate), concurrency=1)
    async with rig.working(worker):
        await gate.reached.wait()
        rig.clock.ahead_ms += 5_000
        now = rig.clock()
        await eventually(lambda: worker.last_tick_at >= now)
        gate.opened.set()


async def test_stopping_finishes_what_runs(rig: Rig) -> None:
    """A worker that is told to stop commits what it has begun, and begins nothing."""
    gate = Gate()
    await rig.register(1)
    await rig.register(2, next_at=NOW)
    client = ScriptedClient(gate)
    task = asyncio.create_task(rig.worker(client, concurrency=1).run())
    await gate.reached.wait()
    task.cancel()
    await asyncio.sleep(0.05)
    assert not task.done()
    gate.opened.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(client.requests) == 1
    assert sorted([await rig.state(1), await rig.state(2)]) == [
        State.ACCEPTED,
        State.RESULT_COLLECTING,
    ]


async def test_stopping_waits_no_longer_than_a_lease(rig: Rig) -> None:
    """A call that never ends does not keep the process: its lease hands the work on."""
    gate = Gate()
    await rig.register()
    task = asyncio.create_task(rig.worker(ScriptedClient(gate), lease_ttl_ms=100).run())
    await gate.reached.wait()
    task.cancel()
    async with asyncio.timeout(2):
        with pytest.raises(asyncio.CancelledError):
            await task
    gate.opened.set()
    await asyncio.sleep(0.05)


async def test_stopping_in_the_middle_of_a_claim_leaves_no_lease_behind(rig: Rig) -> None:
    """What the interrupted claim took is done, not left until its lease is over."""
    claims = asyncio.Event()

    class Slow(Faulty):
        async def claim(self, *args: Any) -> Any:
            found = await self._work.claim(*args)
            claims.set()
            await asyncio.sleep(0.05)
            return found

    client = ScriptedClient(lambda request: about(request, "running"))
    await rig.register()
    task = asyncio.create_task(rig.worker(client, work=Slow(rig.store.work, "", 0)).run())
    await claims.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await rig.state(), await rig.reads()) == (State.OBSERVING, 1)
