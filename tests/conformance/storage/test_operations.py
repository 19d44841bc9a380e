"""`Operations`: the record of each operation."""

from collections.abc import Callable

import pytest

from reconciler.domain.decide import Read, decide_read
from reconciler.domain.event import Scope
from reconciler.domain.observation import Meaning
from reconciler.domain.operation import State, fold
from reconciler.storage.contract import (
    AlreadyRegistered,
    Committed,
    EventQuery,
    OperationQuery,
    Registered,
    Store,
)
from tests.support.builders import (
    NOW,
    POLL,
    SCOPE,
    first_line,
    new_event,
    observation,
    operation,
    read_decision,
)

pytestmark = pytest.mark.anyio


async def register(store: Store, number: int = 1, **fields: object) -> str:
    """Register an operation that nobody owns yet."""
    value = operation(number, **fields)
    outcome = await store.operations.register(value, first_line(value), NOW)
    assert isinstance(outcome, Registered)
    return value.operation_id


async def test_register(store: Store) -> None:
    """A new operation is stored with its first line of history, and a read is due at once."""
    value = operation(client_reference="order-7", remote_state="n\u00e9w \ud800")

    outcome = await store.operations.register(value, first_line(value), NOW + 3)

    stored = await store.operations.get(value.operation_id)
    assert Registered(stored, 0) == outcome
    assert stored is not None
    assert stored.next_at == NOW + 3
    assert stored.remote_state == "n\u00e9w \ud800"
    assert (value.state, value.version, value.scope) == (
        stored.state,
        stored.version,
        stored.scope,
    )
    assert [first_line(value)] == await store.operations.history(value.operation_id)
    assert len(await store.work.claim("w", ["a", "b"], 1_000, NOW + 3)) == 1


async def test_register_keeps_every_field(store: Store) -> None:
    """What is read back is what was registered, but for the schedule, which is the store's."""
    value = operation(
        idempotency_token="token",
        client_reference="order-7",
        create_deadline_at=1,
        cancel_deadline_at=2,
        collect_deadline_at=3,
        remote_state="queued",
        remote_updated_at=4,
        last_read_at=5,
        quiet_reads=6,
        unreadable_reads=7,
        not_before_at=8,
        next_at=NOW,
    )
    await store.operations.register(value, first_line(value), NOW)

    assert value == await store.operations.get(value.operation_id)


async def test_register_journal(store: Store) -> None:
    """The journal tells of the registration."""
    await register(store)

    assert await store.journal.size() == 1


@pytest.mark.parametrize(
    "again",
    [
        operation(2, remote_job_id="job_1"),
        operation(3, remote_job_id=None, client_reference="order-7"),
        operation(4, client_reference="order-7"),
        operation(1, remote_job_id="job_9"),
    ],
    ids=["job", "reference", "reference of another job", "operation id"],
)
async def test_register_again(store: Store, again: object) -> None:
    """A job, a client reference or an id that is taken names its owner, and nothing is written."""
    first_id = await register(store, client_reference="order-7")
    owner = await store.operations.get(first_id)
    assert isinstance(again, type(owner))

    outcome = await store.operations.register(again, first_line(again), NOW + 9)

    assert AlreadyRegistered(owner) == outcome
    assert [owner] == await store.operations.page(OperationQuery())
    assert await store.journal.size() == 1
    assert len(await store.operations.history(first_id)) == 1


@pytest.mark.parametrize(
    "fields",
    [{"scope": Scope("other", "live")}, {"scope": Scope("shop", "test")}, {"profile": "other"}],
)
async def test_register_scope_of_a_job(store: Store, fields: dict[str, object]) -> None:
    """A job id is unique within project, mode and provider, not beyond."""
    await register(store, 1)

    assert await register(store, 2, remote_job_id="job_1", **fields)


async def test_register_nameless(store: Store) -> None:
    """Operations without a job id and a reference are no one's namesake."""
    await register(store, 1, remote_job_id=None)

    assert await register(store, 2, remote_job_id=None)


async def test_register_attaches_parked(store: Store) -> None:
    """Events that came before their operation belong to it from its registration on."""
    mine = [
        new_event(1),
        new_event(2, remote_job_id=None, client_reference="order-7"),
        new_event(3, remote_job_id="job_1", client_reference="order-7"),
    ]
    others = [
        new_event(4, remote_job_id="job_2"),
        new_event(5, scope=Scope("shop", "test")),
        new_event(6, scope=Scope("other", "live")),
        new_event(7, profile="other"),
    ]
    for event in mine + others:
        await store.inbox.record(event, "cfl", NOW)
    assert len(await store.events.page(EventQuery(parked=True))) == 7

    value = operation(client_reference="order-7")
    outcome = await store.operations.register(value, first_line(value), NOW)

    assert isinstance(outcome, Registered)
    assert outcome.parked_events == 3
    attached = await store.events.page(EventQuery(operation_id=value.operation_id))
    assert [event.event_id for event in mine[::-1]] == [event.event_id for event in attached]
    parked = await store.events.page(EventQuery(parked=True))
    assert [event.event_id for event in others[::-1]] == [event.event_id for event in parked]


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.ACCEPTED, NOW),
        (State.CREATE_PENDING, NOW),
        (State.RESULT_COLLECTING, NOW),
        (State.RESULT_TIMED_OUT, None),
        (State.NEEDS_DECISION, None),
        (State.SUCCEEDED, None),
    ],
)
async def test_register_by_state(store: Store, state: State, expected: int | None) -> None:
    """Work is due where the state has some of its own; a person's turn and an end have none."""
    await register(store, state=state)

    assert expected == await store.work.next_due_at(NOW)


async def test_commit_that_learns_the_job(store: Store) -> None:
    """A job id that a commit brings finds its parked events and its later ones."""
    operation_id = await register(store, remote_job_id=None, client_reference="order-7")
    await store.inbox.record(new_event(1, remote_job_id="job_7"), "cfl", NOW)
    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    read = Read("obs_1", "schedule", observation(remote_job_id="job_7"))
    decision = decide_read(claimed.operation, read, NOW, poll=POLL, jitter=0.5, actor="tests")

    assert Committed() == await store.work.commit(claimed.lease, decision, NOW)

    await store.inbox.record(new_event(2, remote_job_id="job_7"), "cfl", NOW)
    attached = await store.events.page(EventQuery(operation_id=operation_id))
    assert len(attached) == 2


async def test_commit_that_learns_a_job_with_an_owner(store: Store) -> None:
    """A job that two operations claim stays the first one's; the second keeps what it was told."""
    first_id = await register(store, 1)
    second_id = await register(store, 2, remote_job_id=None, client_reference="order-7")
    claimed = await store.work.claim("w", ["a", "b"], 1_000, NOW)
    second = next(each for each in claimed if each.operation.operation_id == second_id)
    read = Read("obs_x", "schedule", observation(remote_job_id="job_1"))
    decision = decide_read(second.operation, read, NOW, poll=POLL, jitter=0.5, actor="tests")
    assert Committed() == await store.work.commit(second.lease, decision, NOW)

    stored = await store.operations.get(second_id)
    assert stored is not None
    assert stored.remote_job_id == "job_1"
    await store.inbox.record(new_event(), "cfl", NOW)
    assert len(await store.events.page(EventQuery(operation_id=first_id))) == 1


async def test_get_unknown(store: Store) -> None:
    """An operation that does not exist is `None`, its history and reads are empty."""
    assert await store.operations.get("op_none") is None
    assert await store.operations.history("op_none") == []
    assert await store.operations.observations("op_none") == []


async def test_page_filters(store: Store) -> None:
    """Each filter finds what it names, newest first."""
    for number in range(1, 5):
        await register(store, number, client_reference=f"order-{number}")
    await register(store, 5, scope=Scope("other", "live"), state=State.OBSERVING)
    await register(store, 6, profile="other", state=State.FAILED)

    async def found(query: OperationQuery) -> list[int]:
        return [int(value.operation_id[3:]) for value in await store.operations.page(query)]

    assert await found(OperationQuery()) == [6, 5, 4, 3, 2, 1]
    assert await found(OperationQuery(scope=SCOPE)) == [6, 4, 3, 2, 1]
    assert await found(OperationQuery(profile="other")) == [6]
    assert await found(OperationQuery(states=(State.OBSERVING, State.FAILED))) == [6, 5]
    assert await found(OperationQuery(remote_job_id="job_2")) == [2]
    assert await found(OperationQuery(client_reference="order-3")) == [3]
    assert await found(OperationQuery(limit=2)) == [6, 5]
    assert await found(OperationQuery(limit=2, before=f"op_{5:026}")) == [4, 3]


async def test_history_leads_to_the_state(store: Store) -> None:
    """The state is what the history folds to, after every commit (O13)."""
    operation_id = await register(store)
    now = NOW
    meanings = [Meaning.PENDING, Meaning.RUNNING, Meaning.UNREADABLE, Meaning.FAILED]
    for number, meaning in enumerate(meanings):
        (claimed,) = await store.work.claim("w", [f"lease_{number}"], 1_000, now)
        decision = read_decision(claimed, meaning, number=number, now=now)
        await store.work.commit(claimed.lease, decision, now)
        stored = await store.operations.get(operation_id)
        assert stored is not None
        assert fold(await store.operations.history(operation_id)) is stored.state
        now += 100_000

    assert State.FAILED is stored.state
    reads = await store.operations.observations(operation_id)
    assert meanings == [read.observation.meaning for read in reads]


async def test_reopen(open_ledger: Callable[[], Store]) -> None:
    """Operation, history, observations and due work are there when the ledger is opened again."""
    before = open_ledger()
    operation_id = await register(before)
    (claimed,) = await before.work.claim("w", ["a"], 1_000, NOW)
    await before.work.commit(claimed.lease, read_decision(claimed), NOW)

    async def seen(store: Store) -> list[object]:
        return [
            await store.operations.get(operation_id),
            await store.operations.history(operation_id),
            await store.operations.observations(operation_id),
            await store.work.next_due_at(NOW),
            await store.journal.page(-1, 100),
        ]

    expected = await seen(before)
    await before.close()
    after = open_ledger()
    try:
        assert expected == await seen(after)
    finally:
        await after.close()
