"""The two engines that a ledger can be on, for tests of whole installations."""

from pathlib import Path

import pytest

from tests.support import valkey
from tests.support.installation import SQLITE

#: Runs a test, or a whole module, once on each engine.
on_both_engines = pytest.mark.parametrize("engine", ["sqlite", "valkey"], indirect=True)


def storage_of(engine: str, folder: Path) -> str:
    """Return the `storage.url` of an installation in `folder`."""
    return SQLITE if engine == "sqlite" else valkey.shared().url(valkey.ledger_of(folder))
