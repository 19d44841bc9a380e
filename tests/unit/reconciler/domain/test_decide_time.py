"""When work is due next, and what a deadline does."""

import pytest

from reconciler.domain.observation import Meaning
from reconciler.domain.operation import RULES, Effect, State, Trigger
from tests.support.builders import NOW, POLL, observation
from tests.support.deciding import GOES_ON, LATER, POLLED, read, timed, trigger

# ---------------------------------------------------------------- when next


def quiet(reads: int, jitter: float, **fields: object) -> int | None:
    """Return how long after an unchanged read the next one is due, in ms."""
    before = timed(State.OBSERVING, remote_state="acme_running", quiet_reads=reads, **fields)
    due_at = read(before, observation(), jitter=jitter).due_at
    return None if due_at is None else due_at - LATER


@pytest.mark.parametrize(
    ("reads", "jitter", "expected"),
    [
        (0, 0.0, 1_000),
        (0, 0.999999, 3_999),
        (1, 0.999999, 7_999),
        (3, 0.999999, 31_999),
        (4, 0.999999, 59_999),
        (60, 0.999999, 59_999),
        (10_000, 0.0, 1_000),
    ],
)
def test_quiet_reads_back_off_to_the_cap(reads: int, jitter: float, expected: int) -> None:
    """The ceiling doubles with every read that showed nothing new, up to the cap, with jitter."""
    assert expected == quiet(reads, jitter)


def test_a_change_starts_the_backoff_anew() -> None:
    """A new word of the provider means that things move: the next read is soon."""
    before = timed(State.OBSERVING, remote_state="queued", quiet_reads=9)
    decision = read(before, observation(remote_state="working"), jitter=0.999999)
    assert decision.operation.quiet_reads == 0
    assert decision.due_at == LATER + 1_999


def test_the_same_word_twice_is_quiet() -> None:
    """A read that shows the word that we know does not start the backoff anew."""
    before = timed(State.OBSERVING, remote_state="acme_running", quiet_reads=2)
    assert read(before, observation()).operation.quiet_reads == 3


@pytest.mark.parametrize("meaning", Meaning)
@pytest.mark.parametrize("state", POLLED)
@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999999])
def test_nothing_is_read_in_a_hot_loop(state: State, meaning: Meaning, jitter: float) -> None:
    """Between two reads lies the profile's least interval, whatever was seen."""
    decision = read(timed(state), observation(meaning), jitter=jitter)
    if RULES[decision.operation.state].effect is not Effect.READ_STATUS:
        return
    assert decision.due_at is not None
    assert decision.due_at >= LATER + POLL.min_interval_ms
    assert decision.not_before_at == LATER + POLL.min_interval_ms


def test_jitter_spreads() -> None:
    """Operations that were read together do not come back together."""
    assert len({quiet(5, jitter / 100) for jitter in range(100)}) == 100


def test_retry_after_is_obeyed() -> None:
    """What the provider asked for is the earliest next read, for hints as well."""
    seen = observation(Meaning.THROTTLED, not_before_at=LATER + 500_000)
    decision = read(timed(State.OBSERVING), seen)
    assert (decision.due_at, decision.not_before_at) == (LATER + 500_000, LATER + 500_000)
    assert decision.operation.not_before_at == LATER + 500_000


def test_a_retry_after_in_the_past_makes_no_hurry() -> None:
    """The least interval holds however soon the provider would be asked again."""
    seen = observation(Meaning.THROTTLED, not_before_at=LATER - 5)
    assert read(timed(State.OBSERVING), seen).not_before_at == LATER + POLL.min_interval_ms


def test_the_deadline_pulls_the_next_read_in() -> None:
    """No wait, not even one that the provider asked for, passes over the deadline unseen."""
    seen = observation(Meaning.THROTTLED, not_before_at=LATER + 500_000)
    before = timed(State.OBSERVING, result_deadline_at=LATER + 700)
    decision = read(before, seen)
    assert (decision.due_at, decision.not_before_at) == (LATER + 700, LATER + 500_000)


# ---------------------------------------------------------------- deadlines


@pytest.mark.parametrize("meaning", [*GOES_ON, Meaning.UNREADABLE])
@pytest.mark.parametrize("state", [State.ACCEPTED, State.OBSERVING])
def test_a_passed_deadline_times_out(state: State, meaning: Meaning) -> None:
    """A read that ends nothing, at or after the deadline, is the last one (O7)."""
    decision = read(timed(state, result_deadline_at=LATER), observation(meaning))
    assert (decision.operation.state, decision.due_at) == (State.RESULT_TIMED_OUT, None)
    assert decision.transitions[-1].cause == "deadline"
    assert "may still be running" in decision.transitions[-1].reason


def test_a_deadline_does_not_pass_early() -> None:
    """One millisecond before it, an operation still works."""
    decision = read(timed(State.OBSERVING, result_deadline_at=LATER + 1), observation())
    assert (decision.operation.state, decision.due_at) == (State.OBSERVING, LATER + 1)


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Meaning.SUCCEEDED, State.RESULT_COLLECTING),
        (Meaning.FAILED, State.FAILED),
        (Meaning.CANCELLED, State.CANCELLED),
        (Meaning.CONTRADICTION, State.NEEDS_DECISION),
    ],
)
def test_an_end_that_is_read_late_still_counts(meaning: Meaning, expected: State) -> None:
    """What the provider says in the last read goes before what the clock says."""
    decision = read(timed(State.OBSERVING, result_deadline_at=NOW), observation(meaning))
    assert decision.operation.state is expected


def test_a_late_success_reaches_an_operation_that_timed_out() -> None:
    """Nothing is forgotten: a read after the deadline may end it yet (O7)."""
    decision = read(timed(State.RESULT_TIMED_OUT), observation(Meaning.SUCCEEDED))
    assert decision.operation.state is State.RESULT_COLLECTING


def test_a_timed_out_operation_is_not_polled() -> None:
    """A hint may cause one read there, and no further one follows."""
    decision = read(timed(State.RESULT_TIMED_OUT), observation(Meaning.RUNNING))
    assert (decision.operation.state, decision.due_at) == (State.RESULT_TIMED_OUT, None)


def test_a_cancellation_ends_unconfirmed() -> None:
    """A passed cancel deadline claims nothing: `cancellation_unconfirmed`, for a person (O14)."""
    decision = read(timed(State.CANCELLING, cancel_deadline_at=LATER), observation())
    assert decision.operation.state is State.CANCELLATION_UNCONFIRMED


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.CREATE_PENDING, [State.FAILED]),
        (State.CREATE_UNKNOWN, [State.NEEDS_DECISION]),
        (State.ACCEPTED, [State.OBSERVING, State.RESULT_TIMED_OUT]),
        (State.CANCEL_REQUESTED, [State.CANCELLING, State.CANCELLATION_UNCONFIRMED]),
        (State.RESULT_COLLECTING, [State.RESULT_UNAVAILABLE]),
    ],
)
def test_a_deadline_alone_moves(state: State, expected: list[State]) -> None:
    """Time as the only evidence leads along the table, each step a line of history."""
    decision = trigger(timed(state), Trigger.DEADLINE_PASSED)
    assert expected == [line.to_state for line in decision.transitions]
