"""Upkeep: past minutes are sealed, what is kept stays bounded, faults are survived."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler import upkeep
from reconciler.domain import journal
from reconciler.storage.contract import RefusalQuery, Store
from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW, refusal

pytestmark = pytest.mark.anyio

MINUTE = 60_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """Give an empty ledger."""
    opened = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    yield opened
    await opened.close()


async def sealed(store: Store) -> int:
    """Return how many refusals the journal tells of."""
    entries = await store.journal.page(-1, 1_000)
    facts = [journal.decode(item.entry)[1] for item in entries]
    return sum(int(str(fact["count"])) for fact in facts if "count" in fact)


async def test_only_minutes_that_are_over_are_sealed(store: Store) -> None:
    """A minute's count enters the journal once, when nothing can be added to it any more."""
    await store.inbox.refuse([refusal(1, at=NOW), refusal(2, at=NOW + MINUTE)], NOW)
    await upkeep.tick(store.upkeep, NOW + MINUTE + 5, 100)
    assert await sealed(store) == 1
    await upkeep.tick(store.upkeep, NOW + MINUTE + 10, 100)
    assert await sealed(store) == 1
    await upkeep.tick(store.upkeep, NOW + 2 * MINUTE, 100)
    assert await sealed(store) == 2


async def test_no_more_refusals_are_kept_than_configured(store: Store) -> None:
    """One round trims all that is too much; the newest stay."""
    items = [refusal(n, at=NOW + n * MINUTE) for n in range(1, 31)]
    await store.inbox.refuse(items, NOW)
    await upkeep.tick(store.upkeep, NOW, 7)
    kept = await store.events.refusals(RefusalQuery(limit=100))
    assert [item.refusal_id for item in kept] == [f"ref_{n:026}" for n in range(30, 23, -1)]


async def test_a_ledger_that_is_away_does_not_end_upkeep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop goes on when a round could not be done."""
    monkeypatch.setattr(upkeep, "EVERY_S", 0.01)
    store = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    await store.close()
    task = asyncio.create_task(upkeep.run(store.upkeep, lambda: NOW, 5))
    await asyncio.sleep(0.1)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
