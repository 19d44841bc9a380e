"""The status read as an effect: what is asked, and what becomes of any answer."""

import pytest

from reconciler.domain.decide import Decision
from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import Operation, State
from reconciler.effects.read_status import read_status
from reconciler.providers.answer import Answer
from reconciler.providers.errors import EgressDeniedError, ProviderUnavailableError
from reconciler.providers.request import Outbound
from tests.support.builders import NOW, operation
from tests.support.scripted import Reply, ScriptedClient, means, says

pytestmark = pytest.mark.anyio


def never(request: Outbound) -> Answer:
    """Fail the test: nobody is to be asked."""
    raise AssertionError(request.url)


async def run(
    value: Operation, reply: Reply, now: int = NOW + 10_000, *names: str
) -> tuple[Decision, ScriptedClient]:
    """Run the effect on an operation."""
    client = ScriptedClient(reply)
    claimed = Claimed(Lease(value.operation_id, "lse_1", 1, now + 9, 0), value, "evt_1")
    given = means(client, lambda: now, "worker:1", *names)
    return await read_status(claimed, given), client


async def test_the_provider_is_asked_by_job_id() -> None:
    """The read is the profile's status call, with our credential, by the job's id."""
    _, client = await run(operation(), lambda _: says("running"))
    (request,) = client.requests
    assert (request.method, request.url) == ("GET", "http://127.0.0.1:9/jobs/job_1")
    assert ("Authorization", "Bearer s3cret") in request.headers


async def test_the_provider_is_asked_by_reference_until_the_job_is_known() -> None:
    """Without a job id the reference is asked for, and the id that comes back is kept."""
    value = operation(remote_job_id=None, client_reference="order/1")
    decision, client = await run(value, lambda _: says("running", reference="order/1", id="j"))
    assert client.requests[0].url.endswith("/jobs/by-reference/order%2F1")
    assert decision.operation.remote_job_id == "j"


@pytest.mark.parametrize("job_id", [None, "job_1"])
async def test_an_answer_for_another_reference_is_a_contradiction(job_id: str | None) -> None:
    """A read must be about our operation by every name that it is known under (O6)."""
    value = operation(remote_job_id=job_id, client_reference="order-1")
    decision, _ = await run(value, lambda _: says("succeeded", reference="order-2"))
    assert decision.operation.state is State.NEEDS_DECISION
    assert decision.operation.remote_job_id == job_id


async def test_what_prompted_the_read_is_kept() -> None:
    """The observation names the event that made it due."""
    decision, _ = await run(operation(), lambda _: says("running"))
    assert decision.read is not None
    assert (decision.read.prompted_by, decision.read.observation_id) == ("evt_1", "obs_worker:1_1")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ProviderUnavailableError("connect_failed"), "connect_failed"),
        (ProviderUnavailableError("timeout", ambiguous=True), "timeout"),
        (EgressDeniedError("private_address"), "egress_private_address"),
    ],
)
async def test_a_call_without_an_answer_is_unreadable(error: Exception, detail: str) -> None:
    """A call that fails is recorded as what it is, and the operation is read again."""

    async def fail(_request: Outbound) -> Answer:
        raise error

    decision, _ = await run(operation(), fail)
    assert decision.read is not None
    assert decision.read.observation.meaning is Meaning.UNREADABLE
    assert decision.read.observation.detail == detail
    assert decision.due_at is not None
    assert decision.operation.unreadable_reads == 1


@pytest.mark.parametrize(
    ("answer", "meaning", "detail"),
    [
        (says("paused"), Meaning.UNREADABLE, "unknown_state"),
        (Answer(200, body=b"<html>"), Meaning.UNREADABLE, "html"),
        (Answer(200), Meaning.UNREADABLE, "empty_body"),
        (Answer(200, body=b'{"status": nul'), Meaning.UNREADABLE, "not_json"),
        (Answer(401), Meaning.UNREADABLE, "http_401"),
        (Answer(302), Meaning.UNREADABLE, "redirect"),
        (Answer(404), Meaning.NOT_FOUND, None),
        (Answer(429), Meaning.THROTTLED, "http_429"),
    ],
)
async def test_no_answer_is_taken_for_still_running(
    answer: Answer, meaning: Meaning, detail: str | None
) -> None:
    """Whatever cannot be read is counted or waited for, and moves nothing further."""
    decision, _ = await run(operation(state=State.OBSERVING), lambda _: answer)
    assert decision.read is not None
    seen = decision.read.observation
    assert (seen.meaning, seen.detail) == (meaning, detail)
    assert decision.operation.state is State.OBSERVING


async def test_a_job_that_is_not_known_yet_has_its_grace() -> None:
    """Just after the create a 404 is the provider being slow, and is marked so."""
    decision, _ = await run(operation(), lambda _: Answer(404), NOW + 4_999)
    assert decision.read is not None
    assert decision.read.observation.detail == "within_grace"


async def test_retry_after_reaches_the_schedule() -> None:
    """What a 429 asks for stands in the decision."""
    answer = says("", 429, {"retry-after": "120"})
    decision, _ = await run(operation(), lambda _: answer)
    assert decision.not_before_at == NOW + 130_000


async def test_a_profile_that_is_gone_asks_nobody() -> None:
    """Without its profile an operation is looked at seldom, says why, and loses nothing."""
    decision, _ = await run(operation(), never, NOW + 10_000, "other")
    assert decision.read is not None
    assert decision.read.observation.detail == "profile_not_configured"
    assert decision.due_at is not None
    assert decision.due_at >= NOW + 70_000


async def test_a_passed_deadline_does_not_break_not_before() -> None:
    """Asked to wait beyond the deadline, we let time decide and ask nobody."""
    value = operation(state=State.OBSERVING, result_deadline_at=NOW, not_before_at=NOW + 90_000)
    decision, client = await run(value, never)
    assert decision.operation.state is State.RESULT_TIMED_OUT
    assert (decision.read, client.requests) == (None, [])


async def test_a_passed_deadline_is_no_reason_not_to_ask() -> None:
    """The last read, at the deadline, may still find that the job ended well."""
    value = operation(state=State.OBSERVING, result_deadline_at=NOW)
    decision, _ = await run(value, lambda _: says("succeeded"))
    assert decision.operation.state is State.RESULT_COLLECTING
