"""Every engine against a model of plain dictionaries, in any order of steps.

The model knows the contract's words, nothing of how an engine keeps them. After each rule the
answers are compared, and the whole ledger now and then.
"""

import asyncio
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from reconciler.domain.decide import Decision, Read
from reconciler.domain.event import NewEvent, Scope
from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import Operation, State, Transition, fold
from reconciler.storage.contract import (
    AlreadyRegistered,
    Committed,
    Conflict,
    Duplicate,
    EventQuery,
    LeaseLost,
    OperationQuery,
    Recorded,
    Registered,
    Stale,
    Store,
)
from reconciler.storage.redis import store as redis
from reconciler.storage.sqlite.store import open_store
from tests.support import valkey
from tests.support.builders import NOW, amended, first_line, new_event, operation, read_decision

# The usual case stands first, twice: rare meetings would prove little.
_LIVE = Scope("shop", "live")
SCOPES = st.sampled_from([_LIVE, _LIVE, _LIVE, Scope("shop", "test"), Scope("other", "live")])
SOURCES = st.sampled_from(["acme", "acme", "other"])
PROFILES = st.sampled_from(["acme", "acme", "acme", "other"])
JOBS = st.sampled_from(["job_1", "job_1", "job_2", "job_\ud800", None])
REFERENCES = st.sampled_from([None, None, "order-1", "order-2"])
STATES = st.sampled_from(
    [State.OBSERVING, State.OBSERVING, State.RESULT_TIMED_OUT, State.NEEDS_DECISION, State.FAILED]
)
TTL_MS = 1_000
#: Order is what is tested here, not the disk: without waiting for one there are more examples.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


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


class Ledgers(RuleBasedStateMachine):
    """The engine and the model, side by side."""

    #: How a ledger that lives in a folder is opened.
    open_in = staticmethod(lambda folder: open_store(folder / "ledger.db", now=lambda: NOW))
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="vouchback-model-", dir=_MEMORY))
        self.loop = asyncio.new_event_loop()
        self.model, self.now, self.number = Model(), NOW, 0
        self.last: NewEvent | None = None
        self.store = self.opened()

    def opened(self) -> Store:
        """Open the ledger."""
        return self.open_in(self.folder)

    def teardown(self) -> None:
        """Compare everything, then clean up."""
        self.everything_agrees()
        self.loop.run_until_complete(self.store.close())
        self.loop.close()
        shutil.rmtree(self.folder)

    def next_number(self) -> int:
        """Return a number that was not used."""
        self.number += 1
        return self.number

    @rule(
        key=st.sampled_from(["1", "2", "1 ", "\ud800"]),
        is_id=st.booleans(),
        body=st.sampled_from([b"a", b"b"]),
        scope=SCOPES,
        source=SOURCES,
        profile=st.none() | PROFILES,
        job=JOBS,
        reference=REFERENCES,
    )
    def record(
        self,
        *,
        key: str,
        is_id: bool,
        body: bytes,
        scope: Scope,
        source: str,
        profile: str | None,
        job: str | None,
        reference: str | None,
    ) -> None:
        """Receive something, perhaps for the second time."""
        event = new_event(
            self.next_number(),
            key=f"{'id' if is_id else 'digest'}:{key}",
            body=body,
            scope=scope,
            source=source,
            profile=profile,
            # What names no provider's profile names no operation.
            remote_job_id=profile and job,
            client_reference=profile and reference,
        )
        self.receive(event)

    @initialize()
    def start(self) -> None:
        """Have something to work on."""
        for job in ("job_1", "job_2"):
            self.register(
                scope=_LIVE, profile="acme", job=job, reference=None, state=State.OBSERVING
            )

    @rule(
        meaning=st.sampled_from([Meaning.RUNNING, Meaning.RUNNING, *Meaning]),
        hinted=st.booleans(),
        gives_up=st.booleans(),
        late_ms=st.sampled_from([0, 0, TTL_MS]),
    )
    def work(self, meaning: Meaning, hinted: bool, gives_up: bool, late_ms: int) -> None:
        """Do what is due as a worker does, with an event in between, in time or too late."""
        for claimed in self.take(2):
            if hinted:
                self.hint(claimed=claimed, is_id=True)
            self.now += late_ms
            if gives_up:
                self.release(claimed=claimed, delay_ms=5_000)
            else:
                self.commit(claimed=claimed, meaning=meaning, stale=False)

    @rule(claimed=leases, is_id=st.booleans())
    def hint(self, claimed: Claimed, is_id: bool) -> None:
        """Receive an event about an operation that was claimed, perhaps while it still is."""
        named, number = claimed.operation, self.next_number()
        event = new_event(
            number,
            key=f"{'id' if is_id else 'digest'}:evt_{number}",
            scope=named.scope,
            profile=named.profile,
            remote_job_id=named.remote_job_id,
            client_reference=named.client_reference,
        )
        self.receive(event)

    @precondition(lambda self: self.last is not None)
    @rule(body=st.sampled_from([None, None, b"c"]))
    def repeat(self, body: bytes | None) -> None:
        """Receive the last event again, with the same content or another."""
        assert self.last is not None
        self.next_number()
        digest = self.last.content_digest if body is None else body
        self.receive(replace(self.last, content_digest=digest))

    def receive(self, event: NewEvent) -> None:
        """Record an event."""
        conflict_id = f"cfl_{self.number}"
        actual = self.run(self.store.inbox.record(event, conflict_id, self.now))
        assert self.model.record(event, conflict_id, self.now) == actual
        self.last = event

    @rule(scope=SCOPES, profile=PROFILES, job=JOBS, reference=REFERENCES, state=STATES)
    def register(
        self, scope: Scope, profile: str, job: str | None, reference: str | None, state: State
    ) -> None:
        """Start an operation, or name one that runs."""
        value = operation(
            self.next_number(),
            scope=scope,
            profile=profile,
            remote_job_id=job,
            client_reference=reference,
            state=state,
        )
        actual = self.run(self.store.operations.register(value, first_line(value), self.now))
        assert self.model.register(value, self.now) == actual

    @rule(target=leases, count=st.integers(1, 3))
    def claim(self, count: int) -> object:
        """Take what is due."""
        return multiple(*self.take(count))

    def take(self, count: int) -> list[Claimed]:
        """Claim."""
        lease_ids = [f"lease_{self.next_number()}" for _ in range(count)]
        actual = self.run(self.store.work.claim("w", lease_ids, TTL_MS, self.now))
        assert self.model.claim(lease_ids, self.now) == actual
        return actual

    @rule(
        claimed=leases,
        meaning=st.sampled_from(list(Meaning)),
        stale=st.sampled_from([False, False, False, True]),
    )
    def commit(self, claimed: Claimed, meaning: Meaning, stale: bool) -> None:
        """Write what a worker decided, in time or not."""
        decision = read_decision(claimed, meaning, number=self.next_number(), now=self.now)
        if stale:
            decision = amended(decision, version=decision.operation.version + 1)
        actual = self.run(self.store.work.commit(claimed.lease, decision, self.now))
        assert self.model.commit(claimed.lease, decision) == actual

    @rule(claimed=leases)
    def renew(self, claimed: Claimed) -> None:
        """Hold on, if still held."""
        actual = self.run(self.store.work.renew(claimed.lease, TTL_MS, self.now))
        if self.model.holds(claimed.lease):
            self.model.work[claimed.lease.operation_id].until_at = self.now + TTL_MS
            assert replace(claimed.lease, until_at=self.now + TTL_MS) == actual
        else:
            assert LeaseLost() == actual

    @rule(claimed=leases, delay_ms=st.integers(0, 5_000))
    def release(self, claimed: Claimed, delay_ms: int) -> None:
        """Give back what could not be done."""
        self.run(self.store.work.release(claimed.lease, self.now + delay_ms, self.now))
        self.model.release(claimed.lease, self.now + delay_ms, self.now)

    @rule(step_ms=st.sampled_from([1, TTL_MS - 1, TTL_MS, 60_000, -2_000]))
    def pass_time(self, step_ms: int) -> None:
        """Let time pass, or set the clock back."""
        self.now += step_ms

    @rule()
    def reopen(self) -> None:
        """End the process and start again."""
        self.run(self.store.close())
        self.store = self.opened()
        self.everything_agrees()

    @invariant()
    def next_due_agrees(self) -> None:
        """Agree about when there is work."""
        works = self.model.work.values()
        at = [work.until_at if work.lease else work.due_at for work in works]
        expected = min((each for each in at if each is not None), default=None)
        assert expected == self.run(self.store.work.next_due_at(self.now))

    def everything_agrees(self) -> None:
        """Events, operations, histories, reads and journal are the model's."""
        events = self.run(self.store.events.page(EventQuery(limit=1_000)))
        expected = {
            seen.event.event_id: (seen.operation_id, seen.seen)
            for seen in self.model.events.values()
        }
        assert expected == {each.event_id: (each.operation_id, each.seen) for each in events}
        for seen in self.model.events.values():
            conflicts = self.run(self.store.events.conflicts(seen.event.event_id))
            assert seen.conflicts == [each.conflict_id for each in conflicts]
        operations = self.run(self.store.operations.page(OperationQuery(limit=1_000)))
        assert sorted(self.model.operations) == sorted(each.operation_id for each in operations)
        for value in operations:
            self.operation_agrees(value)
        entries = self.run(self.store.journal.page(-1, 10_000))
        assert list(range(len(self.model.entries))) == [each.index for each in entries]

    def operation_agrees(self, value: Operation) -> None:
        """One operation is the model's, and its state what its history leads to."""
        operation_id = value.operation_id
        history = self.run(self.store.operations.history(operation_id))
        assert self.model.stored(operation_id) == value
        assert self.model.history[operation_id] == history
        assert fold(history) is value.state
        reads = self.run(self.store.operations.observations(operation_id))
        assert self.model.reads[operation_id] == reads

    def run(self, step: object) -> object:
        """Run one step of the store."""
        return self.loop.run_until_complete(step)


TestSQLite = Ledgers.TestCase
TestSQLite.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class SharedLedgers(Ledgers):
    """The same on a server that many processes share."""

    open_in = staticmethod(
        lambda folder: redis.open_store(valkey.shared().url(valkey.ledger_of(folder)))
    )


TestRedis = SharedLedgers.TestCase
TestRedis.settings = TestSQLite.settings
