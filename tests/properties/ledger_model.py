"""A ledger in plain dictionaries: the contract's words, nothing of how an engine keeps them."""

from dataclasses import dataclass, field, replace

from reconciler.domain.decide import Decision, Read
from reconciler.domain.event import NewEvent, Scope
from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.operation import Operation, Transition
from reconciler.storage.contract import (
    AlreadyRegistered,
    Committed,
    Conflict,
    Duplicate,
    LeaseLost,
    Recorded,
    Registered,
    Stale,
)
from tests.support.builders import first_line

#: How long a claim holds.
TTL_MS = 1_000


@dataclass
class Work:
    """An operation's work, as the contract speaks of it."""

    due_at: int | None
    not_before_at: int = 0
    hints: int = 0
    prompted_by: str = "schedule"
    fence: int = 0
    lease: Lease | None = None
    until_at: int = 0


@dataclass
class Seen:
    """A key's first event."""

    event: NewEvent
    operation_id: str | None
    seen: int = 1
    conflicts: list[str] = field(default_factory=list)


class Model:
    """A ledger in dictionaries."""

    def __init__(self) -> None:
        self.events: dict[tuple[Scope, str, str], Seen] = {}
        self.operations: dict[str, Operation] = {}
        self.history: dict[str, list[Transition]] = {}
        self.reads: dict[str, list[Read]] = {}
        self.work: dict[str, Work] = {}
        self.entries: list[bytes] = []
        self.names: dict[tuple[Scope, str, str, str], str] = {}

    def owner(self, named: NewEvent | Operation) -> str | None:
        """Return who owns the job id, else the reference."""
        for kind, name in self._names(named):
            found = self.names.get((named.scope, str(named.profile), kind, name))
            if found:
                return found
        return None

    @staticmethod
    def _names(named: NewEvent | Operation) -> list[tuple[str, str]]:
        both = [("job", named.remote_job_id), ("reference", named.client_reference)]
        return [(kind, name) for kind, name in both if name is not None]

    def hint(self, operation_id: str | None, event_id: str, now: int) -> None:
        """Make a read due."""
        if operation_id is None or self.operations[operation_id].rule.effect is None:
            return
        work = self.work[operation_id]
        at = max(now, work.not_before_at)
        work.due_at = at if work.due_at is None else min(work.due_at, at)
        work.hints += 1
        work.prompted_by = event_id

    def record(self, event: NewEvent, conflict_id: str, now: int) -> object:
        """Answer as `Inbox.record`."""
        key = (event.scope, event.source, event.key)
        first = self.events.get(key)
        if first is None:
            owner = self.owner(event)
            self.events[key] = Seen(event, owner)
            self.entries.append(event.entry())
            self.hint(owner, event.event_id, now)
            return Recorded(event.event_id, owner)
        if first.event.content_digest != event.content_digest:
            first.conflicts.append(conflict_id)
            self.entries.append(event.conflict_entry(conflict_id))
            self.hint(first.operation_id, first.event.event_id, now)
            return Conflict(first.event.event_id, conflict_id)
        first.seen += 1
        if not event.key_is_id:
            self.hint(first.operation_id, first.event.event_id, now)
        return Duplicate(first.event.event_id, first.seen)

    def register(self, value: Operation, now: int) -> object:
        """Answer as `Operations.register`."""
        owner = self.owner(value)
        if owner:
            return AlreadyRegistered(self.stored(owner))
        works = value.rule.effect is not None and not value.rule.waits_for_person
        self.operations[value.operation_id] = value
        self.work[value.operation_id] = Work(now if works else None)
        self.history[value.operation_id] = [first_line(value)]
        self.reads[value.operation_id] = []
        self.entries.append(b"registered")
        parked = 0
        for kind, name in self._names(value):
            self.names[(value.scope, value.profile, kind, name)] = value.operation_id
        for seen in self.events.values():
            mine = self.owner(seen.event) == value.operation_id
            if seen.operation_id is None and mine:
                seen.operation_id = value.operation_id
                parked += 1
        return Registered(self.stored(value.operation_id), parked)

    def stored(self, operation_id: str) -> Operation:
        """Return an operation with its schedule."""
        work = self.work[operation_id]
        value = self.operations[operation_id]
        return replace(value, next_at=work.due_at, not_before_at=work.not_before_at or None)

    def claimable(self, now: int) -> list[str]:
        """Return the operations with due work that nobody holds, most overdue first."""
        due = [
            (work.due_at, operation_id)
            for operation_id, work in self.work.items()
            if work.due_at is not None
            and work.due_at <= now
            and (work.lease is None or work.until_at <= now)
        ]
        return [operation_id for _, operation_id in sorted(due)]

    def claim(self, lease_ids: list[str], now: int) -> list[Claimed]:
        """Answer as `Work.claim`."""
        claimed = []
        for operation_id, lease_id in zip(self.claimable(now), lease_ids, strict=False):
            work = self.work[operation_id]
            work.fence += 1
            work.until_at = now + TTL_MS
            work.lease = Lease(operation_id, lease_id, work.fence, work.until_at, work.hints)
            claimed.append(Claimed(work.lease, self.stored(operation_id), work.prompted_by))
        return claimed

    def holds(self, lease: Lease) -> bool:
        """Tell whether nobody took the work over."""
        held = self.work[lease.operation_id].lease
        return held is not None and (held.fence, held.lease_id) == (lease.fence, lease.lease_id)

    def commit(self, lease: Lease, decision: Decision) -> object:
        """Answer as `Work.commit`."""
        operation_id = lease.operation_id
        if not self.holds(lease):
            return LeaseLost()
        if self.operations[operation_id].version != decision.based_on:
            return Stale()
        work = self.work[operation_id]
        hinted = work.hints > lease.hints
        self.operations[operation_id] = decision.operation
        self.history[operation_id] += decision.transitions
        if decision.read:
            self.reads[operation_id].append(decision.read)
        self.entries += decision.entries()
        due = [] if decision.due_at is None else [decision.due_at]
        if hinted and decision.operation.rule.effect is not None:
            due.append(decision.not_before_at)
        work.due_at, work.not_before_at = min(due, default=None), decision.not_before_at
        work.lease = None
        work.prompted_by = work.prompted_by if hinted else "schedule"
        return Committed()

    def release(self, lease: Lease, due_at: int, now: int) -> None:
        """Do as `Work.release`."""
        if self.holds(lease):
            work = self.work[lease.operation_id]
            hinted = work.hints > lease.hints
            work.due_at = min(due_at, max(now, work.not_before_at)) if hinted else due_at
            work.lease = None
