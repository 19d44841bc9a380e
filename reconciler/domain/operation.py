"""The operation state machine.

Rule 1: every change of an operation's state is an entry of `TRANSITIONS`. A pair that is not in it
is a conflict: recorded, shown, and nothing moves.

Rule 2: a webhook is not a trigger. It only makes a status read due; what that read returns is. So a
forged, replayed or reordered webhook can cost a read, never a state.

Everything that decides which state follows which stands in this file. The table is checked as a
graph in `tests/unit/reconciler/domain/test_operation.py`; the diagram in docs is generated from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconciler.domain.event import Scope


class State(StrEnum):
    """Stored by these names; they never change."""

    CREATE_PENDING = "create_pending"
    CREATE_UNKNOWN = "create_unknown"
    RECONCILIATION = "reconciliation"
    ACCEPTED = "accepted"
    OBSERVING = "observing"
    CANCEL_REQUESTED = "cancel_requested"
    CANCELLING = "cancelling"
    RESULT_COLLECTING = "result_collecting"
    RESULT_TIMED_OUT = "result_timed_out"
    CANCELLATION_UNCONFIRMED = "cancellation_unconfirmed"
    RESULT_UNAVAILABLE = "result_unavailable"
    RESULT_VALIDATION_FAILED = "result_validation_failed"
    NEEDS_DECISION = "needs_decision"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Trigger(StrEnum):
    """The evidence that can move an operation."""

    # Answers to a create call, or to a search for its job.
    JOB_NAMED = "job_named"
    ANSWERED_WITH_RESULT = "answered_with_result"
    CREATE_REFUSED = "create_refused"
    CREATE_POSTPONED = "create_postponed"
    CREATE_AMBIGUOUS = "create_ambiguous"
    WAY_OFFERED = "way_offered"
    NO_WAY = "no_way"
    # Status reads.
    SAW_PENDING = "saw_pending"
    SAW_RUNNING = "saw_running"
    SAW_SUCCEEDED = "saw_succeeded"
    SAW_FAILED = "saw_failed"
    SAW_CANCELLED = "saw_cancelled"
    SAW_NOTHING = "saw_nothing"
    SAW_CONTRADICTION = "saw_contradiction"
    # Cancelling.
    CANCEL_INTENDED = "cancel_intended"
    CANCEL_ANSWERED = "cancel_answered"
    CANCEL_NOT_NEEDED = "cancel_not_needed"
    # Collecting.
    COLLECTED = "collected"
    NOTHING_TO_COLLECT = "nothing_to_collect"
    COLLECT_POSTPONED = "collect_postponed"
    RESULT_GONE = "result_gone"
    RESULT_INVALID = "result_invalid"
    # Time, and persons (each with a name and a reason).
    DEADLINE_PASSED = "deadline_passed"
    PERSON_RECONCILES = "person_reconciles"
    PERSON_RECOLLECTS = "person_recollects"
    PERSON_NAMES_JOB = "person_names_job"
    PERSON_CLOSES_FAILED = "person_closes_failed"
    PERSON_CLOSES_CANCELLED = "person_closes_cancelled"


class Effect(StrEnum):
    """The work that a state makes due."""

    CREATE = "create"
    RECONCILE_CREATE = "reconcile_create"
    READ_STATUS = "read_status"
    CANCEL = "cancel"
    COLLECT = "collect"


class Deadline(StrEnum):
    """Which of an operation's deadlines bounds a state."""

    CREATE = "create_deadline"
    RESULT = "result_deadline"
    CANCEL = "cancel_deadline"
    COLLECT = "collect_deadline"


@dataclass(frozen=True, slots=True)
class Rule:
    """What holds while an operation is in a state."""

    effect: Effect | None = None
    deadline: Deadline | None = None
    waits_for_person: bool = False
    final: bool = False


_S, _T = State, Trigger

RULES: Mapping[State, Rule] = {
    _S.CREATE_PENDING: Rule(Effect.CREATE, Deadline.CREATE),
    _S.CREATE_UNKNOWN: Rule(Effect.RECONCILE_CREATE, Deadline.CREATE),
    _S.RECONCILIATION: Rule(Effect.RECONCILE_CREATE, Deadline.CREATE),
    _S.ACCEPTED: Rule(Effect.READ_STATUS, Deadline.RESULT),
    _S.OBSERVING: Rule(Effect.READ_STATUS, Deadline.RESULT),
    _S.CANCEL_REQUESTED: Rule(Effect.CANCEL, Deadline.CANCEL),
    _S.CANCELLING: Rule(Effect.READ_STATUS, Deadline.CANCEL),
    _S.RESULT_COLLECTING: Rule(Effect.COLLECT, Deadline.COLLECT),
    # A late hint may still make one read due: the provider can end it after we stopped waiting.
    _S.RESULT_TIMED_OUT: Rule(Effect.READ_STATUS, waits_for_person=True),
    _S.CANCELLATION_UNCONFIRMED: Rule(Effect.READ_STATUS, waits_for_person=True),
    _S.RESULT_UNAVAILABLE: Rule(waits_for_person=True),
    _S.RESULT_VALIDATION_FAILED: Rule(waits_for_person=True),
    _S.NEEDS_DECISION: Rule(waits_for_person=True),
    _S.SUCCEEDED: Rule(final=True),
    _S.FAILED: Rule(final=True),
    _S.CANCELLED: Rule(final=True),
}

#: What a read means for a job that is not known to have ended: go on looking.
_GO_ON = (_T.SAW_PENDING, _T.SAW_RUNNING, _T.SAW_NOTHING)

#: A read that shows an end is believed in every state that still waits for one.
_ENDED: Mapping[Trigger, State] = {
    _T.SAW_SUCCEEDED: _S.RESULT_COLLECTING,
    _T.SAW_FAILED: _S.FAILED,
    _T.SAW_CANCELLED: _S.CANCELLED,
}

TRANSITIONS: Mapping[State, Mapping[Trigger, State]] = {
    _S.CREATE_PENDING: {
        _T.JOB_NAMED: _S.ACCEPTED,
        _T.ANSWERED_WITH_RESULT: _S.RESULT_COLLECTING,
        _T.CREATE_REFUSED: _S.FAILED,
        # 429 and refused connections leave no doubt: the same request again until the deadline.
        _T.CREATE_POSTPONED: _S.CREATE_PENDING,
        _T.CREATE_AMBIGUOUS: _S.CREATE_UNKNOWN,
        _T.SAW_CONTRADICTION: _S.NEEDS_DECISION,
        _T.CANCEL_INTENDED: _S.CANCELLED,
        _T.DEADLINE_PASSED: _S.FAILED,
    },
    _S.CREATE_UNKNOWN: {
        _T.WAY_OFFERED: _S.RECONCILIATION,
        _T.NO_WAY: _S.NEEDS_DECISION,
        _T.DEADLINE_PASSED: _S.NEEDS_DECISION,
    },
    _S.RECONCILIATION: {
        _T.JOB_NAMED: _S.ACCEPTED,
        _T.ANSWERED_WITH_RESULT: _S.RESULT_COLLECTING,
        _T.CREATE_REFUSED: _S.FAILED,
        _T.CREATE_POSTPONED: _S.RECONCILIATION,
        _T.CREATE_AMBIGUOUS: _S.RECONCILIATION,
        _T.SAW_CONTRADICTION: _S.NEEDS_DECISION,
        _T.DEADLINE_PASSED: _S.NEEDS_DECISION,
    },
    _S.ACCEPTED: {
        # The first read, whatever it shows, makes it `observing`; the same evidence is then applied
        # there.
        **dict.fromkeys((*_GO_ON, *_ENDED, _T.DEADLINE_PASSED), _S.OBSERVING),
        _T.SAW_CONTRADICTION: _S.NEEDS_DECISION,
        _T.CANCEL_INTENDED: _S.CANCEL_REQUESTED,
    },
    _S.OBSERVING: {
        **dict.fromkeys(_GO_ON, _S.OBSERVING),
        **_ENDED,
        _T.SAW_CONTRADICTION: _S.NEEDS_DECISION,
        _T.CANCEL_INTENDED: _S.CANCEL_REQUESTED,
        _T.DEADLINE_PASSED: _S.RESULT_TIMED_OUT,
    },
    _S.CANCEL_REQUESTED: {
        **dict.fromkeys(_GO_ON, _S.CANCEL_REQUESTED),
        **_ENDED,
        _T.CANCEL_ANSWERED: _S.CANCELLING,
        _T.CANCEL_NOT_NEEDED: _S.CANCELLING,
        # The deadline is `cancelling`'s: passing through keeps one way to an unconfirmed
        # cancellation.
        _T.DEADLINE_PASSED: _S.CANCELLING,
    },
    _S.CANCELLING: {
        **dict.fromkeys(_GO_ON, _S.CANCELLING),
        **_ENDED,
        _T.DEADLINE_PASSED: _S.CANCELLATION_UNCONFIRMED,
    },
    _S.RESULT_COLLECTING: {
        _T.COLLECTED: _S.SUCCEEDED,
        _T.NOTHING_TO_COLLECT: _S.SUCCEEDED,
        _T.COLLECT_POSTPONED: _S.RESULT_COLLECTING,
        _T.RESULT_GONE: _S.RESULT_UNAVAILABLE,
        _T.RESULT_INVALID: _S.RESULT_VALIDATION_FAILED,
        _T.DEADLINE_PASSED: _S.RESULT_UNAVAILABLE,
    },
    _S.RESULT_TIMED_OUT: {
        **dict.fromkeys(_GO_ON, _S.RESULT_TIMED_OUT),
        **_ENDED,
        _T.PERSON_RECONCILES: _S.OBSERVING,
        _T.CANCEL_INTENDED: _S.CANCEL_REQUESTED,
    },
    _S.CANCELLATION_UNCONFIRMED: {
        **dict.fromkeys(_GO_ON, _S.CANCELLATION_UNCONFIRMED),
        **_ENDED,
        _T.PERSON_CLOSES_FAILED: _S.FAILED,
    },
    _S.RESULT_UNAVAILABLE: {
        _T.PERSON_RECOLLECTS: _S.RESULT_COLLECTING,
        _T.PERSON_CLOSES_FAILED: _S.FAILED,
    },
    _S.RESULT_VALIDATION_FAILED: {
        _T.PERSON_RECOLLECTS: _S.RESULT_COLLECTING,
        _T.PERSON_CLOSES_FAILED: _S.FAILED,
    },
    _S.NEEDS_DECISION: {
        _T.PERSON_NAMES_JOB: _S.ACCEPTED,
        _T.PERSON_CLOSES_FAILED: _S.FAILED,
        _T.PERSON_CLOSES_CANCELLED: _S.CANCELLED,
    },
    _S.SUCCEEDED: {},
    _S.FAILED: {},
    _S.CANCELLED: {},
}

#: States that are passed through: the evidence that leads to the second is applied to it once more.
PASSED_THROUGH: Mapping[State, State] = {
    _S.ACCEPTED: _S.OBSERVING,
    _S.CANCEL_REQUESTED: _S.CANCELLING,
}


def path(state: State, trigger: Trigger) -> tuple[State, ...] | None:
    """Return the states that `trigger` leads through; `None` is a conflict.

    The last one is the new state; an empty tuple means that nothing moves.
    """
    first = TRANSITIONS[state].get(trigger)
    if first is None:
        return None
    if first is state:
        return ()
    if PASSED_THROUGH.get(state) is first:
        return (first, *(path(first, trigger) or ()))
    return (first,)


@dataclass(frozen=True, slots=True)
class Operation:
    """One long-running piece of work at a provider. Instants in milliseconds since the epoch."""

    operation_id: str
    scope: Scope
    profile: str
    state: State
    #: Grows by one with every commit; what a decision was based on.
    version: int
    created_at: int
    updated_at: int
    caller: str
    trace_id: str
    request_fingerprint: str
    idempotency_token: str | None
    client_reference: str | None
    remote_job_id: str | None
    create_deadline_at: int | None
    result_deadline_at: int | None
    cancel_deadline_at: int | None = None
    collect_deadline_at: int | None = None
    #: Observed facts, never mixed with the state above (O12).
    remote_state: str | None = None
    remote_updated_at: int | None = None
    last_read_at: int | None = None
    #: The schedule: reads since the last change, the next one, and what the provider asked us to
    #: wait for.
    quiet_reads: int = 0
    next_at: int | None = None
    not_before_at: int | None = None
    #: Reads in a row that told nothing; shown, and an alarm when it grows.
    unreadable_reads: int = 0

    @property
    def rule(self) -> Rule:
        """What holds in the operation's state."""
        return RULES[self.state]

    @property
    def attention(self) -> bool:
        """True where only a person can go on."""
        return self.rule.waits_for_person

    def deadline_at(self) -> int | None:
        """When the operation's state ends by time, or `None`."""
        which = self.rule.deadline
        return (
            None
            if which is None
            else {
                Deadline.CREATE: self.create_deadline_at,
                Deadline.RESULT: self.result_deadline_at,
                Deadline.CANCEL: self.cancel_deadline_at,
                Deadline.COLLECT: self.collect_deadline_at,
            }[which]
        )


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of an operation's history."""

    at: int
    actor: str
    #: `None` for the line that creates the operation.
    from_state: State | None
    to_state: State
    #: What triggered it: an observation's id, a request's, a person's act.
    cause: str
    reason: str
    remote_job_id: str | None


def fold(history: list[Transition]) -> State | None:
    """Return the state a history leads to; `ValueError` if a line does not follow the last."""
    state: State | None = None
    for line in history:
        if line.from_state is not state:
            raise ValueError(f"history says {line.from_state} where {state} stood")
        state = line.to_state
    return state
