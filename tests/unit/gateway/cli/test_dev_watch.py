"""The live lines of `dev`: each step of a ledger, told once."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.cli.dev.watch import Watch
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import Operation, State
from reconciler.storage.contract import Store
from reconciler.storage.sqlite.store import open_store
from tests.support import builders
from tests.support.builders import NOW

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """Open a ledger."""
    opened = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    yield opened
    await opened.close()


async def told(watch: Watch) -> list[tuple[str, str, str]]:
    """Return what is new, without the times."""
    return [(line.what, line.job, line.told) for line in await watch.look()]


async def register(store: Store, operation: Operation) -> None:
    """Register an operation."""
    await store.operations.register(operation, builders.first_line(operation), NOW)


async def test_an_event_without_operation_waits(store: Store) -> None:
    """A genuine event for an unknown job is told as accepted and waiting."""
    watch = Watch(store, lambda: NOW)
    await store.inbox.record(builders.new_event(), "cfl_1", NOW)

    assert await told(watch) == [
        (
            "accepted",
            "job_1",
            "job.done: genuine and new; no operation knows this job yet, so it waits for one",
        )
    ]
    assert await told(watch) == []


async def test_a_duplicate_is_counted_and_told(store: Store) -> None:
    """The same event again is a line of its own, each time."""
    watch = Watch(store, lambda: NOW)
    for _ in range(3):
        await store.inbox.record(builders.new_event(), "cfl_1", NOW)
    lines = await told(watch)

    assert [line[0] for line in lines] == ["accepted", "duplicate"]
    assert lines[1][2] == "job.done: seen 3 times, still one event"
    assert (watch.tally.accepted, watch.tally.duplicates) == (1, 2)


async def test_a_conflict_is_told(store: Store) -> None:
    """The same key with other content is shown as what it is."""
    watch = Watch(store, lambda: NOW)
    first = builders.new_event()
    await store.inbox.record(first, "cfl_1", NOW)
    other = builders.new_event(body=b"other", event_id="evt_other")
    await store.inbox.record(other, "cfl_2", NOW)

    lines = await told(watch)

    assert [line[0] for line in lines] == ["accepted", "conflict"]
    assert lines[1][2].startswith("evt_1 is known with other content")


async def test_a_refusal_is_told_once_with_its_reason(store: Store) -> None:
    """What was refused is told with the reason's slug and in words."""
    watch = Watch(store, lambda: NOW)
    await store.inbox.refuse([builders.refusal()], NOW)
    lines = await told(watch)

    assert [line[0] for line in lines] == ["refused"]
    assert lines[0][2].startswith("signature_mismatch at /in/acme: ")
    assert await told(watch) == []
    assert watch.tally.refused == {"signature_mismatch": 1}


async def test_a_flood_of_refusals_is_counted_whole(store: Store) -> None:
    """Refusals that are not kept one by one are told and counted all the same."""
    watch = Watch(store, lambda: NOW)
    await store.inbox.refuse([builders.refusal(number) for number in range(40)], NOW)
    lines = await told(watch)

    assert [line[0] for line in lines] == ["refused"]
    assert "signature_mismatch at /in/acme, 40 times: " in lines[0][2]
    assert watch.tally.refused == {"signature_mismatch": 40}


async def test_a_registration_says_what_came_before_it(store: Store) -> None:
    """An operation that is registered late names the events that waited for it."""
    watch = Watch(store, lambda: NOW)
    await store.inbox.record(builders.new_event(), "cfl_1", NOW)
    await watch.look()
    await register(store, builders.operation(profile="acme", remote_job_id="job_1"))
    lines = await told(watch)

    assert [line[:2] for line in lines] == [("registered", "job_1")]
    assert "1 of its events came first and waited" in lines[0][2]


async def test_an_event_after_the_end_is_told_to_change_nothing(store: Store) -> None:
    """A late callback for an ended operation is not announced as a read."""
    watch = Watch(store, lambda: NOW)
    ended = builders.operation(profile="acme", remote_job_id="job_1", state=State.SUCCEEDED)
    await register(store, ended)
    await watch.look()
    await store.inbox.record(builders.new_event(), "cfl_1", NOW + 1)

    assert (await told(watch))[0][2].endswith("; the operation has ended and stays succeeded")


async def test_what_was_there_before_is_skipped(store: Store) -> None:
    """A second `dev` in the same folder tells and counts only its own run."""
    await store.inbox.record(builders.new_event(), "cfl_1", NOW)
    await store.inbox.refuse([builders.refusal()], NOW)
    watch = Watch(store, lambda: NOW)
    await watch.skip()

    assert await told(watch) == []
    assert (watch.tally.accepted, watch.tally.refused) == (0, {})


async def test_a_hostile_event_is_told_inert(store: Store) -> None:
    """What a stranger wrote into type and job id cannot steer the terminal."""
    watch = Watch(store, lambda: NOW)
    event = builders.new_event(event_type="a\x1b[2J", remote_job_id="j\u202eb")
    await store.inbox.record(event, "cfl_1", NOW)

    assert all(part.isprintable() for line in await told(watch) for part in line)


async def read(store: Store, meaning: Meaning = Meaning.RUNNING) -> None:
    """Do one status read, as the worker does."""
    claimed = (await store.work.claim("w", [f"lease-{NOW}"], 60_000, NOW + 3_600_000))[0]
    decision = builders.read_decision(claimed, meaning, now=NOW + 3_600_000)
    await store.work.commit(claimed.lease, decision, NOW + 3_600_000)


async def test_a_read_and_the_move_it_makes_are_told(store: Store) -> None:
    """What the provider says, and the transition that follows from it, are two lines in order."""
    watch = Watch(store, lambda: NOW)
    await register(store, builders.operation(result_deadline_at=None))
    await watch.look()
    await read(store)

    assert await told(watch) == [
        ("asked", "job_1", 'the provider says "acme_running"'),
        ("moved", "job_1", "accepted -> observing (status read: acme_running)"),
    ]


async def test_an_operation_of_an_earlier_run_is_told_as_such(store: Store) -> None:
    """Work left over from the last `dev` in this folder is not taken for this run's."""
    await register(store, builders.operation(result_deadline_at=None))
    watch = Watch(store, lambda: NOW)
    await watch.skip()
    await read(store)

    lines = await told(watch)

    assert [line[:2] for line in lines] == [("asked", "job_1"), ("moved", "job_1")]
    assert all(line[2].endswith("; registered in an earlier run") for line in lines)
