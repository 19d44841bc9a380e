"""From evidence to the next state: pure functions, no clock, no store.

Each function takes the operation as it stands, what happened and `now`, and returns a `Decision`:
the whole new value, the lines of history, when work is due next. The storage commits a decision in
one atomic step or not at all. Which state may follow which is not decided here but in
`operation.TRANSITIONS`.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from reconciler.domain import journal
from reconciler.domain.observation import Meaning, Observation
from reconciler.domain.operation import (
    Deadline,
    Effect,
    Operation,
    State,
    Transition,
    Trigger,
    path,
)
from reconciler.domain.retry import Poll, backoff_ms

T = TypeVar("T")

#: How long the collecting of a result may take before a person is asked.
COLLECT_DEADLINE_MS = 3_600_000

_TRIGGERS = {
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
#: Reads in a row that are counted and alarmed. A throttled one was no read: it changes no count.
_TELLS_NOTHING = (Meaning.NOT_FOUND, Meaning.UNREADABLE)


@dataclass(frozen=True, slots=True)
class Cause:
    """Who does something to an operation, and why: what its history will say."""

    actor: str
    cause: str
    reason: str


@dataclass(frozen=True, slots=True)
class Read:
    """An observation with its id and what made it due: an event's id, or `schedule`."""

    observation_id: str
    prompted_by: str
    observation: Observation


@dataclass(frozen=True, slots=True)
class Decision:
    """What one storage step commits."""

    #: The operation as it will stand.
    operation: Operation
    transitions: tuple[Transition, ...]
    read: Read | None
    #: Evidence for which the table has no row: recorded and shown, nothing moved.
    conflict: Trigger | None

    @property
    def based_on(self) -> int:
        """The version that the decision was made from."""
        return self.operation.version - 1

    @property
    def due_at(self) -> int | None:
        """When work is due again; `None` where nothing is due."""
        return self.operation.next_at

    @property
    def not_before_at(self) -> int:
        """No hint makes a read due before this."""
        return self.operation.not_before_at or 0

    def entries(self) -> tuple[bytes, ...]:
        """Return the journal entries that are written with the decision."""
        entries = [] if self.read is None else [self._read_entry(self.read)]
        entries += [transition_entry(self.operation, line) for line in self.transitions]
        return tuple(entries)

    def _read_entry(self, read: Read) -> bytes:
        seen = read.observation
        return journal.encode(
            "operation.observed",
            {
                "operation_id": self.operation.operation_id,
                "observation_id": read.observation_id,
                "prompted_by": read.prompted_by,
                "meaning": seen.meaning,
                "remote_state": seen.remote_state,
                "remote_job_id": seen.remote_job_id,
                "provider_at": seen.provider_at,
                "http_status": seen.http_status,
                "digest": seen.body_digest,
                "not_before_at": seen.not_before_at,
                "detail": seen.detail,
                "request_id": seen.request_id,
                "address": seen.address,
                "at": seen.fetched_at,
                "conflict": self.conflict,
            },
        )


def transition_entry(operation: Operation, line: Transition) -> bytes:
    """Return the journal entry of one line of an operation's history."""
    return journal.encode(
        "operation.moved",
        {
            "operation_id": operation.operation_id,
            "at": line.at,
            "actor": line.actor,
            "from": line.from_state,
            "to": line.to_state,
            "cause": line.cause,
            "reason": line.reason,
            "remote_job_id": line.remote_job_id,
        },
    )


def decide_read(
    operation: Operation, read: Read, now: int, *, poll: Poll, jitter: float, actor: str
) -> Decision:
    """Apply what a status read showed; then the deadline, if it has passed and nothing ended."""
    seen = read.observation
    told = _with_facts(operation, seen, now)
    trigger = _TRIGGERS[seen.meaning]
    states = path(operation.state, trigger)
    cause = Cause(actor, read.observation_id, _reason(seen))
    moved, lines = _walk(told, states or (), cause, now)
    moved, late = _pass_deadline(moved, now, actor)
    not_before_at = max(now + poll.min_interval_ms, seen.not_before_at or 0)
    return _decision(
        moved,
        lines + late,
        read=read,
        due_at=_due_at(moved, now, not_before_at, poll, jitter),
        not_before_at=not_before_at,
        conflict=trigger if states is None else None,
    )


def decide_trigger(operation: Operation, trigger: Trigger, cause: Cause, now: int) -> Decision:
    """Apply evidence that is no status read: a result, a passed deadline, a person's act."""
    states = path(operation.state, trigger)
    moved, lines = _walk(replace(operation, updated_at=now), states or (), cause, now)
    due_at = now if lines and _works(moved) else moved.next_at
    return _decision(
        moved,
        lines,
        read=None,
        due_at=due_at if _works(moved) else None,
        not_before_at=operation.not_before_at or 0,
        conflict=trigger if states is None else None,
    )


def _decision(
    operation: Operation,
    lines: tuple[Transition, ...],
    *,
    read: Read | None,
    due_at: int | None,
    not_before_at: int,
    conflict: Trigger | None,
) -> Decision:
    version = operation.version + 1
    after = replace(operation, version=version, next_at=due_at, not_before_at=not_before_at)
    return Decision(after, lines, read, conflict)


def _with_facts(operation: Operation, seen: Observation, now: int) -> Operation:
    """Return the operation with what the read observed; local state untouched (O12)."""
    changed = seen.remote_state is not None and seen.remote_state != operation.remote_state
    read = replace(
        operation,
        updated_at=now,
        last_read_at=seen.fetched_at,
        quiet_reads=0 if changed else operation.quiet_reads + 1,
        unreadable_reads=_unreadable_reads(operation, seen.meaning),
    )
    if seen.meaning is Meaning.CONTRADICTION:
        return read  # what it says is about another job
    return replace(
        read,
        remote_state=_known(seen.remote_state, operation.remote_state),
        remote_updated_at=_known(seen.provider_at, operation.remote_updated_at),
        remote_job_id=_known(operation.remote_job_id, seen.remote_job_id),
    )


def _unreadable_reads(operation: Operation, meaning: Meaning) -> int:
    if meaning is Meaning.THROTTLED:
        return operation.unreadable_reads
    return operation.unreadable_reads + 1 if meaning in _TELLS_NOTHING else 0


def _known(first: T | None, second: T | None) -> T | None:
    return second if first is None else first


def _walk(
    operation: Operation, states: tuple[State, ...], cause: Cause, now: int
) -> tuple[Operation, tuple[Transition, ...]]:
    lines: list[Transition] = []
    for state in states:
        lines.append(
            Transition(
                at=now,
                actor=cause.actor,
                from_state=operation.state,
                to_state=state,
                cause=cause.cause,
                reason=cause.reason,
                remote_job_id=operation.remote_job_id,
            )
        )
        operation = replace(operation, state=state)
        if operation.rule.deadline is Deadline.COLLECT:
            operation = replace(operation, collect_deadline_at=now + COLLECT_DEADLINE_MS)
    return operation, tuple(lines)


def _pass_deadline(
    operation: Operation, now: int, actor: str
) -> tuple[Operation, tuple[Transition, ...]]:
    deadline_at = operation.deadline_at()
    if deadline_at is None or now < deadline_at:
        return operation, ()
    which = operation.rule.deadline
    cause = Cause(actor, "deadline", f"{which} passed; the remote job may still be running")
    states = path(operation.state, Trigger.DEADLINE_PASSED) or ()
    return _walk(operation, states, cause, now)


def _works(operation: Operation) -> bool:
    """Tell whether the state has work due by itself (a person's turn and an end have none)."""
    return operation.rule.effect is not None and not operation.rule.waits_for_person


def _due_at(
    operation: Operation, now: int, not_before_at: int, poll: Poll, jitter: float
) -> int | None:
    if not _works(operation):
        return None
    if operation.rule.effect is not Effect.READ_STATUS:
        return now
    wait_ms = backoff_ms(
        operation.quiet_reads, base_ms=poll.base_ms, cap_ms=poll.cap_ms, jitter=jitter
    )
    due_at = max(now + wait_ms, not_before_at)
    deadline_at = operation.deadline_at()
    return due_at if deadline_at is None else min(due_at, deadline_at)


def _reason(seen: Observation) -> str:
    if seen.meaning is Meaning.CONTRADICTION:
        return f"the provider answered for another job: {seen.detail} ({seen.remote_job_id})"
    if seen.remote_state is None:
        return f"status read told nothing: {seen.detail or seen.meaning}"
    return f"status read: {seen.remote_state}"
