"""What keeps a ledger healthy."""

from reconciler.domain import journal as entries
from reconciler.storage.contract import RefusalCount
from reconciler.storage.redis import refusal
from reconciler.storage.redis.faults import unavailable
from reconciler.storage.redis.gate import Gate
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import number
from reconciler.storage.redis.script import load

#: What one step deletes at most, so that upkeep never holds up what arrives.
TRIM_MAX = 500

_SEAL, _TRIM = load("seal"), load("trim_refusals")


class Upkeep:
    """`contract.Upkeep` on Redis."""

    def __init__(self, reads: Pipeline, writes: Pipeline, gate: Gate) -> None:
        self._reads, self._writes, self._gate = reads, writes, gate

    async def probe(self, now: int) -> None:
        """See the contract; it also fails where a person should mend the server."""
        self._gate.look_now()
        await self._writes.call(b"SET", b"probe", now)
        if self._gate.unready:
            raise unavailable("; ".join(self._gate.unready))

    async def seal_refusals(self, before_at: int, now: int) -> int:
        """See the contract. A count that another process sealed meanwhile is not sealed again."""
        found = await refusal.counts(self._reads, b"unsealed", b"-inf", b"(" + number(before_at))
        counts = [(refusal.count(*each), each) for each in found]
        counts.sort(key=lambda each: refusal.order(each[0]))
        if not counts:
            return 0
        told = [part for count, stored in counts for part in (*stored, _entry(count))]
        sealed: int = await self._writes.run(_SEAL, now, *told)
        return sealed

    async def trim_refusals(self, keep: int, now: int) -> int:  # noqa: ARG002  counts, not instants
        """See the contract."""
        went: int = await self._writes.run(_TRIM, keep, TRIM_MAX)
        return went


def _entry(count: RefusalCount) -> bytes:
    return entries.encode(
        "refusals.counted",
        {
            "project": count.scope.project,
            "mode": count.scope.mode,
            "source": count.source,
            "reason": count.reason,
            "minute_at": count.minute_at,
            "count": count.count,
            "digest": count.digest,
        },
    )
