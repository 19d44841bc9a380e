"""A simulated hour a seed: whatever fails, every operation ends as its provider says.

`SIMULATION_SEEDS=1000` runs so many seeds, `SIMULATION_SEED=17` runs that one.
"""

import os
from itertools import pairwise
from pathlib import Path

import pytest

from reconciler.domain.observation import Meaning
from reconciler.domain.operation import Operation, State
from reconciler.storage.contract import EventQuery, OperationQuery
from tests.simulation.provider import ENDS
from tests.simulation.virtual import run
from tests.simulation.world import DEADLINE_S, HOUR_S, JOBS, POLL, World

ONE = os.environ.get("SIMULATION_SEED")
SEEDS = [int(ONE)] if ONE else range(int(os.environ.get("SIMULATION_SEEDS", "4")))
REPLAY = "replay: SIMULATION_SEED={} .venv/bin/python -m pytest tests/simulation"
#: A job that ended this long before its deadline has been found, whatever went wrong.
FOUND_WITHIN_S = 1_500


async def live(world: World) -> None:
    """Live through the hour and hold its end against the promises."""
    await world.hour()
    store = world.store
    operations = await store.operations.page(OperationQuery(limit=200))
    assert len(operations) == JOBS
    for value in operations:
        await check_end(world, value)
    events = await store.events.page(EventQuery(limit=1_000))
    assert sorted(world.acknowledged) == sorted(event.key for event in events)
    assert all(event.operation_id for event in events), "an event found no operation"
    await store.close()


async def check_end(world: World, value: Operation) -> None:
    """Hold one operation against what its provider said."""
    job = world.jobs[value.remote_job_id or ""]
    reads = await world.store.operations.observations(value.operation_id)
    history = await world.store.operations.history(value.operation_id)
    assert value.rule.final or value.attention, f"{value.state} after everything"
    assert all(
        after.observation.fetched_at - before.observation.fetched_at >= POLL.min_interval_ms
        for before, after in pairwise(reads)
    ), "read in a hot loop"
    if value.state is State.RESULT_TIMED_OUT:
        assert value.result_deadline_at is not None
        assert history[-1].at >= value.result_deadline_at, "timed out early"
        ended_in_time = job.end and job.ends_at < DEADLINE_S - FOUND_WITHIN_S
        assert not ended_in_time, "an end was missed"
    elif value.state is State.NEEDS_DECISION:
        assert reads[-1].observation.meaning is Meaning.CONTRADICTION
    else:
        assert value.state in ENDS
        assert value.state in job.said, "ended as nobody said"
        collected = State.RESULT_COLLECTING in {line.to_state for line in history}
        assert collected == (value.state is State.SUCCEEDED), "a success was not collected"
        assert job.first or value.state == job.end, "ended otherwise than the job"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_operation_ends_as_its_provider_says(seed: int, tmp_path: Path) -> None:
    """Lying answers, lost and doubled webhooks, kills and restarts cost time, never the truth."""
    world = World(seed, tmp_path)
    try:
        run(live(world))
        assert world.broken == []
    except BaseException:
        print("\n".join(world.trace[-40:]))  # noqa: T201
        print(REPLAY.format(seed))  # noqa: T201
        raise
    assert world.faults["killed"] > 0
    assert world.faults["storage"] > 0
    assert world.faults["stood still"] > 0


def test_a_seed_runs_the_same_way_twice(tmp_path: Path) -> None:
    """A failing seed can be replayed: two runs make one trace, line for line."""
    traces = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        world = World(7, tmp_path / name)
        run(live(world))
        traces.append(world.trace)
    assert traces[0] == traces[1]
    assert len(traces[0]) > 100


def test_the_hour_is_long_enough() -> None:
    """Every deadline lies within the hour, with room for a lease to be taken over."""
    assert HOUR_S > 200 + DEADLINE_S + 600
