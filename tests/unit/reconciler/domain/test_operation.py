"""The transition table, as a graph and against the design."""

from itertools import pairwise

import pytest

from reconciler.domain.operation import (
    PASSED_THROUGH,
    RULES,
    TRANSITIONS,
    Deadline,
    Effect,
    State,
    Transition,
    Trigger,
    fold,
    path,
)
from tests.support.builders import NOW, operation

#: Written by hand from design.md, "Operation states": where evidence can lead, a state that is
#: passed through included (a first read takes `accepted` through `observing` to wherever it leads).
DESIGN = {
    "create_pending": "accepted result_collecting failed cancelled create_unknown needs_decision",
    "create_unknown": "reconciliation needs_decision",
    "reconciliation": "accepted result_collecting failed needs_decision",
    "accepted": "observing cancel_requested result_collecting failed needs_decision"
    " cancelled result_timed_out",
    "observing": "result_collecting failed cancelled cancel_requested result_timed_out"
    " needs_decision",
    "cancel_requested": "cancelling result_collecting failed cancelled cancellation_unconfirmed",
    "cancelling": "cancelled result_collecting failed cancellation_unconfirmed",
    "result_collecting": "succeeded result_unavailable result_validation_failed",
    "result_timed_out": "observing cancel_requested result_collecting failed cancelled",
    "cancellation_unconfirmed": "cancelled result_collecting failed",
    "result_unavailable": "result_collecting failed",
    "result_validation_failed": "result_collecting failed",
    "needs_decision": "accepted failed cancelled",
    "succeeded": "",
    "failed": "",
    "cancelled": "",
}
WAITING = {
    "result_timed_out",
    "cancellation_unconfirmed",
    "result_unavailable",
    "result_validation_failed",
    "needs_decision",
}
FINAL = {"succeeded", "failed", "cancelled"}
PAIRS = [(state, trigger) for state in State for trigger in Trigger]
LIVE = [state for state in State if not RULES[state].final]
WORKING = [state for state in LIVE if not RULES[state].waits_for_person]


def reachable(start: State) -> set[State]:
    """Return every state that some evidence leads to, the start included."""
    seen, ahead = {start}, [start]
    while ahead:
        for state in set(TRANSITIONS[ahead.pop()].values()) - seen:
            seen.add(state)
            ahead.append(state)
    return seen


def ends(state: State) -> set[str]:
    """Return where one piece of evidence can take a state, passing through included."""
    paths = [path(state, trigger) for trigger in Trigger]
    return {found[-1].value for found in paths if found} | {
        step.value for found in paths for step in found or () if step in PASSED_THROUGH.values()
    }


@pytest.mark.parametrize("state", State)
def test_the_table_is_the_designs(state: State) -> None:
    """Each row leads exactly where design.md says."""
    assert set(DESIGN[state].split()) == ends(state)


def test_every_state_has_a_row_and_a_rule() -> None:
    """No state is forgotten in either table, and the design knows no other."""
    assert set(State) == set(TRANSITIONS) == set(RULES) == set(DESIGN)


def test_the_marks_are_the_designs() -> None:
    """The states that wait for a person and the final ones are those of design.md."""
    assert {s.value for s in State if RULES[s].waits_for_person} == WAITING
    assert {s.value for s in State if RULES[s].final} == FINAL


@pytest.mark.parametrize("trigger", Trigger)
@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_final_state_never_moves(state: str, trigger: Trigger) -> None:
    """No evidence whatever leads out of an end; failed to observing above all (O11)."""
    assert path(State(state), trigger) is None


@pytest.mark.parametrize("state", LIVE)
def test_a_live_state_has_work_or_waits(state: State) -> None:
    """Nothing can lie about forever: work is due, or a person is asked."""
    assert RULES[state].waits_for_person or RULES[state].effect is not None


@pytest.mark.parametrize("state", sorted(FINAL))
def test_a_final_state_has_nothing_to_do(state: str) -> None:
    """An end has no work, no deadline and asks nobody."""
    rule = RULES[State(state)]
    assert (rule.effect, rule.deadline, rule.waits_for_person) == (None, None, False)


@pytest.mark.parametrize("state", WORKING)
def test_a_working_state_ends_by_time(state: State) -> None:
    """A state that works has a deadline, and the deadline leads somewhere else."""
    assert RULES[state].deadline is not None
    assert path(state, Trigger.DEADLINE_PASSED)


@pytest.mark.parametrize("state", WORKING)
def test_deadlines_end_with_a_person_or_a_final_state(state: State) -> None:
    """Deadlines alone take a working state to an end or to a person in a few steps."""
    steps = 0
    while state in WORKING:
        found = path(state, Trigger.DEADLINE_PASSED)
        assert found
        state, steps = found[-1], steps + 1
    assert steps <= 2


@pytest.mark.parametrize("state", [s for s in State if RULES[s].waits_for_person])
def test_a_person_has_a_way_on(state: State) -> None:
    """A state that waits for a person has something that a person can do."""
    assert any(trigger.startswith(("person_", "cancel_")) for trigger in TRANSITIONS[state])


@pytest.mark.parametrize("state", LIVE)
def test_every_live_state_can_reach_an_end(state: State) -> None:
    """No live state is a trap."""
    assert {s for s in reachable(state) if RULES[s].final}


@pytest.mark.parametrize("state", LIVE)
def test_every_live_state_can_be_reached(state: State) -> None:
    """No row is dead: each is reached from the two beginnings, create and register."""
    assert state in reachable(State.CREATE_PENDING) | reachable(State.ACCEPTED)


def test_every_trigger_has_a_use() -> None:
    """There is no evidence that no state knows."""
    assert set(Trigger) == {trigger for row in TRANSITIONS.values() for trigger in row}


def test_success_is_always_collected() -> None:
    """Only `result_collecting` leads to `succeeded`."""
    into = {state for state, row in TRANSITIONS.items() if State.SUCCEEDED in row.values()}
    assert into == {State.RESULT_COLLECTING}


def test_asking_to_cancel_is_not_being_cancelled() -> None:
    """An intent or an answered call cancels only what was never sent (O11)."""
    asked = (Trigger.CANCEL_INTENDED, Trigger.CANCEL_ANSWERED, Trigger.CANCEL_NOT_NEEDED)
    cancelled = {s for s in State for t in asked if State.CANCELLED in (path(s, t) or ())}
    assert cancelled == {State.CREATE_PENDING}


@pytest.mark.parametrize(("state", "trigger"), PAIRS)
def test_path_is_total_and_follows_the_table(state: State, trigger: Trigger) -> None:
    """Any pair gives a path along rows of the table, or none; it never stands still or circles."""
    found = path(state, trigger)
    assert (found is None) == (trigger not in TRANSITIONS[state])
    steps = [state, *(found or ())]
    assert len(set(steps)) == len(steps)
    assert all(b in TRANSITIONS[a].values() for a, b in pairwise(steps))


@pytest.mark.parametrize("trigger", [t for t in Trigger if t.startswith("saw_")])
@pytest.mark.parametrize("state", [s for s in State if RULES[s].effect is Effect.READ_STATUS])
def test_a_reading_state_knows_every_read(state: State, trigger: Trigger) -> None:
    """Where reads are made, each but a contradiction has a row; that one may be a conflict."""
    assert trigger is Trigger.SAW_CONTRADICTION or path(state, trigger) is not None


def line(before: State | None, after: State) -> Transition:
    """Return a line of history."""
    return Transition(NOW, "tests", before, after, "test", "a test", None)


def test_fold_follows_every_path() -> None:
    """The state that a history leads to is its last line's."""
    for state, trigger in PAIRS:
        steps = (state, *(path(state, trigger) or ()))
        befores = (None, *steps)
        history = [line(a, b) for a, b in zip(befores, steps, strict=False)]
        assert fold(history) is steps[-1]


def test_fold_of_nothing_is_nothing() -> None:
    """An empty history has no state."""
    assert fold([]) is None


@pytest.mark.parametrize(
    "history",
    [
        [line(State.ACCEPTED, State.OBSERVING)],
        [line(None, State.ACCEPTED), line(State.OBSERVING, State.FAILED)],
        [line(None, State.ACCEPTED), line(None, State.ACCEPTED)],
    ],
)
def test_fold_refuses_a_gap(history: list[Transition]) -> None:
    """A line that does not follow the one before is an error, not a guess."""
    with pytest.raises(ValueError, match="history says"):
        fold(history)


@pytest.mark.parametrize("state", State)
def test_an_operation_shows_its_states_deadline(state: State) -> None:
    """`deadline_at` is the one that the state's rule names, or none."""
    deadlines = {
        Deadline.CREATE: 1,
        Deadline.RESULT: 2,
        Deadline.CANCEL: 3,
        Deadline.COLLECT: 4,
        None: None,
    }
    value = operation(
        state=state,
        create_deadline_at=1,
        result_deadline_at=2,
        cancel_deadline_at=3,
        collect_deadline_at=4,
    )
    assert value.deadline_at() == deadlines[RULES[state].deadline]
    assert value.attention == (state.value in WAITING)
