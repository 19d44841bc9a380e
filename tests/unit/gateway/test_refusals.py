"""Refusals wait in bounded memory and reach the ledger together."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway import refusals as refusals_module
from gateway.refusals import WAITING_MAX, RefusalLog
from reconciler.storage.contract import RefusalQuery, Store
from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW, refusal

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """Give an empty ledger."""
    opened = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    yield opened
    await opened.close()


async def kept(store: Store) -> int:
    """Return how many refusals the ledger counted."""
    return sum(count.count for count in await store.events.refusal_counts(0))


async def test_noted_refusals_are_written_together(store: Store) -> None:
    """Noting costs no write; a flush writes all that wait, once."""
    log = RefusalLog(store.inbox, lambda: NOW)
    log.note(refusal(1))
    log.note(refusal(2))
    assert await kept(store) == 0
    await log.flush()
    await log.flush()
    assert await kept(store) == 2
    assert len(await store.events.refusals(RefusalQuery())) == 2


async def test_a_flood_is_counted_not_kept(store: Store) -> None:
    """Past the bound nothing more waits in memory; what was dropped is known."""
    log = RefusalLog(store.inbox, lambda: NOW)
    for number in range(WAITING_MAX + 7):
        log.note(refusal(number))
    assert log.dropped == 7
    await log.flush()
    assert await kept(store) == WAITING_MAX
    log.note(refusal(WAITING_MAX + 8))
    await log.flush()
    assert await kept(store) == WAITING_MAX + 1


async def test_a_ledger_that_is_away_costs_refusals_not_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be written is counted as dropped, and the loop goes on."""
    monkeypatch.setattr(refusals_module, "FLUSH_S", 0.01)
    store = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    await store.close()
    log = RefusalLog(store.inbox, lambda: NOW)
    task = asyncio.create_task(log.run())
    log.note(refusal(1))
    await asyncio.sleep(0.1)
    log.note(refusal(2))
    await asyncio.sleep(0.1)
    assert (log.dropped, task.done()) == (2, False)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
