"""What keeps a ledger healthy."""

from collections.abc import Sequence
from functools import partial

from reconciler.domain.event import RefusalCount
from reconciler.storage.sqlite import journal
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.retention import Retention
from reconciler.storage.sqlite.table import Table, names
from reconciler.storage.sqlite.writer import Executor

#: Rows deleted in one step, so that upkeep never holds up what arrives.
TRIM_MAX = 500

_COUNTS = Table(RefusalCount)
_PROBE = """
    INSERT INTO probe (id, at) VALUES (1, ?)
    ON CONFLICT (id) DO UPDATE SET at = excluded.at, probes = probes + 1
"""
_UNSEALED = f"""
    SELECT {names(_COUNTS.columns)} FROM refusal_count WHERE sealed < count AND minute_at < ?
    ORDER BY minute_at, project, mode, source, reason
"""  # noqa: S608  our own names
_SEAL = "UPDATE refusal_count SET sealed = count WHERE sealed < count AND minute_at < ?"
_TRIM = """
    DELETE FROM refusal WHERE refusal_id IN (
        SELECT refusal_id FROM refusal ORDER BY refusal_id
        LIMIT max(0, min(?, (SELECT count(*) FROM refusal) - ?))
    )
"""


def probe(ledger: Ledger, now: int) -> None:
    """Do a durable write of no meaning."""
    ledger.execute(_PROBE, (now,))


def seal_refusals(ledger: Ledger, before_at: int, now: int) -> int:
    """Write the counts into the journal that it does not tell yet, each with all so far."""
    counts = [_COUNTS.value(row) for row in ledger.run(_UNSEALED, (before_at,))]
    for count in counts:
        journal.append(ledger, count.entry(), now)
    ledger.execute(_SEAL, (before_at,))
    return len(counts)


def trim_refusals(ledger: Ledger, keep: int) -> int:
    """Delete the oldest kept refusals beyond `keep`, at most `TRIM_MAX`."""
    ledger.execute(_TRIM, (TRIM_MAX, keep))
    return ledger.changes()


class Upkeep:
    """`contract.Upkeep` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._retention = Retention(executor)

    async def probe(self, now: int) -> None:
        """See the contract."""
        await self._executor.write(partial(probe, now=now))

    async def seal_refusals(self, before_at: int, now: int) -> int:
        """See the contract."""
        return await self._executor.write(partial(seal_refusals, before_at=before_at, now=now))

    async def trim_refusals(self, keep: int, now: int) -> int:  # noqa: ARG002  counts, not instants
        """See the contract."""
        return await self._executor.write(partial(trim_refusals, keep=keep))

    async def trim_events(self, before_at: int, now: int) -> int:
        """See the contract."""
        return await self._retention.trim_events(before_at, now)

    async def bodies_to_move(
        self, bytes_min: int, before_at: int, limit: int
    ) -> list[tuple[str, bytes]]:
        """See the contract."""
        return await self._retention.bodies_to_move(bytes_min, before_at, limit)

    async def body_moved(self, event_id: str, digest: bytes, now: int) -> None:  # noqa: ARG002
        """See the contract; it happens at no instant that anybody asks for."""
        await self._retention.body_moved(event_id, digest)

    async def blobs_in_use(self, digests: Sequence[bytes]) -> set[bytes]:
        """See the contract."""
        return await self._retention.blobs_in_use(list(digests))
