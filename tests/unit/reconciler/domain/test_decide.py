"""From evidence to the next state: what each read and each trigger does."""

from dataclasses import replace

import pytest

from reconciler.domain import journal
from reconciler.domain.decide import COLLECT_DEADLINE_MS
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import RULES, State, Trigger, path
from tests.support.builders import NOW, POLL, observation
from tests.support.deciding import GOES_ON, LATER, POLLED, read, timed, trigger

SEES = {
    Meaning.PENDING: Trigger.SAW_PENDING,
    Meaning.RUNNING: Trigger.SAW_RUNNING,
    Meaning.SUCCEEDED: Trigger.SAW_SUCCEEDED,
    Meaning.FAILED: Trigger.SAW_FAILED,
    Meaning.CANCELLED: Trigger.SAW_CANCELLED,
    Meaning.NOT_FOUND: Trigger.SAW_NOTHING,
    Meaning.THROTTLED: Trigger.SAW_NOTHING,
    Meaning.UNREADABLE: Trigger.SAW_NOTHING,
    Meaning.CONTRADICTION: Trigger.SAW_CONTRADICTION,
}


# ---------------------------------------------------------------- states


@pytest.mark.parametrize("meaning", Meaning)
@pytest.mark.parametrize("state", State)
def test_a_read_moves_along_the_table_only(state: State, meaning: Meaning) -> None:
    """Every meaning in every state ends where the table says; without a row nothing moves."""
    found = path(state, SEES[meaning])
    decision = read(timed(state), observation(meaning))
    assert decision.operation.state is (found[-1] if found else state)
    assert [line.to_state for line in decision.transitions] == list(found or ())
    assert decision.conflict == (SEES[meaning] if found is None else None)


@pytest.mark.parametrize("what", Trigger)
@pytest.mark.parametrize("state", State)
def test_a_trigger_moves_along_the_table_only(state: State, what: Trigger) -> None:
    """Every trigger in every state ends where the table says; without a row nothing moves."""
    found = path(state, what)
    decision = trigger(timed(state), what)
    assert decision.operation.state is (found[-1] if found else state)
    assert decision.conflict == (what if found is None else None)


@pytest.mark.parametrize("meaning", Meaning)
@pytest.mark.parametrize("state", [s for s in State if RULES[s].final])
def test_late_evidence_never_rewrites_an_end(state: State, meaning: Meaning) -> None:
    """A read after the end is recorded as a conflict; state and schedule stay as they are."""
    decision = read(timed(state), observation(meaning))
    assert decision.operation.state is state
    assert decision.transitions == ()
    assert decision.due_at is None
    assert decision.conflict is SEES[meaning]
    assert decision.read is not None


@pytest.mark.parametrize("state", POLLED)
@pytest.mark.parametrize("meaning", [*GOES_ON, Meaning.UNREADABLE])
def test_what_tells_nothing_ends_nothing(state: State, meaning: Meaning) -> None:
    """No answer, 404, throttling, an unknown word: the operation stays alive and is read again."""
    decision = read(timed(state), observation(meaning))
    assert not RULES[decision.operation.state].final
    assert decision.due_at is not None


@pytest.mark.parametrize("word", ["100%", "completed", "finalizing 100", "success"])
def test_progress_proves_no_completion(word: str) -> None:
    """A provider's word counts by its meaning alone: `running` at 100 % is running (O9)."""
    decision = read(timed(State.OBSERVING), observation(Meaning.RUNNING, remote_state=word))
    assert (decision.operation.state, decision.operation.remote_state) == (State.OBSERVING, word)


def test_success_is_collected_first() -> None:
    """A success that was read leads to `result_collecting`, due at once, with its own deadline."""
    decision = read(timed(State.OBSERVING), observation(Meaning.SUCCEEDED))
    assert decision.operation.state is State.RESULT_COLLECTING
    assert decision.due_at == LATER
    assert decision.operation.collect_deadline_at == LATER + COLLECT_DEADLINE_MS


@pytest.mark.parametrize("state", [State.ACCEPTED, State.OBSERVING])
def test_an_answer_about_another_job_stops_automatic_work(state: State) -> None:
    """A contradiction leads to a person; nothing is due any more (O6)."""
    decision = read(timed(state), observation(Meaning.CONTRADICTION, remote_job_id="job_9"))
    assert decision.operation.state is State.NEEDS_DECISION
    assert (decision.due_at, decision.operation.attention) == (None, True)
    assert "job_9" in decision.transitions[-1].reason


@pytest.mark.parametrize("state", [State.CANCELLING, State.RESULT_TIMED_OUT])
def test_a_contradiction_without_a_row_is_recorded(state: State) -> None:
    """Where the table has no row for it, a contradiction is a conflict and the schedule goes on."""
    decision = read(timed(state), observation(Meaning.CONTRADICTION))
    assert (decision.operation.state, decision.conflict) == (state, Trigger.SAW_CONTRADICTION)
    assert (decision.due_at is not None) == (state is State.CANCELLING)


# ---------------------------------------------------------------- facts


def test_local_and_remote_state_are_two_things() -> None:
    """A read updates what the provider says beside the local state, and nothing else (O9, O12)."""
    before = timed(State.OBSERVING, remote_state="queued", remote_updated_at=1)
    seen = observation(Meaning.RUNNING, remote_state="working", provider_at=5, fetched_at=LATER)
    after = read(before, seen).operation
    assert after == replace(
        before,
        version=2,
        updated_at=LATER,
        last_read_at=LATER,
        remote_state="working",
        remote_updated_at=5,
        quiet_reads=0,
        next_at=after.next_at,
        not_before_at=LATER + POLL.min_interval_ms,
    )


@pytest.mark.parametrize("meaning", [Meaning.UNREADABLE, Meaning.THROTTLED, Meaning.NOT_FOUND])
def test_a_read_without_facts_forgets_none(meaning: Meaning) -> None:
    """What was known stays known when an answer says nothing."""
    before = timed(State.OBSERVING, remote_state="working", remote_updated_at=5)
    after = read(before, Observation(meaning, LATER)).operation
    assert (after.remote_state, after.remote_updated_at) == ("working", 5)
    assert after.remote_job_id == before.remote_job_id


def test_the_providers_epoch_is_a_time() -> None:
    """Zero is an instant, not the lack of one."""
    before = timed(State.OBSERVING, remote_updated_at=5)
    assert read(before, observation(provider_at=0)).operation.remote_updated_at == 0


def test_a_job_id_is_learnt_once() -> None:
    """An operation that is read by reference takes the job id that it finds, and keeps it."""
    before = timed(State.ACCEPTED, remote_job_id=None, client_reference="order-1")
    learnt = read(before, observation(remote_job_id="job_7")).operation
    assert learnt.remote_job_id == "job_7"
    assert read(learnt, observation(remote_job_id="job_8")).operation.remote_job_id == "job_7"


def test_nothing_is_learnt_from_a_contradiction() -> None:
    """Facts about another job do not become facts about ours."""
    before = timed(State.OBSERVING, remote_job_id=None, remote_state="working")
    seen = observation(
        Meaning.CONTRADICTION, remote_job_id="job_9", provider_at=9, remote_state="done"
    )
    after = read(before, seen).operation
    assert (after.remote_job_id, after.remote_updated_at) == (None, None)
    assert after.remote_state == "working"


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        (Meaning.UNREADABLE, 4),
        (Meaning.NOT_FOUND, 4),
        (Meaning.THROTTLED, 3),
        (Meaning.RUNNING, 0),
        (Meaning.CONTRADICTION, 0),
    ],
)
def test_reads_that_tell_nothing_are_counted(meaning: Meaning, expected: int) -> None:
    """Unreadable reads in a row add up; a throttled one changes nothing, a read one ends it."""
    before = timed(State.OBSERVING, unreadable_reads=3)
    assert expected == read(before, observation(meaning)).operation.unreadable_reads


# ---------------------------------------------------------------- triggers


def test_a_persons_act_makes_work_due_at_once() -> None:
    """Asking for late reconciliation starts reading now, with the person's name on it."""
    decision = trigger(timed(State.RESULT_TIMED_OUT), Trigger.PERSON_RECONCILES)
    assert (decision.operation.state, decision.due_at) == (State.OBSERVING, LATER)
    line = decision.transitions[0]
    assert (line.actor, line.cause, line.reason, line.at) == ("anna", "cause", "reason", LATER)


def test_a_trigger_without_a_row_changes_no_schedule() -> None:
    """A conflict leaves the work that is due where it was."""
    before = timed(State.OBSERVING, next_at=NOW + 7, not_before_at=NOW + 3)
    decision = trigger(before, Trigger.COLLECTED)
    assert decision.conflict is Trigger.COLLECTED
    assert (decision.due_at, decision.not_before_at) == (NOW + 7, NOW + 3)


@pytest.mark.parametrize("what", [Trigger.RESULT_GONE, Trigger.COLLECTED])
def test_an_end_or_a_persons_turn_has_nothing_due(what: Trigger) -> None:
    """Work ends with the state that had it."""
    decision = trigger(timed(State.RESULT_COLLECTING, next_at=NOW), what)
    assert (decision.due_at, decision.operation.next_at) == (None, None)


# ---------------------------------------------------------------- what is committed


def test_versions_grow_by_one() -> None:
    """A decision says what it was made from, and what it makes is one further."""
    decision = read(timed(State.OBSERVING, version=7), observation())
    assert (decision.based_on, decision.operation.version) == (7, 8)


def test_history_knows_what_caused_it() -> None:
    """Lines name the actor, the observation, the provider's word and the job (O13)."""
    decision = read(timed(State.ACCEPTED), observation(Meaning.FAILED, remote_state="broken"))
    assert [
        (line.at, line.actor, line.from_state, line.to_state, line.cause, line.reason)
        for line in decision.transitions
    ] == [
        (LATER, "worker:1", State.ACCEPTED, State.OBSERVING, "obs_1", "status read: broken"),
        (LATER, "worker:1", State.OBSERVING, State.FAILED, "obs_1", "status read: broken"),
    ]
    assert {line.remote_job_id for line in decision.transitions} == {"job_1"}


def test_the_journal_says_all_that_a_read_showed() -> None:
    """The entry of a read holds every field of the observation; changing any would show (O19)."""
    seen = Observation(
        meaning=Meaning.SUCCEEDED,
        fetched_at=LATER,
        remote_state="done\ud800",
        remote_job_id="job_1",
        provider_at=5,
        http_status=200,
        body_digest="ab",
        not_before_at=6,
        detail="slug",
        request_id="req_1",
        address="192.0.2.1",
    )
    decision = read(timed(State.ACCEPTED), seen)
    entries = [journal.decode(entry) for entry in decision.entries()]
    assert [kind for kind, _ in entries] == ["operation.observed", *["operation.moved"] * 2]
    assert entries[0][1] == {
        "operation_id": decision.operation.operation_id,
        "observation_id": "obs_1",
        "prompted_by": "evt_1",
        "meaning": "succeeded",
        "remote_state": "done\ud800",
        "remote_job_id": "job_1",
        "provider_at": 5,
        "http_status": 200,
        "digest": "ab",
        "not_before_at": 6,
        "detail": "slug",
        "request_id": "req_1",
        "address": "192.0.2.1",
        "at": LATER,
        "conflict": None,
    }
    assert entries[2][1] == {
        "operation_id": decision.operation.operation_id,
        "at": LATER,
        "actor": "worker:1",
        "from": "observing",
        "to": "result_collecting",
        "cause": "obs_1",
        "reason": "status read: done\ud800",
        "remote_job_id": "job_1",
    }


def test_a_conflict_is_told_in_the_journal() -> None:
    """Late evidence is not lost: its entry says which evidence had no row."""
    decision = read(timed(State.CANCELLED), observation(Meaning.SUCCEEDED))
    (entry,) = decision.entries()
    assert journal.decode(entry)[1]["conflict"] == "saw_succeeded"
