"""Operations end as the provider says when asked, whatever its webhooks do."""

import datetime as dt
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from reconciler.domain.operation import State, Transition, fold
from tests.support.engines import on_both_engines, storage_of
from tests.support.installation import Installation
from tests.support.job_api import JobApi, document, state, status, timeline
from tests.support.signing import Sender
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, on_both_engines]


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, jobs: JobApi, engine: str
) -> Iterator[Installation]:
    """Run a gateway that knows the provider by two profiles: eager, and only when hinted."""
    folder = tmp_path_factory.mktemp("operations") / "it"
    storage = storage_of(engine, folder)
    with Installation(folder, provider_port=jobs.port, storage=storage) as installation:
        for name in ("jobs", "patient"):
            installation.profile(name, poll=name)
            installation.source(name, name)
        installation.profile("hasty", "result_s = 1\n")
        yield installation.start()


@pytest.fixture
def job_id() -> str:
    """Return a job id that no other test uses."""
    return f"job_{secrets.token_hex(6)}"


def _folded(history: list[dict[str, Any]]) -> State | None:
    """Fold what the API shows with the product's own rule."""
    return fold(
        [
            Transition(
                at=round(dt.datetime.fromisoformat(line["at"]).timestamp() * 1000),
                actor=line["actor"],
                from_state=line["from"] and State(line["from"]),
                to_state=State(line["to"]),
                cause=line["cause"],
                reason=line["reason"],
                remote_job_id=line["remote_job_id"],
            )
            for line in history
        ]
    )


def _path(gateway: Installation, operation_id: str) -> list[str]:
    return [line["to"] for line in gateway.history(operation_id)]


# ---------------------------------------------------------------- registering


def test_registering_twice_is_one_operation(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """The first registration is 201 with its Location; the same again is 200 with the same."""
    jobs.job(job_id, "running")
    body = {"profile": "jobs", "remote_job_id": job_id}
    first, again = (gateway.api("POST", "/v1/operations", body) for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert first.json()["operation_id"] == again.json()["operation_id"]
    assert first.header("location") == f"/v1/operations/{first.json()['operation_id']}"
    assert first.json()["state"] == "accepted"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"profile": "nobody", "remote_job_id": "j"}, 404),
        ({"profile": "jobs"}, 400),
        ({"profile": "jobs", "remote_job": "j"}, 400),
        ({"profile": "jobs", "remote_job_id": ""}, 400),
        ({"profile": "jobs", "remote_job_id": 7}, 400),
        ({"profile": "jobs", "remote_job_id": "a\nb"}, 400),
        ({"profile": "jobs", "remote_job_id": "a\ud800"}, 400),
        ({"profile": "jobs", "remote_job_id": "x" * 513}, 400),
        (["profile"], 400),
    ],
)
def test_a_wrong_registration_is_refused_by_name(
    gateway: Installation, body: object, wanted: int
) -> None:
    """What cannot be an operation is a problem document, never a 5xx."""
    answer = gateway.api("POST", "/v1/operations", body)
    assert (answer.status, answer.json()["status"]) == (wanted, wanted)
    assert answer.header("content-type") == "application/problem+json"


def test_an_operation_is_found_by_client_reference(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """Registered by our reference alone, it learns its job id from the provider and ends."""
    reference = f"ref_{job_id}"
    answers = [
        document(id=job_id, status=word, reference=reference) for word in ("running", "succeeded")
    ]
    jobs.job(reference, *answers)
    jobs.job(job_id, *answers)
    operation = gateway.register("jobs", client_reference=reference)
    ended = gateway.ends(operation["operation_id"])
    assert (ended["state"], ended["remote_job_id"]) == ("succeeded", job_id)


def test_an_answer_about_another_reference_needs_a_decision(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """Asked by reference, an answer for somebody else's reference ends nothing well."""
    jobs.job(f"ref_{job_id}", document(id=job_id, status="succeeded", reference="somebody"))
    operation = gateway.register("jobs", client_reference=f"ref_{job_id}")
    assert gateway.ends(operation["operation_id"])["state"] == "needs_decision"


# ---------------------------------------------------------------- webhooks, all ways


@pytest.mark.parametrize("end", ["succeeded", "failed", "cancelled"])
@pytest.mark.parametrize("webhooks", ["present", "doubled", "reordered", "missing", "lying"])
def test_an_operation_ends_as_the_provider_says(
    gateway: Installation, jobs: JobApi, job_id: str, webhooks: str, end: str
) -> None:
    """Webhooks that come, come twice, come in any order, lie, or never come: the same ending."""
    jobs.job(job_id, timeline((0, "queued"), (0.2, "running"), (0.5, end)))
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    sender = gateway.senders["jobs"]
    running, ended = sender.about(job_id, "running"), sender.about(job_id, end)
    lie = sender.about(job_id, "failed" if end == "succeeded" else "succeeded")
    sent = {
        "present": [running, ended],
        "doubled": [running, running, ended, ended],
        "reordered": [ended, running],
        "missing": [],
        "lying": [lie],
    }[webhooks]
    assert [gateway.post(signed.raw()).status for signed in sent] == [200] * len(sent)
    operation = gateway.ends(operation_id)
    history = gateway.history(operation_id)
    collected = ["result_collecting"] if end == "succeeded" else []
    assert operation["state"] == operation["remote_state"] == end
    assert [line["to"] for line in history] == ["accepted", "observing", *collected, end]
    assert _folded(history) == operation["state"]
    assert {event["operation_id"] for event in _events_about(gateway, job_id)} <= {operation_id}
    assert len(_events_about(gateway, job_id)) == len({signed.event_id for signed in sent})


def _events_about(gateway: Installation, job_id: str) -> list[dict[str, Any]]:
    events = gateway.events("jobs") + gateway.events("patient")
    return [event for event in events if event["remote_job_id"] == job_id]


def test_a_forged_success_moves_nothing_and_costs_no_read(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """A webhook without the right signature is no hint: the provider is not even asked."""
    jobs.job(job_id, "running")
    operation_id = gateway.register("patient", remote_job_id=job_id)["operation_id"]
    until(lambda: gateway.operation(operation_id)["state"] == "observing", "the first read")
    before = gateway.operation(operation_id)
    for _ in range(5):
        assert gateway.post(Sender("patient").about(job_id, "succeeded").raw()).status == 401
    genuine = gateway.senders["patient"].about(job_id, "succeeded")
    assert gateway.post(replace(genuine, body=genuine.body + b" ").raw()).status == 401
    until(lambda: len(gateway.refusals("patient")) >= 5, "the refusals are recorded")
    assert gateway.operation(operation_id) == before
    assert len(jobs.reads(job_id)) == 1


def test_a_genuine_lie_costs_a_read_and_moves_nothing(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """A verified webhook that claims success while the job runs makes one read, no ending."""
    jobs.job(job_id, "running")
    operation_id = gateway.register("patient", remote_job_id=job_id)["operation_id"]
    until(lambda: len(gateway.observations(operation_id)) == 1, "the first read")
    assert gateway.post(gateway.senders["patient"].about(job_id, "succeeded").raw()).status == 200
    until(lambda: len(gateway.observations(operation_id)) == 2, "the read that was hinted at")
    operation = gateway.operation(operation_id)
    (event,) = _events_about(gateway, job_id)
    assert (operation["state"], operation["remote_state"]) == ("observing", "running")
    assert gateway.observations(operation_id)[1]["prompted_by"] == event["event_id"]


def test_a_hint_ends_an_operation_long_before_its_next_poll(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """With the next poll ten minutes away, a webhook brings the ending within seconds."""
    jobs.job(job_id, "running", "succeeded")
    operation_id = gateway.register("patient", remote_job_id=job_id)["operation_id"]
    until(lambda: len(gateway.observations(operation_id)) == 1, "the first read")
    gateway.post(gateway.senders["patient"].about(job_id, "succeeded").raw())
    assert gateway.ends(operation_id, within_s=5)["state"] == "succeeded"


def test_a_webhook_after_the_end_moves_nothing(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """A late event is kept with its operation; state, history and reads stay as they were."""
    jobs.job(job_id, "failed")
    operation_id = gateway.register("patient", remote_job_id=job_id)["operation_id"]
    before = gateway.ends(operation_id)
    history, reads = gateway.history(operation_id), len(jobs.reads(job_id))
    jobs.job(job_id, "succeeded")
    gateway.post(gateway.senders["patient"].about(job_id, "succeeded").raw())
    (event,) = _events_about(gateway, job_id)
    # Another operation that is worked on after it shows that the worker has had its turn.
    jobs.job(f"{job_id}_b", "succeeded")
    gateway.ends(gateway.register("patient", remote_job_id=f"{job_id}_b")["operation_id"])
    assert event["operation_id"] == operation_id
    assert gateway.operation(operation_id) == before
    assert gateway.history(operation_id) == history
    assert len(jobs.reads(job_id)) == reads


def test_events_that_come_before_their_operation_are_parked_and_attached(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """An early event is shown as parked, makes no read, and belongs to the operation later."""
    gateway.post(gateway.senders["jobs"].about(job_id, "succeeded").raw())
    parked = gateway.get("/v1/events?parked=true&limit=200")["items"]
    assert [e["operation_id"] for e in parked if e["remote_job_id"] == job_id] == [None]
    assert jobs.reads(job_id) == []
    jobs.job(job_id, "succeeded")
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    attached = gateway.get(f"/v1/events?operation={operation_id}")["items"]
    assert [event["remote_job_id"] for event in attached] == [job_id]
    assert gateway.ends(operation_id)["state"] == "succeeded"
    parked = gateway.get("/v1/events?parked=true&limit=200")["items"]
    assert [event for event in parked if event["remote_job_id"] == job_id] == []


def test_many_hints_are_one_read(gateway: Installation, jobs: JobApi, job_id: str) -> None:
    """Forty events in a burst about one job cost the provider one or two reads, not forty."""
    jobs.job(job_id, "running")
    operation_id = gateway.register("patient", remote_job_id=job_id)["operation_id"]
    until(lambda: len(gateway.observations(operation_id)) == 1, "the first read")
    sender, begun = gateway.senders["patient"], time.monotonic()
    for number in range(40):
        signed = sender.about(job_id, f"step{number}")
        assert gateway.post(signed.raw()).status == 200
    until(lambda: len(gateway.observations(operation_id)) >= 2, "the hinted read")

    def settled() -> bool:
        # Nothing is due before the result deadline, a minute after the registration.
        next_at = dt.datetime.fromisoformat(gateway.operation(operation_id)["next_at"])
        return next_at.timestamp() - time.time() > 5

    until(settled, "no read is due any more")
    # The profile allows a read each 0.3 s.
    assert len(jobs.reads(job_id)) <= 2 + (time.monotonic() - begun) / 0.3
    assert len(jobs.reads(job_id)) < 20


def test_a_storm_about_unknown_jobs_makes_no_read(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """Verified events that name jobs nobody registered are kept and ask the provider nothing."""
    sender = gateway.senders["patient"]
    for number in range(200):
        assert gateway.post(sender.about(f"{job_id}_{number}", "succeeded").raw()).status == 200
    jobs.job(job_id, "succeeded")
    gateway.ends(gateway.register("patient", remote_job_id=job_id)["operation_id"])
    assert [jobs.reads(f"{job_id}_{number}") for number in range(200)] == [[]] * 200


# ---------------------------------------------------------------- deadlines and history


def test_a_passed_result_deadline_stops_asking_and_forgets_nothing(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """After its deadline an operation waits for a person; nobody is asked, nothing is claimed."""
    jobs.job(job_id, "running")
    operation_id = gateway.register("hasty", remote_job_id=job_id)["operation_id"]
    ended = gateway.ends(operation_id)
    reads = len(jobs.reads(job_id))
    assert (ended["state"], ended["attention"]) == ("result_timed_out", True)
    assert (ended["remote_state"], ended["next_at"]) == ("running", None)
    assert _path(gateway, operation_id) == ["accepted", "observing", "result_timed_out"]
    jobs.job(f"{job_id}_b", "succeeded")
    gateway.ends(gateway.register("hasty", remote_job_id=f"{job_id}_b")["operation_id"])
    assert len(jobs.reads(job_id)) == reads


def test_history_only_grows_and_is_what_the_state_follows_from(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """Whenever the history is read, the former one is its beginning and its fold is a state."""
    jobs.job(job_id, timeline((0, "queued"), (0.3, "running"), (0.8, "succeeded")))
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    seen: list[dict[str, Any]] = []
    while gateway.operation(operation_id)["state"] != "succeeded":
        history = gateway.history(operation_id)
        assert history[: len(seen)] == seen
        _folded(history)
        seen = history
    final = gateway.history(operation_id)
    assert final[: len(seen)] == seen
    assert _folded(final) == "succeeded"
    ids = [read["observation_id"] for read in gateway.observations(operation_id)]
    assert final[1]["cause"] == ids[0]
    assert final[-2]["cause"] == ids[-1]


def test_a_status_that_goes_back_after_the_end_changes_nothing(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """What ended stays ended: a provider that says running after succeeded is not asked again."""
    jobs.job(job_id, "succeeded", "running", "failed")
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    assert gateway.ends(operation_id)["state"] == "succeeded"
    gateway.post(gateway.senders["jobs"].about(job_id, "running").raw())
    jobs.job(f"{job_id}_b", "succeeded")
    gateway.ends(gateway.register("jobs", remote_job_id=f"{job_id}_b")["operation_id"])
    assert gateway.operation(operation_id)["state"] == "succeeded"
    assert len(jobs.reads(job_id)) == 1


def test_a_status_that_goes_back_before_the_end_is_followed(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """Running, queued, running again: each word is kept as it came, the local state goes on."""
    jobs.job(job_id, state("running"), state("queued"), status(404), state("succeeded"))
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    assert gateway.ends(operation_id)["state"] == "succeeded"
    words = [read["remote_state"] for read in gateway.observations(operation_id)]
    assert words == ["running", "queued", None, "succeeded"]
