"""The worker on a real ledger: who commits, who does not, and what becomes of faults."""

import asyncio

import pytest
from structlog.testing import capture_logs

from reconciler import worker as worker_module
from reconciler.domain.decide import Decision
from reconciler.domain.lease import Claimed
from reconciler.domain.operation import Effect, State, fold
from reconciler.effects.means import Means
from reconciler.effects.read_status import read_status
from reconciler.worker import EFFECTS, EffectRun
from tests.support.builders import amended
from tests.support.rig import FAR, Faulty, Gate, Rig
from tests.support.scripted import ScriptedClient, about, eventually, says

pytestmark = pytest.mark.anyio


# ---------------------------------------------------------------- the ordinary way


async def test_due_work_is_read_and_carried_to_its_end(rig: Rig) -> None:
    """Claim, read, commit, collect, commit: history, observation and schedule agree."""
    client = ScriptedClient(lambda request: about(request, "succeeded"))
    await rig.register()
    async with rig.working(rig.worker(client)):
        await rig.until(State.SUCCEEDED)
    history = await rig.store.operations.history("op_" + "1".zfill(26))
    assert [line.to_state for line in history] == [
        State.ACCEPTED,
        State.OBSERVING,
        State.RESULT_COLLECTING,
        State.SUCCEEDED,
    ]
    assert fold(history) is State.SUCCEEDED
    assert (len(client.requests), await rig.reads()) == (1, 1)
    assert (await rig.get()).next_at is None


async def test_a_running_job_is_read_again_when_it_is_due(rig: Rig) -> None:
    """Between two reads lies the wait that was stored; putting the clock forward ends it."""
    client = ScriptedClient(lambda request: about(request, "running"))
    await rig.register()
    async with rig.working(rig.worker(client)):
        await rig.until(State.OBSERVING)
        await asyncio.sleep(0.1)
        assert len(client.requests) == 1
        rig.clock.ahead_ms += 200_000
        await eventually(lambda: len(client.requests) == 2)


async def test_an_event_hurries_the_read(rig: Rig) -> None:
    """A hint shortens the wait to the least interval that the profile allows."""
    client = ScriptedClient(lambda request: about(request, "running"))
    await rig.register()
    async with rig.working(rig.worker(client)):
        await rig.until(State.OBSERVING)
        rig.clock.ahead_ms += 250  # the least interval, far from the next poll
        await rig.hint()
        await eventually(lambda: len(client.requests) == 2)
    reads = await rig.store.operations.observations("op_" + "1".zfill(26))
    assert [read.prompted_by for read in reads] == ["schedule", f"evt_{1:026}"]


# ---------------------------------------------------------------- leases


async def test_work_is_done_by_one_worker_at_a_time(rig: Rig) -> None:
    """Of many workers one makes the read, while its lease is renewed for as long as it lasts."""
    gate = Gate()
    client = ScriptedClient(gate)
    await rig.register()
    workers = [rig.worker(client, f"worker:{n}", lease_ttl_ms=1_000) for n in range(4)]
    async with rig.working(*workers):
        await asyncio.sleep(2.2)
        assert (client.most_under_way, len(client.requests)) == (1, 1)
        gate.opened.set()
        await rig.until(State.SUCCEEDED)
    assert await rig.reads() == 1


async def test_a_worker_that_was_taken_over_commits_nothing(rig: Rig) -> None:
    """Once another worker took the work, the first one's answer is thrown away."""
    gate = Gate(lambda request: about(request, "failed"))
    slow, quick = ScriptedClient(gate), ScriptedClient(lambda r: about(r, "succeeded"))
    await rig.register()
    # Room for one: it cannot take its own work over.
    async with rig.working(rig.worker(slow, "worker:1", concurrency=1)):
        await gate.reached.wait()
        rig.clock.ahead_ms += 60_000  # its lease is over, and no renewal came in time
        async with rig.working(rig.worker(quick, "worker:2")):
            await rig.until(State.SUCCEEDED)
        with capture_logs() as logged:
            gate.opened.set()
            await eventually(lambda: any(line["event"] == "lease_lost" for line in logged))
    assert (await rig.state(), await rig.reads()) == (State.SUCCEEDED, 1)


async def test_a_decision_on_an_old_version_is_made_again(rig: Rig) -> None:
    """`Stale` gives the work back at once, and what stands now is decided on."""
    calls = 0

    async def based_on_something_old(claimed: Claimed, given: Means) -> Decision:
        nonlocal calls
        calls += 1
        decision = await read_status(claimed, given)
        older = amended(decision, version=claimed.operation.version)
        return older if calls == 1 else decision

    effects = {**EFFECTS, Effect.READ_STATUS: based_on_something_old}
    client = ScriptedClient(lambda request: about(request, "succeeded"))
    await rig.register()
    async with rig.working(rig.worker(client, effects=effects)):
        await rig.until(State.SUCCEEDED)
    assert (calls, await rig.reads()) == (2, 1)


# ---------------------------------------------------------------- faults


def buggy(*job_ids: str) -> EffectRun:
    """Return a status read that has a bug for some jobs."""

    async def run(claimed: Claimed, given: Means) -> Decision:
        if claimed.operation.remote_job_id in job_ids:
            raise KeyError("a bug of ours")
        return await read_status(claimed, given)

    return run


async def test_a_bug_neither_loops_nor_stops_the_others(rig: Rig) -> None:
    """An effect that raises is logged and set aside for a minute; other work goes on."""
    client = ScriptedClient(lambda request: about(request, "succeeded"))
    await rig.register(1)
    await rig.register(2)
    worker = rig.worker(client, effects={**EFFECTS, Effect.READ_STATUS: buggy("job_1")})
    with capture_logs() as logged:
        async with rig.working(worker):
            await rig.until(State.SUCCEEDED, 2)
            await asyncio.sleep(0.15)
            failed = [line for line in logged if line["event"] == "effect_failed"]
            assert len(failed) == 1
            worker.effects = EFFECTS
            rig.clock.ahead_ms += 60_000
            await rig.until(State.SUCCEEDED, 1)


async def test_a_bug_does_not_hold_up_the_deadline(rig: Rig) -> None:
    """What our own bug keeps from being read still times out, for a person to see."""
    await rig.register(result_deadline_at=rig.clock() - 1)
    effects = {**EFFECTS, Effect.READ_STATUS: buggy("job_1")}
    with capture_logs():
        async with rig.working(rig.worker(ScriptedClient(lambda _: says("")), effects=effects)):
            await rig.until(State.RESULT_TIMED_OUT)


async def test_a_state_without_an_effect_of_ours_is_a_bug_like_any_other(rig: Rig) -> None:
    """Work that nobody can do yet is set aside and does not end the loop."""
    await rig.register(state=State.CREATE_PENDING, create_deadline_at=rig.clock() + FAR)
    with capture_logs() as logged:
        async with rig.working(rig.worker(ScriptedClient(lambda _: says("")))):
            await eventually(lambda: bool(logged))
            await asyncio.sleep(0.1)
    assert [line["event"] for line in logged] == ["effect_failed"]


@pytest.mark.parametrize("method", ["claim", "next_due_at"])
async def test_a_ledger_that_is_away_is_waited_for(
    rig: Rig, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop outlives a store that cannot answer, without hammering it."""
    monkeypatch.setattr(worker_module, "_STORE_DOWN_S", 0.01)
    client = ScriptedClient(lambda request: about(request, "succeeded"))
    await rig.register()
    work = Faulty(rig.store.work, method, 3)
    async with rig.working(rig.worker(client, work=work)):
        await rig.until(State.SUCCEEDED)
        await eventually(lambda: work.left == 0)


@pytest.mark.parametrize("after", [False, True])
async def test_a_commit_of_unknown_outcome_is_neither_lost_nor_doubled(
    rig: Rig, *, after: bool
) -> None:
    """Whether it stands or not: when the lease is over, the work goes on from what stands."""
    client = ScriptedClient(lambda request: about(request, "succeeded"))
    await rig.register()
    work = Faulty(rig.store.work, "commit", 1, after=after)
    with capture_logs() as logged:
        async with rig.working(rig.worker(client, work=work)):
            await eventually(lambda: "outcome_unknown" in [line["event"] for line in logged])
            rig.clock.ahead_ms += 31_000
            await rig.until(State.SUCCEEDED)
    assert await rig.reads() == 1
    assert fold(await rig.store.operations.history("op_" + "1".zfill(26))) is State.SUCCEEDED


async def test_evidence_without_a_row_is_told(rig: Rig) -> None:
    """A contradiction where the table has no row moves nothing and is in the log."""
    client = ScriptedClient(lambda _: says("succeeded", id="job_9"))
    await rig.register(state=State.CANCELLING, cancel_deadline_at=rig.clock() + FAR)
    with capture_logs() as logged:
        async with rig.working(rig.worker(client)):
            await eventually(lambda: bool(logged))
    assert (logged[0]["event"], logged[0]["trigger"]) == (
        "evidence_without_row",
        "saw_contradiction",
    )
    assert await rig.state() is State.CANCELLING


# ---------------------------------------------------------------- hints


@pytest.mark.parametrize("hints", [1, 50])
async def test_hints_during_a_read_cause_one_more(rig: Rig, hints: int) -> None:
    """However many events arrive while a read is under way, one read answers them all."""
    gate = Gate(lambda request: about(request, "running"))
    client = ScriptedClient(gate)
    await rig.register()
    async with rig.working(rig.worker(client)):
        await gate.reached.wait()
        for number in range(1, hints + 1):
            await rig.hint(number)
        gate.opened.set()
        await rig.until(State.OBSERVING)
        rig.clock.ahead_ms += 250  # the least interval, far from the next poll
        await eventually(lambda: len(client.requests) == 2)
        await asyncio.sleep(0.1)
        assert len(client.requests) == 2


async def test_many_hints_before_a_read_are_one_read(rig: Rig) -> None:
    """Fifty events for an operation at rest make one read due."""
    client = ScriptedClient(lambda request: about(request, "succeeded"))
    await rig.register()
    for number in range(1, 51):
        await rig.hint(number)
    async with rig.working(rig.worker(client)):
        await rig.until(State.SUCCEEDED)
    assert len(client.requests) == 1


async def test_a_hint_does_not_break_what_the_provider_asked_for(rig: Rig) -> None:
    """After Retry-After no event makes us ask sooner."""
    answers = iter([says("", 429, {"retry-after": "100"}), says("succeeded")])
    client = ScriptedClient(lambda _: next(answers))
    await rig.register()
    async with rig.working(rig.worker(client)):
        await rig.until(State.OBSERVING)
        rig.clock.ahead_ms += 50_000
        await rig.hint()
        await asyncio.sleep(0.1)
        assert len(client.requests) == 1
        rig.clock.ahead_ms += 50_000
        await rig.until(State.SUCCEEDED)


async def test_a_timed_out_operation_is_read_once_a_hint(rig: Rig) -> None:
    """A late event makes one read due there; the poll stays off (O7)."""
    client = ScriptedClient(lambda request: about(request, "running"))
    await rig.register(state=State.RESULT_TIMED_OUT)
    async with rig.working(rig.worker(client)):
        await rig.hint()
        await eventually(lambda: len(client.requests) == 1)
        rig.clock.ahead_ms += FAR
        await asyncio.sleep(0.1)
    assert (len(client.requests), await rig.state()) == (1, State.RESULT_TIMED_OUT)


async def test_a_profile_that_is_gone_is_said_and_waited_for(rig: Rig) -> None:
    """An operation whose profile was taken from the configuration asks nobody, and stays."""
    client = ScriptedClient(lambda _: says("succeeded"))
    await rig.register()
    async with rig.working(rig.worker(client, "worker:1", "other")):
        await rig.until(State.OBSERVING)
        await asyncio.sleep(0.1)
    (read,) = await rig.store.operations.observations("op_" + "1".zfill(26))
    assert (read.observation.detail, client.requests) == ("profile_not_configured", [])
