"""Bodies that leave the server's memory for files, the oldest first, while events go on arriving.

`moved` says which file holds an event's body, `files` how many events each file serves.
"""

from collections.abc import Sequence

from reconciler.storage.redis import name
from reconciler.storage.redis.events import event_of
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.script import load

#: Events that one step looks at, and looks of one call that find nothing; the next call goes on.
LOOK = 200
LOOKS_MAX = 50

_OLDEST, _BODY, _MOVED = load("event_oldest"), load("event_body"), load("body_moved")


class Moving:
    """Walks from the oldest event to the newest that is old enough, once."""

    def __init__(self, reads: Pipeline, writes: Pipeline) -> None:
        self._reads, self._writes = reads, writes
        #: Up to which event no body of at least so many bytes is left.
        self._bytes_min = self._after = 0

    async def bodies_to_move(
        self, bytes_min: int, before_at: int, limit: int
    ) -> list[tuple[str, bytes]]:
        """Return ids and bodies of the oldest events that have a large one."""
        if bytes_min != self._bytes_min:
            self._bytes_min, self._after = bytes_min, 0
        for _ in range(LOOKS_MAX):
            stored = await self._reads.run(_OLDEST, self._after, LOOK)
            found: list[tuple[str, bytes]] = []
            for event in (event_of(each) for each, _ in stored):
                if event.received_at >= before_at or len(found) == limit:
                    return found
                if event.body_bytes >= bytes_min:
                    body = await self._reads.run(_BODY, name.of_event(event.event_id))
                    if isinstance(body, bytes):
                        found.append((event.event_id, body))
                if not found:
                    self._after = event.seq
            if found or len(stored) < LOOK:
                return found
        return []

    async def body_moved(self, event_id: str, digest: bytes) -> None:
        """Let the body go, unless it or its event went already."""
        await self._writes.run(_MOVED, name.of_event(event_id), digest)

    async def blobs_in_use(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return the digests that stand for a body."""
        if not digests:
            return set()
        counts = await self._reads.call(b"HMGET", b"files", *digests)
        return {digest for digest, count in zip(digests, counts, strict=True) if count}
