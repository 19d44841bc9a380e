"""Every engine against the model of a ledger, in any order of steps.

After each rule the answers are compared, and the whole ledger now and then.
"""

import asyncio
import os
import shutil
import tempfile
from dataclasses import replace
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

from reconciler.domain.event import NewEvent, Scope
from reconciler.domain.lease import Claimed
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import Operation, State, fold
from reconciler.storage.contract import EventQuery, LeaseLost, OperationQuery, Store
from reconciler.storage.redis import store as redis
from reconciler.storage.sqlite.store import open_store
from tests.properties.ledger_model import TTL_MS, Model
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
#: Order is what is tested here, not the disk: without waiting for one there are more examples.
_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108


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
