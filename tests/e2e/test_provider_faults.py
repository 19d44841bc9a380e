"""Misbehaving providers, each over a real socket with the state that it must end in.

Two kinds. `RECOVERS`: a read that tells nothing moves nothing, is recorded under its name, and the
next good answer ends the operation. `FOR_EVER`: the fault stays, and the result deadline hands the
operation to a person.
"""

import secrets
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support import job_api
from tests.support.engines import on_both_engines, storage_of
from tests.support.installation import Installation
from tests.support.job_api import JobApi, Reply, document, raw, state, status, timeline
from tests.support.waiting import until

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, jobs: JobApi, engine: str
) -> Iterator[Installation]:
    """Run a gateway whose calls have a deadline of a second and a cap of 64 KiB."""
    folder = tmp_path_factory.mktemp("faults") / "it"
    storage = storage_of(engine, folder)
    with Installation(folder, provider_port=jobs.port, storage=storage) as installation:
        installation.profile("jobs")
        installation.profile("hasty", "result_s = 2\n")
        installation.source("jobs", "jobs")
        yield installation.start()


@pytest.fixture
def job_id() -> str:
    """Return a job id that no other test uses."""
    return f"job_{secrets.token_hex(6)}"


_BOM = b'\xef\xbb\xbf{"id":"j","status":"succeeded"}'

#: name: (what the provider does, meaning, detail)
FAULTS: dict[str, tuple[Reply, str, str | None]] = {
    "unknown_word": (state("finalising"), "unreadable", "unknown_state"),
    "word_in_capitals": (state("SUCCEEDED"), "unreadable", "unknown_state"),
    "empty_word": (state(""), "unreadable", "unknown_state"),
    "null_word": (lambda t: document(id=t.job_id, status=None)(t), "unreadable", "no_state"),
    "number_word": (lambda t: document(id=t.job_id, status=1)(t), "unreadable", "state_not_text"),
    "no_word": (lambda t: document(id=t.job_id)(t), "unreadable", "no_state"),
    "no_id": (document(status="succeeded"), "unreadable", "no_job_id"),
    "a_list": (raw(job_api.response(200, "application/json", b"[1]")), "unreadable", "no_state"),
    "unauthorized": (status(401), "unreadable", "http_401"),
    "forbidden": (status(403), "unreadable", "http_403"),
    "server_error": (status(500, body=b'{"status":"failed"}'), "unreadable", "http_500"),
    "created": (status(201, body=b'{"status":"succeeded"}'), "unreadable", "http_201"),
    "html_login": (job_api.html(), "unreadable", "html"),
    "empty_200": (raw(job_api.response(200, "application/json", b"")), "unreadable", "empty_body"),
    "truncated": (job_api.truncated(), "unreadable", "not_json"),
    "byte_order_mark": (
        raw(job_api.response(200, "application/json", _BOM)),
        "unreadable",
        "not_json",
    ),
    "two_statuses": (
        raw(
            job_api.response(
                200, "application/json", b'{"id":"j","status":"running","status":"succeeded"}'
            )
        ),
        "unreadable",
        "duplicate_key",
    ),
    "not_yet_known": (status(404), "not_found", "within_grace"),
    "throttled": (status(429), "throttled", "http_429"),
    "unavailable": (status(503), "throttled", "http_503"),
    "drip": (job_api.drip(), "unreadable", "timeout"),
    "endless_body": (job_api.endless(), "unreadable", "too_large"),
    "silence": (job_api.silence(), "unreadable", "timeout"),
    "hang_up": (job_api.hang_up(), "unreadable", "no_answer"),
    "half_a_body": (job_api.half_a_body(), "unreadable", "truncated"),
    "no_http": (raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), "unreadable", "bad_http"),
    "gzip": (
        raw(job_api.response(200, "application/json", b"\x1f\x8b", "Content-Encoding: gzip\r\n")),
        "unreadable",
        "content_encoding",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_read_that_tells_nothing_moves_nothing(
    gateway: Installation, jobs: JobApi, job_id: str, fault: str
) -> None:
    """The fault is recorded under its own name and the next good answer ends the operation."""
    reply, meaning, detail = FAULTS[fault]
    jobs.job(job_id, "running", reply, "succeeded")
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    ended = gateway.ends(operation_id)
    reads = gateway.observations(operation_id)
    assert (ended["state"], ended["unreadable_reads"]) == ("succeeded", 0)
    assert [line["to"] for line in gateway.history(operation_id)] == [
        "accepted", "observing", "result_collecting", "succeeded",
    ]  # fmt: skip
    assert [read["meaning"] for read in reads] == ["running", meaning, "succeeded"]
    assert reads[1]["detail"] == detail


@on_both_engines
@pytest.mark.parametrize(
    "fault", ["unknown_word", "unauthorized", "html_login", "not_yet_known", "unavailable"]
)
def test_a_fault_for_ever_ends_at_the_result_deadline(
    gateway: Installation, jobs: JobApi, job_id: str, fault: str
) -> None:
    """A provider that never tells anything leads to a person, not to a guess or endless asking."""
    jobs.job(job_id, FAULTS[fault][0])
    operation_id = gateway.register("hasty", remote_job_id=job_id)["operation_id"]
    ended = gateway.ends(operation_id)
    path = [line["to"] for line in gateway.history(operation_id)]
    assert path == ["accepted", "observing", "result_timed_out"]
    assert (ended["state"], ended["attention"]) == ("result_timed_out", True)
    assert 2 < len(jobs.reads(job_id)) < 41  # 2 s, at least 0.05 s apart


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    gateway: Installation, jobs: JobApi, job_id: str, code: int
) -> None:
    """Where a redirect points to is never asked, even if it is the same provider."""
    other = f"{job_id}_elsewhere"
    jobs.job(other, "succeeded")
    where = f"Location: http://127.0.0.1:{jobs.port}/jobs/{other}\r\n"
    jobs.job(job_id, status(code, where), "failed")
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    assert gateway.ends(operation_id)["state"] == "failed"
    assert gateway.observations(operation_id)[0]["detail"] == "redirect"
    assert jobs.reads(other) == []


@on_both_engines
def test_an_answer_about_another_job_needs_a_decision(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """Another job id in the answer stops all automatic work, whatever the answer says."""
    jobs.job(job_id, "running", document(id="job_of_somebody_else", status="succeeded"))
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    ended = gateway.ends(operation_id)
    reads = len(jobs.reads(job_id))
    assert (ended["state"], ended["attention"]) == ("needs_decision", True)
    assert (ended["remote_job_id"], ended["next_at"]) == (job_id, None)
    assert gateway.post(gateway.senders["jobs"].about(job_id, "succeeded").raw()).status == 200
    jobs.job(f"{job_id}_b", "succeeded")
    gateway.ends(gateway.register("jobs", remote_job_id=f"{job_id}_b")["operation_id"])
    assert len(jobs.reads(job_id)) == reads


@on_both_engines
@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_obeyed(gateway: Installation, jobs: JobApi, job_id: str, code: int) -> None:
    """Told to wait two seconds, the gateway does not ask sooner, not even when hinted."""
    jobs.job(job_id, status(code, "Retry-After: 2\r\n"), "succeeded")
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    until(lambda: gateway.observations(operation_id), "the first read")
    for _ in range(5):
        signed = gateway.senders["jobs"].about(job_id, "succeeded")
        assert gateway.post(signed.raw()).status == 200
    assert gateway.ends(operation_id)["state"] == "succeeded"
    first, second = jobs.reads(job_id)
    assert 1.9 <= second.at - first.at < 5


@pytest.mark.parametrize("junk", ["-1", "1.5", "soon", "0x10", "1e3", "10, 20", "9" * 400])
def test_a_retry_after_that_is_none_is_ignored(
    gateway: Installation, jobs: JobApi, job_id: str, junk: str
) -> None:
    """What is no delay and no date neither stops the polling nor makes it hot."""
    jobs.job(job_id, status(429, f"Retry-After: {junk}\r\n"), "succeeded")
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    assert gateway.ends(operation_id, within_s=5)["state"] == "succeeded"
    assert gateway.observations(operation_id)[0]["not_before"] is None
    first, second = jobs.reads(job_id)
    assert second.at - first.at >= 0.05


def test_a_phase_of_503_is_waited_out(gateway: Installation, jobs: JobApi, job_id: str) -> None:
    """A provider that is away for a while costs patience, never a wrong state."""

    def phase(talk: job_api.Talk) -> None:
        away = 0.3 < talk.age_s < 1.5
        (status(503) if away else timeline((0, "running"), (1.5, "succeeded")))(talk)

    jobs.job(job_id, phase)
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    assert gateway.ends(operation_id)["state"] == "succeeded"
    meanings = [read["meaning"] for read in gateway.observations(operation_id)]
    assert set(meanings) == {"running", "throttled", "succeeded"}


def test_a_provider_that_is_down_and_comes_back_is_asked_again(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Refused connections are unreadable reads; when the provider listens again, the end is read."""
    with socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler) as reserved:
        port = reserved.server_address[1]
    with Installation(tmp_path_factory.mktemp("down") / "it", provider_port=port) as gateway:
        gateway.profile("jobs")
        gateway.start()
        operation_id = gateway.register("jobs", remote_job_id="job_1")["operation_id"]
        until(lambda: len(gateway.observations(operation_id)) >= 2, "two vain reads")
        assert gateway.observations(operation_id)[0]["detail"] == "connect_failed"
        assert gateway.operation(operation_id)["state"] == "observing"
        with JobApi(port) as back:
            back.job("job_1", "succeeded")
            assert gateway.ends(operation_id)["state"] == "succeeded"


@on_both_engines
def test_slow_reads_do_not_hold_up_the_others(
    gateway: Installation, jobs: JobApi, job_id: str
) -> None:
    """While many jobs' reads hang, another operation ends and events are acknowledged at once."""
    for number in range(8):
        jobs.job(f"{job_id}_{number}", job_api.silence())
        gateway.register("hasty", remote_job_id=f"{job_id}_{number}")
    until(lambda: all(jobs.reads(f"{job_id}_{n}") for n in range(8)), "all reads hang")
    jobs.job(job_id, "succeeded")
    begun = time.monotonic()
    assert gateway.post(gateway.senders["jobs"].about(job_id, "succeeded").raw()).status == 200
    acknowledged_s = time.monotonic() - begun
    operation_id = gateway.register("jobs", remote_job_id=job_id)["operation_id"]
    assert gateway.ends(operation_id, within_s=5)["state"] == "succeeded"
    assert acknowledged_s < 1
    assert threading.active_count() < 100
