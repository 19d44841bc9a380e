"""Ask the provider how a job stands: the only evidence that moves an operation once it runs."""

from reconciler.domain.decide import Cause, Decision, Read, decide_read, decide_trigger
from reconciler.domain.lease import Claimed
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import Operation, Trigger
from reconciler.domain.retry import Poll
from reconciler.effects.means import Means
from reconciler.effects.turns import Later, Outcome
from reconciler.providers.errors import ProviderError
from reconciler.providers.interpret import interpret, observation_of
from reconciler.providers.provider import Provider
from reconciler.providers.request import status_request

#: How an operation is read whose profile is no longer configured: seldom, until somebody mends it.
_WITHOUT_PROVIDER = Poll(min_interval_ms=60_000, base_ms=60_000, cap_ms=600_000)


async def read_status(claimed: Claimed, means: Means) -> Outcome:
    """Make one status read and decide what it means for the operation, when it is our turn."""
    operation, now = claimed.operation, means.clock()
    if _must_not_ask(operation, now):
        # The provider said "not before" and the deadline is now: time decides, nobody is asked.
        return _time_decides(operation, means.actor, now)
    provider = means.providers.get(operation.profile)
    wait_ms = 0 if provider is None else await means.turns.wait_ms(provider, means.jitter())
    if wait_ms > 0:
        deadline_at = operation.deadline_at()
        if deadline_at is not None and deadline_at <= now:
            return _time_decides(operation, means.actor, now)
        return Later(now + wait_ms if deadline_at is None else min(now + wait_ms, deadline_at))
    observation = await _observe(operation, provider, means)
    read = Read(means.new_id("obs"), claimed.prompted_by, observation)
    return decide_read(
        operation,
        read,
        means.clock(),
        poll=_WITHOUT_PROVIDER if provider is None else provider.profile.poll,
        jitter=means.jitter(),
        actor=means.actor,
    )


def _time_decides(operation: Operation, actor: str, now: int) -> Decision:
    cause = Cause(actor, "deadline", "deadline passed while the provider asked us to wait")
    return decide_trigger(operation, Trigger.DEADLINE_PASSED, cause, now)


def _must_not_ask(operation: Operation, now: int) -> bool:
    deadline_at, not_before_at = operation.deadline_at(), operation.not_before_at
    passed = deadline_at is not None and deadline_at <= now
    return passed and not_before_at is not None and now < not_before_at


async def _observe(operation: Operation, provider: Provider | None, means: Means) -> Observation:
    if provider is None:
        return Observation(Meaning.UNREADABLE, means.clock(), detail="profile_not_configured")
    try:
        request = status_request(
            provider.profile,
            job_id=operation.remote_job_id,
            client_reference=operation.client_reference,
            secret=provider.secret,
        )
        answer = await means.client.send(request)
    except ProviderError as error:
        return observation_of(error, now=means.clock())
    now = means.clock()
    seen = interpret(
        provider.profile,
        answer,
        expected_job_id=operation.remote_job_id,
        expected_reference=operation.client_reference,
        now=now,
        age_ms=now - operation.created_at,
    )
    await means.turns.note(provider, seen)
    return seen
