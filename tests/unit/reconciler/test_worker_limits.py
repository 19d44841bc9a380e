"""Providers are asked no more often than they may be, by all workers of a ledger together."""

import asyncio
from dataclasses import dataclass, field
from time import monotonic

import pytest

from reconciler.domain.operation import State
from reconciler.domain.pace import Pace
from reconciler.providers.answer import Answer
from reconciler.providers.request import Outbound
from tests.support.rig import FAR, Rig
from tests.support.scripted import ScriptedClient, about, eventually, says

pytestmark = pytest.mark.anyio


@dataclass
class Noting:
    """Answers that a job is still running, and remembers when it was asked (ms)."""

    at: list[float] = field(default_factory=list)

    def __call__(self, request: Outbound) -> Answer:
        """Answer."""
        self.at.append(monotonic() * 1000)
        return about(request, "running")


def _most_within(at: list[float], window_ms: float) -> int:
    return max(sum(start <= other < start + window_ms for other in at) for start in at)


async def _register(rig: Rig, count: int) -> None:
    for number in range(1, count + 1):
        await rig.register(number, remote_job_id=f"job_{number}")


async def test_all_workers_share_a_pace(rig: Rig) -> None:
    """Two workers with much to do make, in any window, the burst and the rate and no call more."""
    asked, pace = Noting(), Pace.of(20, 3)
    await _register(rig, 16)
    workers = [rig.worker(ScriptedClient(asked), f"worker:{n}", pace=pace) for n in (1, 2)]
    async with rig.working(*workers):
        await eventually(lambda: len(asked.at) >= 16)

    # A call is made a little after its turn was given, so a window may take some from before it.
    for window_ms in (200, 400):
        assert _most_within(asked.at, window_ms) <= 3 + window_ms / 50 + 2
    assert asked.at[-1] - asked.at[0] >= 0.8 * (16 - 3) * 50


async def test_waiting_is_no_hot_loop(rig: Rig) -> None:
    """Work that waits for its turn sleeps in the ledger; nobody claims it again and again."""
    asked = Noting()
    await _register(rig, 5)
    async with rig.working(rig.worker(ScriptedClient(asked), pace=Pace.of(0.01, 1))):
        await eventually(lambda: len(asked.at) == 1)
        await asyncio.sleep(0.5)
        assert len(asked.at) == 1
    claimed = await rig.store.work.claim("test", ["lse_x"] * 5, 1_000, rig.clock() + FAR)
    # Each was claimed once by the worker, and once by the test.
    assert [item.lease.fence for item in claimed] == [2] * 5


async def test_a_hint_does_not_jump_the_limit(rig: Rig) -> None:
    """An event makes a read due, and the read still waits for its turn."""
    asked = Noting()
    await _register(rig, 2)
    async with rig.working(rig.worker(ScriptedClient(asked), pace=Pace.of(0.01, 1))):
        await eventually(lambda: len(asked.at) == 1)
        for number in (1, 2):
            await rig.hint(number)
        await asyncio.sleep(0.3)
        assert len(asked.at) == 1


async def test_a_provider_that_wants_peace_is_left_in_peace(rig: Rig) -> None:
    """After one 429 with Retry-After nobody asks about any job, until the time is over."""
    replies = iter([says("", 429, {"retry-after": "60"})])
    client = ScriptedClient(lambda request: next(replies, None) or about(request, "succeeded"))
    await _register(rig, 4)
    first = rig.worker(client, "worker:1", concurrency=1)
    async with rig.working(first):
        await eventually(lambda: len(client.requests) == 1)
        async with rig.working(rig.worker(client, "worker:2")):
            await asyncio.sleep(0.3)
            assert len(client.requests) == 1
            rig.clock.ahead_ms += 60_000 + 15_000
            # The first job's own schedule is further away.
            await rig.until(State.SUCCEEDED, 2, 3, 4)


async def test_the_deadline_ends_what_may_not_be_read(rig: Rig) -> None:
    """An operation of a paused provider ends at its deadline, without a call."""
    client = ScriptedClient(lambda request: about(request, "running"))
    await rig.store.limits.pause("acme", 600_000, rig.clock())
    await rig.register(result_deadline_at=rig.clock() + 300, state=State.OBSERVING)
    async with rig.working(rig.worker(client)):
        await rig.until(State.RESULT_TIMED_OUT)
    assert client.requests == []
