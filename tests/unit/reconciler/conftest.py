"""What the worker's tests stand on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW
from tests.support.rig import Rig
from tests.support.scripted import Clock


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Give an empty ledger."""
    store = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    yield Rig(store, Clock())
    await store.close()
