"""The journal: entries numbered from 0 without a gap, inside the transaction they belong to."""

from reconciler.storage.contract import JournalEntry
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.table import Table
from reconciler.storage.sqlite.writer import Executor

_ENTRIES = Table(JournalEntry)
_APPEND = """
    INSERT INTO journal ("index", at, entry)
    SELECT coalesce(max("index"), -1) + 1, ?, ? FROM journal
"""
_PAGE = 'SELECT "index", at, entry FROM journal WHERE "index" > ? ORDER BY "index" LIMIT ?'
_SIZE = 'SELECT coalesce(max("index"), -1) + 1 FROM journal'


def append(ledger: Ledger, entry: bytes, now: int) -> None:
    """Write the next entry; one writer a ledger, so the greatest index is the last one."""
    ledger.execute(_APPEND, (now, entry))


class Journal:
    """`contract.Journal` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def page(self, after_index: int, limit: int) -> list[JournalEntry]:
        """See the contract."""
        return await self._executor.read(
            lambda ledger: [_ENTRIES.value(row) for row in ledger.run(_PAGE, (after_index, limit))]
        )

    async def size(self) -> int:
        """See the contract."""
        return await self._executor.read(_size)


def _size(ledger: Ledger) -> int:
    row = ledger.one(_SIZE)
    assert row is not None
    size: int = row[0]
    return size
