"""Values for tests: each builder gives a plain example, and takes the fields that matter here."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

from reconciler.domain.decide import Cause, Decision, Read, decide_read, decide_trigger
from reconciler.domain.event import NewEvent, Refusal, Scope
from reconciler.domain.lease import Claimed
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import Operation, State, Transition, Trigger
from reconciler.domain.retry import Poll
from reconciler.domain.token import NewToken, Role

#: An instant: 2026-01-01T00:00:00Z in milliseconds.
NOW = 1_767_225_600_000
SCOPE = Scope("shop", "live")
POLL = Poll(min_interval_ms=1_000, base_ms=2_000, cap_ms=60_000)


def new_event(number: int = 1, **fields: Any) -> NewEvent:
    """Return the verified request number `number` of source `acme`, about job `job_1`."""
    body = fields.pop("body", b'{"id": "evt_%d"}' % number)
    event = NewEvent(
        event_id=f"evt_{number:026}",
        scope=SCOPE,
        source="acme",
        key=f"id:evt_{number}",
        content_digest=sha256(body).digest(),
        provider_event_id=f"evt_{number}",
        event_type="job.done",
        key_id="k1",
        signed_at=NOW,
        flags=(),
        url="/in/acme",
        headers='[["content-type","application/json"]]',
        body=body,
        profile="acme",
        remote_job_id="job_1",
        client_reference=None,
        remember_until_at=NOW + 86_400_000,
    )
    return replace(event, **fields)


def operation(number: int = 1, **fields: Any) -> Operation:
    """Return an accepted operation that owns the provider's job `job_<number>`."""
    value = Operation(
        operation_id=f"op_{number:026}",
        scope=SCOPE,
        profile="acme",
        state=State.ACCEPTED,
        version=1,
        created_at=NOW,
        updated_at=NOW,
        caller="tests",
        trace_id=f"{number:032x}",
        request_fingerprint=f"{number:064x}",
        idempotency_token=None,
        client_reference=None,
        remote_job_id=f"job_{number}",
        create_deadline_at=None,
        result_deadline_at=NOW + 3_600_000,
    )
    return replace(value, **fields)


def first_line(value: Operation) -> Transition:
    """Return the line that opens the operation's history."""
    return Transition(
        at=value.created_at,
        actor="tests",
        from_state=None,
        to_state=value.state,
        cause="register",
        reason="registered by a test",
        remote_job_id=value.remote_job_id,
    )


def observation(meaning: Meaning = Meaning.RUNNING, **fields: Any) -> Observation:
    """Return a status read that found the job in a state of that meaning."""
    value = Observation(
        meaning=meaning, fetched_at=NOW, remote_state=f"acme_{meaning}", http_status=200
    )
    return replace(value, **fields)


def read_decision(
    claimed: Claimed, meaning: Meaning = Meaning.RUNNING, *, number: int = 1, now: int = NOW
) -> Decision:
    """Return what a status read of that meaning decides for claimed work."""
    read = Read(f"obs_{number:026}", claimed.prompted_by, observation(meaning, fetched_at=now))
    return decide_read(claimed.operation, read, now, poll=POLL, jitter=0.5, actor="tests")


def amended(decision: Decision, **fields: Any) -> Decision:
    """Return the decision with other fields in the operation as it will stand."""
    return replace(decision, operation=replace(decision.operation, **fields))


def trigger_decision(value: Operation, trigger: Trigger, *, now: int = NOW) -> Decision:
    """Return what evidence that is no status read decides."""
    return decide_trigger(value, trigger, Cause("tests", "test", "a test says so"), now)


def refusal(number: int = 1, **fields: Any) -> Refusal:
    """Return the refused request number `number`."""
    value = Refusal(
        refusal_id=f"ref_{number:026}",
        scope=SCOPE,
        source="acme",
        reason="signature_mismatch",
        at=NOW,
        peer="127.0.0.1",
        method="POST",
        body_bytes=16,
        body_digest=sha256(b"%d" % number).digest(),
        headers="[]",
    )
    return replace(value, **fields)


def new_token(number: int = 1, **fields: Any) -> NewToken:
    """Return a viewer's token whose text is `token-<number>`."""
    value = NewToken(
        token_id=f"tok_{number:026}",
        scope=SCOPE,
        role=Role.VIEWER,
        label=f"token {number}",
        digest=sha256(b"token-%d" % number).digest(),
        created_by="tests",
        expires_at=None,
    )
    return replace(value, **fields)
