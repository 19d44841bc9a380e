"""A ledger on a Redis or Valkey server that many processes share."""

from reconciler.storage import contract
from reconciler.storage.redis import check
from reconciler.storage.redis.address import Address, parse
from reconciler.storage.redis.events import Events
from reconciler.storage.redis.gate import Gate
from reconciler.storage.redis.inbox import Inbox
from reconciler.storage.redis.journal import Journal
from reconciler.storage.redis.limits import Limits
from reconciler.storage.redis.news import News
from reconciler.storage.redis.operations import Operations
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.published_keys import PublishedKeys
from reconciler.storage.redis.tokens import Tokens
from reconciler.storage.redis.upkeep import Upkeep
from reconciler.storage.redis.work import Work

#: Steps that may wait for the server before one is refused at once.
QUEUE_MAX = 4_096


class RedisStore:
    """All roles of one open ledger (`contract.Store`).

    Every step that writes passes the gate, on one connection; reads and limits have another, so
    that they do not wait for disks.
    """

    inbox: contract.Inbox
    events: contract.Events
    operations: contract.Operations
    work: contract.Work
    journal: contract.Journal
    tokens: contract.Tokens
    published_keys: contract.PublishedKeys
    limits: contract.Limits
    upkeep: contract.Upkeep

    def __init__(self, address: Address, queue_max: int) -> None:
        gate = Gate(address)
        self._writes = writes = Pipeline(address, queue_max, gate)
        self._reads = reads = Pipeline(address, queue_max)
        self._news = News(address)
        self.inbox = Inbox(writes)
        self.events = Events(reads)
        self.operations = Operations(reads, writes)
        self.work = Work(reads, writes, self._news)
        self.journal = Journal(reads)
        self.tokens = Tokens(reads, writes)
        self.published_keys = PublishedKeys(reads, writes)
        self.limits = Limits(reads)
        self.upkeep = Upkeep(reads, writes, gate)

    async def close(self) -> None:
        """Finish what was accepted, then close."""
        await self._writes.close()
        await self._reads.close()
        await self._news.close()


def open_store(url: str, *, password: str | None = None, queue_max: int = QUEUE_MAX) -> RedisStore:
    """Open the ledger that the URL names, a new one where there is none.

    Blocks while it asks the server; `LedgerError` says which setting to change.
    """
    address = parse(url, password)
    check.start(address)
    return RedisStore(address, queue_max)
