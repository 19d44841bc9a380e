"""The journal: a stream whose entries the server numbers, in the step that they belong to."""

from reconciler.storage.contract import JournalEntry
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.pipeline import Pipeline

_KEY = b"journal"


class Journal:
    """`contract.Journal` on Redis. Entry `n` is `0-(n+1)`: a stream has no entry 0-0."""

    def __init__(self, reads: Pipeline) -> None:
        self._reads = reads

    async def page(self, after_index: int, limit: int) -> list[JournalEntry]:
        """See the contract."""
        first = b"0-%d" % (after_index + 2)
        entries = await self._reads.call(b"XRANGE", _KEY, first, b"+", b"COUNT", limit)
        return [_entry(*entry) for entry in entries]

    async def size(self) -> int:
        """See the contract."""
        last = await self._reads.call(b"XREVRANGE", _KEY, b"+", b"-", b"COUNT", 1)
        return _entry(*last[0]).index + 1 if last else 0


def _entry(number: bytes, fields: Reply) -> JournalEntry:
    _, at, _, entry = fields
    return JournalEntry(int(number[2:]) - 1, int(at), entry)
