"""Killed at any moment, or stopped: what was acknowledged is there, what was begun is finished."""

import contextlib
import itertools
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import anyio
import apsw
import pytest

from reconciler.domain.journal import decode
from reconciler.storage.contract import JournalEntry
from reconciler.storage.redis.store import open_store as redis
from reconciler.storage.sqlite.store import open_store as sqlite
from tests.support.engines import on_both_engines
from tests.support.installation import SQLITE, Installation
from tests.support.job_api import JobApi, silence, state, timeline
from tests.support.load import Load
from tests.support.signing import Signed
from tests.support.waiting import until
from tests.support.wire import Connection

pytestmark = [pytest.mark.e2e, pytest.mark.slow, on_both_engines]

ROUNDS = 5


def _prepare(install: Callable[[], Installation]) -> Installation:
    gateway = install()
    gateway.profile("jobs")
    gateway.source("jobs", "jobs")
    return gateway.start()


def _stored(gateway: Installation) -> dict[str, dict[str, object]]:
    events = gateway.events("jobs")
    by_id = {str(event["provider_event_id"]): event for event in events}
    assert len(by_id) == len(events), "an id stands twice"
    return by_id


def _check_ledger(gateway: Installation, events: int) -> None:
    """Check that the journal has no gap and one entry an event, and SQLite's file itself."""
    if gateway.storage == SQLITE:
        ledger = apsw.Connection(str(_file(gateway)), flags=apsw.SQLITE_OPEN_READONLY)
        with contextlib.closing(ledger):
            assert ledger.pragma("integrity_check") == "ok"
    entries = anyio.run(_journal, gateway)
    assert [entry.index for entry in entries] == list(range(len(entries)))
    assert [decode(entry.entry)[0] for entry in entries].count("event.accepted") == events


def _file(gateway: Installation) -> Path:
    return gateway.folder / "data/ledger.db"


async def _journal(gateway: Installation) -> list[JournalEntry]:
    is_file = gateway.storage == SQLITE
    store = sqlite(_file(gateway), now=lambda: 0) if is_file else redis(gateway.storage)
    try:
        return await store.journal.page(-1, 1_000_000)
    finally:
        await store.close()


def test_nothing_acknowledged_is_lost_when_killed_under_load(
    install: Callable[[], Installation], jobs: JobApi
) -> None:
    """Five kills under load: every acknowledged event is there, every operation ends as it must.

    Requests without an answer are sent again, as providers do, and become one event each. Restarts
    are quick, and leases of the killed workers are taken over.
    """
    gateway = _prepare(install)
    random, numbers = Random(7), itertools.count()  # noqa: S311  # one order, every time
    ends = ("succeeded", "failed", "cancelled")
    wanted: dict[str, str] = {}
    statuses: set[int] = set()
    acknowledged: list[Signed] = []
    lost_answers: list[Signed] = []

    def make() -> Signed:
        job_id = random.choice(list(wanted)) if wanted else "job_0"
        return gateway.senders["jobs"].about(job_id, f"step{next(numbers)}")

    for round_ in range(ROUNDS):
        for number in range(6):
            job_id, end = f"job_{round_}_{number}", ends[number % 3]
            jobs.job(job_id, timeline((0, "queued"), (0.2, "running"), (1.5 * number, end)))
            gateway.register("jobs", remote_job_id=job_id)
            wanted[job_id] = end
        with Load(gateway.public, make) as load:
            enough = 50 + random.randrange(100)
            until(lambda load=load, n=enough: len(load.answered) >= n, "the load runs")  # type: ignore[misc]
            gateway.kill()
        statuses |= {status for _, status in load.answered}
        acknowledged += load.acknowledged
        lost_answers += load.unanswered
        begun = time.monotonic()
        gateway.start()
        assert time.monotonic() - begun < 5

    assert statuses == {200}
    assert {signed.event_id for signed in acknowledged} <= set(_stored(gateway))
    for signed in lost_answers * 2:
        assert gateway.post(signed.raw()).status == 200
    stored = _stored(gateway)
    for signed in [*acknowledged[:20], *lost_answers]:
        assert gateway.body(str(stored[signed.event_id]["event_id"])) == signed.body
    assert set(stored) == {signed.event_id for signed in [*acknowledged, *lost_answers]}
    operations = gateway.get("/v1/operations?limit=200")["items"]
    ended = {o["remote_job_id"]: gateway.ends(o["operation_id"])["state"] for o in operations}
    assert ended == wanted
    assert gateway.stop() == 0
    _check_ledger(gateway, len(stored))


def test_a_lease_of_a_killed_worker_is_taken_over(
    install: Callable[[], Installation], jobs: JobApi
) -> None:
    """Killed in the middle of a read, the next process reads again when the lease has ended."""
    gateway = _prepare(install)
    answer_now = False

    def reply(talk: object) -> None:
        if not answer_now:
            talk.closing.wait(30)  # type: ignore[attr-defined]
            return
        state("succeeded")(talk)  # type: ignore[arg-type]

    jobs.job("job_hung", reply)
    operation_id = gateway.register("jobs", remote_job_id="job_hung")["operation_id"]
    until(lambda: jobs.reads("job_hung"), "the read is under way")
    gateway.kill()
    answer_now = True
    gateway.start()
    begun = time.monotonic()
    assert gateway.ends(operation_id)["state"] == "succeeded"
    assert time.monotonic() - begun < 5 + 5  # the lease, and some patience
    assert len(jobs.reads("job_hung")) == 2


def test_a_process_that_was_frozen_past_its_lease_does_no_harm(
    install: Callable[[], Installation], jobs: JobApi
) -> None:
    """SIGSTOP in the middle of a read for longer than the lease: one ending, one line a step."""
    gateway = _prepare(install)
    jobs.job("job_1", silence(), "succeeded")
    operation_id = gateway.register("jobs", remote_job_id="job_1")["operation_id"]
    until(lambda: jobs.reads("job_1"), "the read is under way")
    gateway.signal(signal.SIGSTOP)
    time.sleep(5.5)  # nothing to wait for: time has to pass while the process stands still
    gateway.signal(signal.SIGCONT)
    assert gateway.ends(operation_id)["state"] == "succeeded"
    path = [line["to"] for line in gateway.history(operation_id)]
    assert path == ["accepted", "observing", "result_collecting", "succeeded"]
    assert gateway.post(gateway.senders["jobs"].about("job_1", "late").raw()).status == 200
    assert gateway.stop() == 0


def test_a_stop_under_load_finishes_what_was_accepted(
    install: Callable[[], Installation], jobs: JobApi
) -> None:
    """SIGTERM under load: exit code 0, every answer whole, and every acknowledged event there."""
    gateway = _prepare(install)
    jobs.job("job_1", "running")
    gateway.register("jobs", remote_job_id="job_1")
    sender, numbers = gateway.senders["jobs"], itertools.count()
    with Load(gateway.public, lambda: sender.about("job_1", f"s{next(numbers)}")) as load:
        until(lambda: len(load.answered) >= 100, "the load runs")
        begun = time.monotonic()
        code = gateway.stop()
        took_s = time.monotonic() - begun
    # A request may meet a connection that is being closed; then it was never read.
    gateway.start()
    stored = _stored(gateway)
    assert (code, {status for _, status in load.answered}) == (0, {200})
    assert took_s < 5
    assert {signed.event_id for signed in load.acknowledged} <= set(stored)
    assert '"handlers_cancelled": 0' in gateway.log
    assert gateway.stop() == 0
    _check_ledger(gateway, len(stored))


def test_a_stop_waits_for_a_body_that_is_on_its_way(
    install: Callable[[], Installation], jobs: JobApi
) -> None:
    """A request whose headers were read before SIGTERM is answered and kept, then all ends."""
    gateway = _prepare(install)
    assert jobs.port
    signed = gateway.senders["jobs"].sign(b'{"type": "last"}')
    with Connection(gateway.public) as connection:
        connection.send(signed.raw()[:-5])
        # Its head has been read when a request sent later on another connection is answered.
        assert gateway.post(gateway.senders["jobs"].sign(b"{}").raw()).status == 200
        gateway.signal(signal.SIGTERM)
        until(lambda: _refuses(gateway), "the listener is closed")
        connection.send(signed.raw()[-5:])
        assert connection.answer().status == 200
    assert gateway.wait() == 0
    gateway.start()
    assert signed.event_id in _stored(gateway)


def _refuses(gateway: Installation) -> bool:
    try:
        with Connection(gateway.public):
            return False
    except ConnectionError:  # refused, or reset where the listener closes at this moment
        return True
