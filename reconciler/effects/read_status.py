"""Ask the provider how a job stands: the only evidence that moves an operation once it runs."""

from reconciler.domain.decide import Cause, Decision, Read, decide_read, decide_trigger
from reconciler.domain.lease import Claimed
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import Operation, Trigger
from reconciler.domain.retry import Poll
from reconciler.effects.means import Means
from reconciler.providers.errors import ProviderError
from reconciler.providers.interpret import interpret, observation_of
from reconciler.providers.provider import Provider
from reconciler.providers.request import status_request

#: How an operation is read whose profile is no longer configured: seldom, until somebody mends it.
_WITHOUT_PROVIDER = Poll(min_interval_ms=60_000, base_ms=60_000, cap_ms=600_000)


async def read_status(claimed: Claimed, means: Means) -> Decision:
    """Make one status read and decide what it means for the operation."""
    operation, now = claimed.operation, means.clock()
    if _must_not_ask(operation, now):
        # The provider said "not before" and the deadline is now: time decides, nobody is asked.
        cause = Cause(
            means.actor, "deadline", "deadline passed while the provider asked us to wait"
        )
        return decide_trigger(operation, Trigger.DEADLINE_PASSED, cause, now)
    provider = means.providers.get(operation.profile)
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
    return interpret(
        provider.profile,
        answer,
        expected_job_id=operation.remote_job_id,
        expected_reference=operation.client_reference,
        now=now,
        age_ms=now - operation.created_at,
    )
