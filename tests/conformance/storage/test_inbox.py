"""`Inbox`: what arrived, once."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from reconciler.domain import journal
from reconciler.domain.event import REFUSALS_KEPT_A_MINUTE, Scope
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import State
from reconciler.storage.contract import (
    Conflict,
    Duplicate,
    EventQuery,
    OperationQuery,
    Recorded,
    RefusalQuery,
    Store,
)
from tests.support.builders import (
    NOW,
    SCOPE,
    first_line,
    new_event,
    operation,
    read_decision,
    refusal,
)

pytestmark = pytest.mark.anyio

LATER = NOW + 10_000_000


async def register(store: Store, number: int = 1, **fields: object) -> str:
    """Register an operation and do its first read, so that nothing is due before `LATER`."""
    value = operation(number, result_deadline_at=None, **fields)
    await store.operations.register(value, first_line(value), NOW)
    for claimed in await store.work.claim("w", ["lease"], 1_000, NOW):
        await store.work.release(claimed.lease, LATER, NOW)
    return value.operation_id


async def due_at(store: Store) -> int | None:
    """Return when the only operation's work is due."""
    (value,) = await store.operations.page(OperationQuery())
    return value.next_at


async def test_record_new(store: Store) -> None:
    """A new event is stored as it came, and its body byte for byte."""
    event = new_event(body=b"\x00\xff raw", flags=("weak", "unverified"))

    assert Recorded(event.event_id, None) == await store.inbox.record(event, "cfl_1", NOW + 5)

    stored = await store.events.get(event.event_id)
    assert stored is not None
    for name in ("event_id", "scope", "source", "key", "provider_event_id", "event_type", "key_id"):
        assert getattr(event, name) == getattr(stored, name)
    for name in ("signed_at", "flags", "url", "headers", "content_digest", "profile"):
        assert getattr(event, name) == getattr(stored, name)
    assert (stored.body_bytes, stored.seen, stored.received_at) == (6, 1, NOW + 5)
    assert event.body == await store.events.body(event.event_id)


async def test_record_duplicate(store: Store) -> None:
    """A known key with the same content names the first event and counts how often it came."""
    first, again = new_event(), new_event(event_id="evt_other")
    await store.inbox.record(first, "cfl_1", NOW)

    assert Duplicate(first.event_id, 2) == await store.inbox.record(again, "cfl_2", NOW)
    assert Duplicate(first.event_id, 3) == await store.inbox.record(again, "cfl_3", NOW)

    assert await store.events.get("evt_other") is None
    assert await store.journal.size() == 1


async def test_record_duplicate_is_durable(open_ledger: Callable[[], Store]) -> None:
    """Keys and counts outlive the process, whatever came between (F53)."""
    before = open_ledger()
    await before.inbox.record(new_event(), "cfl", NOW)
    await before.inbox.record(new_event(), "cfl", NOW)
    await asyncio.gather(*(before.inbox.record(new_event(n), "cfl", NOW) for n in range(2, 202)))
    await before.close()

    after = open_ledger()
    try:
        assert Duplicate(new_event().event_id, 3) == await after.inbox.record(
            new_event(), "cfl", NOW
        )
    finally:
        await after.close()


async def test_record_concurrently(store: Store) -> None:
    """Fifty requests with one event at once are one event and forty-nine duplicates (F50)."""
    events = [new_event(event_id=f"evt_{n}") for n in range(50)]

    answers = await asyncio.gather(*(store.inbox.record(e, f"cfl_{e}", NOW) for e in events))

    assert {Recorded: 1, Duplicate: 49} == Counter(type(answer) for answer in answers)
    assert set(range(2, 51)) == {a.seen for a in answers if isinstance(a, Duplicate)}
    assert len({answer.event_id for answer in answers}) == 1
    assert len(await store.events.page(EventQuery())) == 1


async def test_record_conflict(store: Store) -> None:
    """A known key with other content is kept as evidence, and the first event stands (F57)."""
    first, other = new_event(), new_event(event_id="evt_2", body=b"other", key_id="k2")
    await store.inbox.record(first, "cfl_1", NOW)

    assert Conflict(first.event_id, "cfl_2") == await store.inbox.record(other, "cfl_2", NOW + 7)

    (evidence,) = await store.events.conflicts(first.event_id)
    assert ("cfl_2", first.event_id, NOW + 7) == (
        evidence.conflict_id,
        evidence.event_id,
        evidence.at,
    )
    assert ("k2", b"other", other.headers) == (evidence.key_id, evidence.body, evidence.headers)
    assert other.content_digest == evidence.content_digest
    stored = await store.events.get(first.event_id)
    assert stored is not None
    assert (first.content_digest, 1) == (stored.content_digest, stored.seen)
    assert first.body == await store.events.body(first.event_id)


async def test_record_conflict_again(store: Store) -> None:
    """The step done again after a lost answer adds nothing to the evidence or the journal."""
    await store.inbox.record(new_event(), "cfl_1", NOW)

    for _ in range(2):
        await store.inbox.record(new_event(body=b"other"), "cfl_2", NOW)

    assert len(await store.events.conflicts(new_event().event_id)) == 1
    assert await store.journal.size() == 2


async def test_record_scope_of_a_key(store: Store) -> None:
    """One id from two sources, projects or modes is as many events (F54)."""
    same = [
        new_event(event_id="evt_1"),
        new_event(event_id="evt_2", source="other"),
        new_event(event_id="evt_3", scope=Scope("other", "live")),
        new_event(event_id="evt_4", scope=Scope("shop", "test")),
    ]

    answers = [await store.inbox.record(event, "cfl", NOW) for event in same]

    assert [Recorded(event.event_id, None) for event in same] == answers


async def test_record_key_is_text(store: Store) -> None:
    """Keys are compared as the texts they are: nothing is trimmed, folded or read as a number."""
    keys = ["id:1", "id:1.0", "id:01", "id:1 ", "id:1\0", "ID:1", "id:\u00e9", "id:e\u0301"]
    keys += ["id:\ud800", "id:\udfff", "id:\ufffd", "1", "1.0"]

    for number, key in enumerate(keys):
        event = new_event(event_id=f"evt_{number}", key=key, event_type=key, url=f"/{key}")
        assert Recorded(event.event_id, None) == await store.inbox.record(event, "cfl", NOW)

    stored = {event.key for event in await store.events.page(EventQuery())}
    assert set(keys) == stored
    assert len(await store.events.page(EventQuery(event_type="id:\ud800"))) == 1


async def test_record_large_body(store: Store) -> None:
    """A body of more than 256 KiB is as durable and comes back the same."""
    body = bytes(range(256)) * 1_200
    await store.inbox.record(new_event(body=body), "cfl", NOW)

    assert body == await store.events.body(new_event().event_id)


async def test_record_journal(store: Store) -> None:
    """Event and conflict are told by the journal, in the caller's own encoding."""
    event, other = new_event(), new_event(body=b"other")
    await store.inbox.record(event, "cfl_1", NOW)
    await store.inbox.record(other, "cfl_2", NOW)

    entries = [entry.entry for entry in await store.journal.page(-1, 10)]

    assert [event.entry(), other.conflict_entry("cfl_2")] == entries
    assert journal.decode(entries[0])[0] == "event.accepted"


# ---------------------------------------------------------------- the read that it makes due


async def test_record_makes_a_read_due(store: Store) -> None:
    """An event about a known job makes its read due at once, and says what prompted it."""
    operation_id = await register(store)

    event = new_event()
    assert Recorded(event.event_id, operation_id) == await store.inbox.record(event, "cfl", NOW)

    (claimed,) = await store.work.claim("w", ["a", "b"], 1_000, NOW)
    assert (operation_id, event.event_id) == (claimed.operation.operation_id, claimed.prompted_by)


async def test_record_coalesces(store: Store) -> None:
    """Many events about one job are one read."""
    await register(store)
    for number in range(1, 4):
        await store.inbox.record(new_event(number), "cfl", NOW)

    (claimed,) = await store.work.claim("w", ["a", "b", "c"], 1_000, NOW)

    assert new_event(3).event_id == claimed.prompted_by
    assert await store.work.claim("w", ["d"], 1_000, NOW) == []


async def test_record_finds_by_reference(store: Store) -> None:
    """Where the job id names no operation, the client reference does."""
    operation_id = await register(store, client_reference="order-7")
    by_reference = new_event(1, remote_job_id=None, client_reference="order-7")
    both = new_event(2, remote_job_id="job_unknown", client_reference="order-7")

    assert Recorded(by_reference.event_id, operation_id) == await store.inbox.record(
        by_reference, "cfl", NOW
    )
    assert Recorded(both.event_id, operation_id) == await store.inbox.record(both, "cfl", NOW)


async def test_record_job_id_first(store: Store) -> None:
    """Of two operations that an event names, the one with the job id is meant."""
    await register(store, 1, client_reference="order-7")
    second_id = await register(store, 2)
    event = new_event(remote_job_id="job_2", client_reference="order-7")

    assert Recorded(event.event_id, second_id) == await store.inbox.record(event, "cfl", NOW)


@pytest.mark.parametrize(
    "fields",
    [
        {"scope": Scope("other", "live")},
        {"scope": Scope("shop", "test")},
        {"profile": "other"},
        {"profile": None},
        {"remote_job_id": None},
        {"remote_job_id": "job_11"},
    ],
)
async def test_record_reaches_nobody_else(store: Store, fields: dict[str, object]) -> None:
    """An event of another project, mode, provider or job never touches an operation."""
    await register(store)
    event = new_event(**fields)

    assert Recorded(event.event_id, None) == await store.inbox.record(event, "cfl", NOW)
    assert await due_at(store) == LATER


async def test_record_id_duplicate_makes_nothing_due(store: Store) -> None:
    """A repeated id of the provider's makes no second read due."""
    await store.inbox.record(new_event(), "cfl", NOW)
    await register(store)

    await store.inbox.record(new_event(), "cfl", NOW)

    assert await due_at(store) == LATER


async def test_record_digest_duplicate_makes_a_read_due(store: Store) -> None:
    """Without an id the same bytes may mean something new: a read is due, no event is added."""
    event = new_event(key="digest:00")
    await store.inbox.record(event, "cfl", NOW)
    await register(store)

    assert Duplicate(event.event_id, 2) == await store.inbox.record(event, "cfl", NOW)

    assert await due_at(store) == NOW


async def test_record_conflict_makes_a_read_due(store: Store) -> None:
    """Of two contents with one key only the provider knows the true one: it is asked."""
    await store.inbox.record(new_event(), "cfl", NOW)
    await register(store)

    await store.inbox.record(new_event(body=b"other"), "cfl", NOW)

    assert await due_at(store) == NOW


async def test_record_obeys_min_interval(store: Store) -> None:
    """No hint makes a read due before what the last decision allows."""
    await register(store)
    await store.inbox.record(new_event(1), "cfl", NOW)
    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    decision = read_decision(claimed, now=NOW)
    await store.work.commit(claimed.lease, decision, NOW)

    await store.inbox.record(new_event(2), "cfl", NOW + 1)

    assert decision.not_before_at > NOW + 1
    assert decision.not_before_at == await due_at(store)


async def test_record_never_postpones(store: Store) -> None:
    """A hint leaves work where it is that is due sooner already."""
    value = operation()
    await store.operations.register(value, first_line(value), NOW)

    await store.inbox.record(new_event(), "cfl", NOW + 500)

    assert await due_at(store) == NOW


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.OBSERVING, NOW + 9),
        (State.RESULT_TIMED_OUT, NOW + 9),
        (State.CANCELLATION_UNCONFIRMED, NOW + 9),
        (State.NEEDS_DECISION, None),
        (State.RESULT_UNAVAILABLE, None),
        (State.SUCCEEDED, None),
        (State.FAILED, None),
    ],
)
async def test_record_by_state(store: Store, state: State, expected: int | None) -> None:
    """A hint makes work due where the state has any, and never for an end."""
    await register(store, state=state)

    await store.inbox.record(new_event(), "cfl", NOW + 9)

    assert expected == await due_at(store)


async def test_record_after_the_end(store: Store) -> None:
    """An event about a job that ended by a commit is attached and makes nothing due."""
    operation_id = await register(store)
    await store.inbox.record(new_event(1), "cfl", NOW)
    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    await store.work.commit(claimed.lease, read_decision(claimed, Meaning.FAILED), NOW)

    late = new_event(2)
    assert Recorded(late.event_id, operation_id) == await store.inbox.record(late, "cfl", LATER)
    assert await store.work.claim("w", ["b"], 1_000, LATER) == []


# ---------------------------------------------------------------- refusals


async def test_refuse_counts(store: Store) -> None:
    """Refusals are counted by scope, source, reason and minute."""
    await store.inbox.refuse([refusal(n) for n in range(7)], NOW)
    others = [
        refusal(10, source="other"),
        refusal(11, reason="timestamp_too_old"),
        refusal(12, at=NOW + 60_000),
        refusal(13, scope=Scope("shop", "test")),
    ]
    await store.inbox.refuse(others, NOW)
    await store.inbox.refuse([refusal(14, at=NOW + 59_999)], NOW)

    counts = await store.events.refusal_counts(NOW)

    assert sorted(count.count for count in counts) == [1, 1, 1, 1, 8]
    assert len({count.digest for count in counts}) == 5
    assert [count.minute_at for count in await store.events.refusal_counts(NOW + 1)] == [
        NOW + 60_000
    ]


async def test_refuse_keeps_few(store: Store) -> None:
    """Only the first few of a source, reason and minute are kept whole: strangers cannot grow it."""
    many = [refusal(n) for n in range(100)]
    await store.inbox.refuse(many[:50], NOW)
    await store.inbox.refuse(many[50:], NOW)

    kept = await store.events.refusals(RefusalQuery(limit=1_000))

    assert many[:REFUSALS_KEPT_A_MINUTE][::-1] == kept


async def test_refuse_nothing(store: Store) -> None:
    """No refusals are no change."""
    await store.inbox.refuse([], NOW)

    assert await store.events.refusal_counts(0) == []


async def test_scope_is_the_tests_own(store: Store) -> None:
    """A query for a scope shows that scope's events only."""
    await store.inbox.record(new_event(1), "cfl", NOW)
    await store.inbox.record(new_event(2, scope=Scope("shop", "test")), "cfl", NOW)

    found = await store.events.page(EventQuery(scope=SCOPE))

    assert [new_event(1).event_id] == [event.event_id for event in found]
