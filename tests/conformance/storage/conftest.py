"""The contract's suite runs against every engine named here; none may be skipped."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from reconciler.storage.contract import Store
from reconciler.storage.redis import store as redis
from reconciler.storage.sqlite.store import open_store
from reconciler.storage.sqlite.writer import Inline
from tests.support import valkey
from tests.support.builders import NOW

Open = Callable[[Path], Store]

#: An engine is one line: how a ledger that lives in a folder is opened, a second time too.
ENGINES: dict[str, Open] = {
    "sqlite": lambda folder: open_store(folder / "ledger.db", now=lambda: NOW),
    # The simulation's way to run the same steps.
    "sqlite-inline": lambda folder: open_store(
        folder / "ledger.db", now=lambda: NOW, executor=Inline
    ),
    "redis": lambda folder: redis.open_store(valkey.shared().url(valkey.ledger_of(folder))),
}


@pytest.fixture(params=ENGINES)
def open_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Open the test's ledger; closed and opened again, it is the same one."""
    return lambda: ENGINES[request.param](tmp_path)


@pytest.fixture
async def store(anyio_backend: str, open_ledger: Callable[[], Store]) -> AsyncIterator[Store]:
    """Give an empty ledger of each engine."""
    assert anyio_backend == "asyncio"
    opened = open_ledger()
    yield opened
    await opened.close()
