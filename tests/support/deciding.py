"""Operations and evidence to decide on, at a time after their last change."""

from reconciler.domain.decide import Cause, Decision, Read, decide_read, decide_trigger
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import RULES, Effect, Operation, State, Trigger
from reconciler.domain.retry import Poll
from tests.support.builders import NOW, POLL, operation

LATER = NOW + 50_000
#: States that are read on their own account, and meanings after which the reading goes on.
POLLED = [
    state
    for state, rule in RULES.items()
    if rule.effect is Effect.READ_STATUS and not rule.waits_for_person
]
GOES_ON = (Meaning.PENDING, Meaning.RUNNING, Meaning.NOT_FOUND, Meaning.THROTTLED)


def timed(state: State, **fields: object) -> Operation:
    """Return an operation in a state, with every deadline an hour ahead."""
    deadlines = dict.fromkeys(
        (
            "create_deadline_at",
            "result_deadline_at",
            "cancel_deadline_at",
            "collect_deadline_at",
        ),
        NOW + 3_600_000,
    )
    return operation(**{"state": state, **deadlines, **fields})


def read(
    value: Operation,
    seen: Observation,
    *,
    now: int = LATER,
    poll: Poll = POLL,
    jitter: float = 0.5,
) -> Decision:
    """Decide on a read."""
    return decide_read(
        value, Read("obs_1", "evt_1", seen), now, poll=poll, jitter=jitter, actor="worker:1"
    )


def trigger(value: Operation, what: Trigger, *, now: int = LATER) -> Decision:
    """Decide on evidence that is no read."""
    return decide_trigger(value, what, Cause("anna", "cause", "reason"), now)
