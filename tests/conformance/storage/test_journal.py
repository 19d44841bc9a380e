"""`Journal`: the log of everything that happened."""

import asyncio

import pytest

from reconciler.domain import journal
from reconciler.storage.contract import Store
from tests.support.builders import (
    NOW,
    first_line,
    new_event,
    new_token,
    operation,
    read_decision,
    refusal,
)

pytestmark = pytest.mark.anyio


async def test_empty(store: Store) -> None:
    """A new ledger's journal is empty."""
    assert await store.journal.size() == 0
    assert await store.journal.page(-1, 10) == []


async def test_numbers_have_no_gap(store: Store) -> None:
    """Indices run from 0 without a gap, whatever is written at once or changes nothing."""
    await asyncio.gather(
        *(store.inbox.record(new_event(n % 20), f"cfl_{n}", NOW) for n in range(100)),
        *(store.operations.register(operation(1), first_line(operation(1)), NOW) for _ in range(5)),
        *(store.tokens.create(new_token(n), NOW) for n in range(5)),
    )

    entries = await store.journal.page(-1, 1_000)

    assert list(range(26)) == [entry.index for entry in entries]
    assert await store.journal.size() == 26


async def test_entries_decode(store: Store) -> None:
    """Every entry is in the canonical encoding and says what happened, in order."""
    await store.operations.register(operation(), first_line(operation()), NOW)
    await store.inbox.record(new_event(), "cfl_1", NOW)
    await store.inbox.record(new_event(body=b"other"), "cfl_2", NOW)
    (claimed,) = await store.work.claim("w", ["a"], 1_000, NOW)
    await store.work.commit(claimed.lease, read_decision(claimed), NOW)
    await store.inbox.refuse([refusal()], NOW)
    await store.upkeep.seal_refusals(NOW + 60_000, NOW)
    await store.tokens.create(new_token(), NOW)
    await store.tokens.revoke(new_token().token_id, "admin", NOW)

    kinds = [journal.decode(entry.entry)[0] for entry in await store.journal.page(-1, 100)]

    assert kinds == [
        "operation.moved",
        "event.accepted",
        "event.conflict",
        "operation.observed",
        "operation.moved",
        "refusals.counted",
        "token.created",
        "token.revoked",
    ]


async def test_page(store: Store) -> None:
    """A page starts after an index and holds at most `limit`; each entry has the step's time."""
    for number in range(5):
        await store.inbox.record(new_event(number), "cfl", NOW + number)

    page = await store.journal.page(1, 2)

    assert [(entry.index, entry.at) for entry in page] == [(2, NOW + 2), (3, NOW + 3)]
    assert await store.journal.page(4, 2) == []
