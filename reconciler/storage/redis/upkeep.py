"""What keeps a ledger healthy."""

from collections.abc import Sequence

from reconciler.storage.redis import refusal
from reconciler.storage.redis.faults import unavailable
from reconciler.storage.redis.gate import Gate
from reconciler.storage.redis.moving import Moving
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.retention import Retention
from reconciler.storage.redis.row import number
from reconciler.storage.redis.script import load

#: What one step deletes at most, so that upkeep never holds up what arrives.
TRIM_MAX = 500

_SEAL, _TRIM = load("seal"), load("trim_refusals")


class Upkeep:
    """`contract.Upkeep` on Redis."""

    def __init__(self, reads: Pipeline, writes: Pipeline, gate: Gate) -> None:
        self._reads, self._writes, self._gate = reads, writes, gate
        self._retention = Retention(reads, writes)
        self._moving = Moving(reads, writes)

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
        told = [part for count, stored in counts for part in (*stored, count.entry())]
        sealed: int = await self._writes.run(_SEAL, now, *told)
        return sealed

    async def trim_refusals(self, keep: int, now: int) -> int:  # noqa: ARG002  counts, not instants
        """See the contract."""
        went: int = await self._writes.run(_TRIM, keep, TRIM_MAX)
        return went

    async def trim_events(self, before_at: int, now: int) -> int:
        """See the contract."""
        return await self._retention.trim_events(before_at, now)

    async def bodies_to_move(
        self, bytes_min: int, before_at: int, limit: int
    ) -> list[tuple[str, bytes]]:
        """See the contract."""
        return await self._moving.bodies_to_move(bytes_min, before_at, limit)

    async def body_moved(self, event_id: str, digest: bytes, now: int) -> None:  # noqa: ARG002
        """See the contract; it happens at no instant that anybody asks for."""
        await self._moving.body_moved(event_id, digest)

    async def blobs_in_use(self, digests: Sequence[bytes]) -> set[bytes]:
        """See the contract."""
        return await self._moving.blobs_in_use(digests)
