"""Any sequence of evidence at all keeps the promises of the state machine."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from reconciler.domain import journal
from reconciler.domain.decide import Cause, Decision, Read, decide_read, decide_trigger
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import RULES, Effect, Operation, State, Trigger, fold
from tests.support.builders import NOW, POLL, first_line, operation


@dataclass(frozen=True)
class Step:
    """Some evidence, a while after the last."""

    after_ms: int
    evidence: Observation | Trigger
    jitter: float


TEXTS = st.none() | st.text(max_size=8)
READS = st.builds(
    Observation,
    meaning=st.sampled_from(Meaning),
    fetched_at=st.just(NOW),
    remote_state=TEXTS,
    remote_job_id=TEXTS,
    provider_at=st.none() | st.integers(0, 1 << 45),
    not_before_at=st.none() | st.integers(NOW - 10_000, NOW + 90_000_000),
    detail=TEXTS,
)
STEPS = st.builds(
    Step,
    after_ms=st.integers(0, 2_000_000),
    evidence=READS | st.sampled_from(Trigger),
    jitter=st.floats(0, 1, exclude_max=True),
)


def start(state: State) -> Operation:
    """Return an operation with deadlines an hour ahead and work due, where it has any."""
    rule = RULES[state]
    works = rule.effect is not None and not rule.waits_for_person
    return operation(
        state=state,
        create_deadline_at=NOW + 3_600_000,
        cancel_deadline_at=NOW + 3_600_000,
        collect_deadline_at=NOW + 3_600_000,
        next_at=NOW if works else None,
    )


def apply(value: Operation, step: Step, now: int) -> Decision:
    """Decide on a step's evidence."""
    if isinstance(step.evidence, Trigger):
        return decide_trigger(value, step.evidence, Cause("tests", "cause", "reason"), now)
    read = Read("obs_1", "schedule", step.evidence)
    return decide_read(value, read, now, poll=POLL, jitter=step.jitter, actor="tests")


def check(before: Operation, decision: Decision, now: int) -> None:
    """Hold one decision against every promise that it must keep by itself."""
    after, rule = decision.operation, decision.operation.rule
    works = rule.effect is not None and not rule.waits_for_person
    assert after.version == before.version + 1 == decision.based_on + 1
    assert (decision.due_at is not None) == works
    assert (after.next_at, after.not_before_at) == (decision.due_at, decision.not_before_at)
    assert works == (after.deadline_at() is not None)
    assert not (before.rule.final and decision.transitions)
    assert not (decision.conflict and decision.read is None and decision.transitions)
    if decision.read is not None and rule.effect is Effect.READ_STATUS and works:
        deadline_at = after.deadline_at()
        assert decision.due_at is not None
        assert deadline_at is not None
        assert now < decision.due_at <= deadline_at
        assert decision.due_at >= min(decision.not_before_at, deadline_at)
    kinds = [journal.decode(entry)[0] for entry in decision.entries()]
    observed = ["operation.observed"] if decision.read else []
    assert kinds == [*observed, *["operation.moved"] * len(decision.transitions)]


@given(st.sampled_from(State), st.lists(STEPS, max_size=30))
def test_any_evidence_keeps_the_promises(state: State, steps: Sequence[Step]) -> None:
    """State is the fold of history, an end is final, live work is due, versions grow by one."""
    value, now = start(state), NOW
    history, ended = [first_line(value)], None
    for step in steps:
        now += step.after_ms
        decision = apply(value, step, now)
        check(value, decision, now)
        value = decision.operation
        history += decision.transitions
        ended = ended or (value.state if value.rule.final else None)
    assert fold(history) is value.state
    assert ended in {None, value.state}
