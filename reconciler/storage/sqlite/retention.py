"""What a ledger forgets and what it moves out, in small steps, while events go on arriving.

Both walk from the oldest event to the newest that is old enough, on a reader's connection; the
writer only does what was found, after it looked again.
"""

import json
from dataclasses import dataclass
from functools import partial

from reconciler.domain.event import MovedBody
from reconciler.domain.operation import RULES
from reconciler.storage.sqlite import events
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.writer import Executor

#: Events that one read looks at, and reads of one call that find nothing; the next call goes on.
LOOK = 1_000
LOOKS_MAX = 20
#: Events that one step deletes: whoever writes in the same transaction waits for it.
TRIM_MAX = 64

_FINAL = json.dumps([state for state, rule in RULES.items() if rule.final])
_ENDED = """
    (operation_id IS NULL OR operation_id IN (
        SELECT operation_id FROM operation
        WHERE operation_id = event.operation_id AND state IN (SELECT value FROM json_each(?))
    ))
"""
_OLDEST = f"""
    SELECT seq, received_at, remember_until_at <= ? AND {_ENDED}
    FROM event WHERE seq > ? ORDER BY seq LIMIT ?
"""  # noqa: S608  our own words
# The newest stays: the next number is one more than the greatest.
_FORGET = f"""
    DELETE FROM event
    WHERE seq IN (SELECT value FROM json_each(?)) AND seq < (SELECT max(seq) FROM event)
        AND {_ENDED}
"""  # noqa: S608  our own words
_BODIES = """
    SELECT seq, received_at, event_id, body_bytes, EXISTS (
        SELECT 1 FROM moved_body WHERE moved_body.event_id = event.event_id
    )
    FROM event WHERE seq > ? ORDER BY seq LIMIT ?
"""
_MOVED = """
    INSERT INTO moved_body (event_id, digest)
    SELECT event_id, ? FROM event WHERE event_id = ?
    ON CONFLICT (event_id) DO NOTHING
"""
_IN_USE = """
    SELECT DISTINCT digest FROM moved_body
    WHERE digest IN (SELECT unhex(value) FROM json_each(?))
"""


@dataclass(slots=True)
class _Look:
    """What one read of the oldest events found, and after which event the next one begins."""

    after: int
    found: list[int]
    is_last: bool


def _oldest(ledger: Ledger, after: int, before_at: int, now: int) -> _Look:
    """Find events that may go; after the last one the walk begins again, at 0."""
    rows = ledger.run(_OLDEST, (now, _FINAL, after, LOOK))
    old = [(seq, may_go) for seq, received_at, may_go in rows if received_at < before_at]
    found = [seq for seq, may_go in old if may_go][:TRIM_MAX]
    if len(found) == TRIM_MAX:
        return _Look(found[-1], found, is_last=False)
    is_last = len(old) < LOOK
    return _Look(0 if is_last else old[-1][0], found, is_last)


def _forget(ledger: Ledger, found: list[int]) -> int:
    ledger.run(_FORGET, (json.dumps(found), _FINAL))
    return ledger.changes()


@dataclass(slots=True)
class _Bodies:
    """Bodies to move, and after which event none is known."""

    after: int
    found: list[tuple[str, bytes]]
    is_last: bool


def _bodies(ledger: Ledger, after: int, bytes_min: int, before_at: int, limit: int) -> _Bodies:
    look = _Bodies(after, [], is_last=True)
    rows = ledger.run(_BODIES, (after, LOOK))
    for seq, received_at, event_id, body_bytes, is_moved in rows:
        if received_at >= before_at or len(look.found) == limit:
            return look
        if body_bytes >= bytes_min and not is_moved:
            body = events.body(ledger, event_id)
            # It may have moved, or gone, since the rows were read.
            if body is not None and not isinstance(body, MovedBody):
                look.found.append((event_id, body))
        if not look.found:
            look.after = seq
    look.is_last = len(rows) < LOOK
    return look


def _moved(ledger: Ledger, event_id: str, digest: bytes) -> None:
    ledger.run(_MOVED, (digest, event_id))
    ledger.run("DELETE FROM event_body WHERE event_id = ?", (event_id,))
    ledger.run("UPDATE event SET body = NULL WHERE event_id = ?", (event_id,))


def _in_use(ledger: Ledger, digests: list[str]) -> set[bytes]:
    return {row[0] for row in ledger.run(_IN_USE, (json.dumps(digests),))}


class Retention:
    """Remembers how far each walk came: what must stay holds nobody up."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._after = 0
        #: Up to which event no body of at least so many bytes is left.
        self._moved: tuple[int, int] = (0, 0)

    async def trim_events(self, before_at: int, now: int) -> int:
        """Delete events that nothing needs, at most `TRIM_MAX`; return how many went."""
        for _ in range(LOOKS_MAX):
            step = partial(_oldest, after=self._after, before_at=before_at, now=now)
            look = await self._executor.read(step)
            self._after = look.after
            if look.found:
                went = await self._executor.write(partial(_forget, found=look.found))
                if went:
                    return went
            if look.is_last:
                break
        return 0

    async def bodies_to_move(
        self, bytes_min: int, before_at: int, limit: int
    ) -> list[tuple[str, bytes]]:
        """Return ids and bodies of the oldest events that have a large one."""
        least, after = self._moved
        after = after if least == bytes_min else 0
        for _ in range(LOOKS_MAX):
            step = partial(
                _bodies, after=after, bytes_min=bytes_min, before_at=before_at, limit=limit
            )
            look = await self._executor.read(step)
            after = look.after
            self._moved = (bytes_min, after)
            if look.found or look.is_last:
                return look.found
        return []

    async def body_moved(self, event_id: str, digest: bytes) -> None:
        """Let the body go, unless it or its event went already."""
        await self._executor.write(partial(_moved, event_id=event_id, digest=digest))

    async def blobs_in_use(self, digests: list[bytes]) -> set[bytes]:
        """Return the digests that stand for a body."""
        names = [digest.hex() for digest in digests]
        return await self._executor.read(partial(_in_use, digests=names))
