"""`Events`: reading what arrived."""

import pytest

from reconciler.domain.event import Scope
from reconciler.storage.contract import EventQuery, OperationQuery, RefusalQuery, Store
from tests.support.builders import NOW, SCOPE, first_line, new_event, operation, refusal

pytestmark = pytest.mark.anyio


async def found(store: Store, query: EventQuery) -> list[int]:
    """Return the numbers of a page's events."""
    return [int(event.event_id[4:]) for event in await store.events.page(query)]


async def test_unknown(store: Store) -> None:
    """An event that does not exist is `None`, and so is its body."""
    assert await store.events.get("evt_none") is None
    assert await store.events.body("evt_none") is None
    assert await store.events.conflicts("evt_none") == []


async def test_empty_body(store: Store) -> None:
    """An empty body is a body."""
    await store.inbox.record(new_event(body=b""), "cfl", NOW)

    assert await store.events.body(new_event().event_id) == b""


async def test_page_filters(store: Store) -> None:
    """Each filter finds what it names, newest first."""
    await store.operations.register(operation(9), first_line(operation(9)), NOW)
    for event in (
        new_event(1),
        new_event(2, source="other"),
        new_event(3, event_type="job.failed"),
        new_event(4, event_type=None, profile=None),
        new_event(5, scope=Scope("shop", "test"), remote_job_id=None),
        new_event(6, remote_job_id="job_9"),
        new_event(7, remote_job_id=None, client_reference="order-7"),
    ):
        await store.inbox.record(event, "cfl", NOW)

    assert await found(store, EventQuery()) == [7, 6, 5, 4, 3, 2, 1]
    assert await found(store, EventQuery(scope=SCOPE)) == [7, 6, 4, 3, 2, 1]
    assert await found(store, EventQuery(source="other")) == [2]
    assert await found(store, EventQuery(event_type="job.failed")) == [3]
    assert await found(store, EventQuery(operation_id=operation(9).operation_id)) == [6]
    assert await found(store, EventQuery(parked=True)) == [7, 3, 2, 1]
    assert await found(store, EventQuery(parked=True, source="acme", limit=2)) == [7, 3]


async def test_scopes_of_a_question(store: Store) -> None:
    """In what is asked for, `*` stands for every project or every mode; in what is kept, it is none."""
    places = [Scope("shop", "live"), Scope("shop", "test"), Scope("other", "live")]
    for number, scope in enumerate(places):
        await store.inbox.record(new_event(number, scope=scope), "cfl", NOW)
        await store.inbox.refuse([refusal(number, scope=scope)], NOW)
        run = operation(number, scope=scope)
        await store.operations.register(run, first_line(run), NOW)
    for asked, expected in (
        (Scope("shop", "*"), places[:2]),
        (Scope("*", "live"), [places[0], places[2]]),
        (Scope("*", "*"), places),
        (Scope("nobody", "*"), []),
    ):
        events = await store.events.page(EventQuery(scope=asked))
        refusals = await store.events.refusals(RefusalQuery(scope=asked))
        operations = await store.operations.page(OperationQuery(scope=asked))
        for items in (events, refusals, operations):
            assert sorted(str(item.scope) for item in items) == sorted(map(str, expected))


async def test_page_goes_on(store: Store) -> None:
    """Pages that start before the last one's smallest `seq` show each event once."""
    for number in range(1, 8):
        await store.inbox.record(new_event(number), "cfl", NOW)

    pages, before = [], None
    while page := await store.events.page(EventQuery(limit=3, before=before)):
        pages.append([int(event.event_id[4:]) for event in page])
        before = page[-1].seq

    assert pages == [[7, 6, 5], [4, 3, 2], [1]]


async def test_conflicts_in_order(store: Store) -> None:
    """The conflicts with an event are shown oldest first."""
    for number, body in enumerate([b"a", b"b", b"c"]):
        await store.inbox.record(new_event(body=body), f"cfl_{number}", NOW + number)

    conflicts = await store.events.conflicts(new_event().event_id)

    assert [(each.conflict_id, each.body) for each in conflicts] == [
        ("cfl_1", b"b"),
        ("cfl_2", b"c"),
    ]


async def test_refusals(store: Store) -> None:
    """Each filter finds the kept refusals that it names, newest first, as they were."""
    mine = [
        refusal(1, headers='[["x","\ud800"]]'),
        refusal(2, source="other"),
        refusal(3, reason="timestamp_too_old"),
        refusal(4, scope=Scope("shop", "test")),
    ]
    await store.inbox.refuse(mine, NOW)

    assert await store.events.refusals(RefusalQuery()) == mine[::-1]
    assert await store.events.refusals(RefusalQuery(scope=SCOPE)) == [mine[2], mine[1], mine[0]]
    assert await store.events.refusals(RefusalQuery(source="other")) == [mine[1]]
    assert await store.events.refusals(RefusalQuery(reason="timestamp_too_old")) == [mine[2]]
    page = await store.events.refusals(RefusalQuery(limit=2, before=mine[3].refusal_id))
    assert page == [mine[2], mine[1]]
