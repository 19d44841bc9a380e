"""What arrived: one script decides between new, duplicate and conflict, and writes all of it."""

from collections.abc import Sequence

from reconciler.domain.event import NewEvent, Refusal
from reconciler.storage.contract import Conflict, Duplicate, Recorded
from reconciler.storage.redis import name, refusal
from reconciler.storage.redis.events import event_kind, event_row, evidence
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import as_text, text
from reconciler.storage.redis.script import load

_RECORD = load("record")


class Inbox:
    """`contract.Inbox` on Redis."""

    def __init__(self, writes: Pipeline) -> None:
        self._writes = writes

    async def record(
        self, event: NewEvent, conflict_id: str, now: int
    ) -> Recorded | Duplicate | Conflict:
        """See the contract. Evidence of a conflict is made when there is one, in a second trip."""
        arguments = (now, *_arguments(event), conflict_id.encode())
        last = (event_kind(event), name.of_event(event.event_id))
        answer = await self._writes.run(_RECORD, *arguments, b"", b"", *last)
        if answer[0] == b"other":
            told = (evidence(event), event.conflict_entry(conflict_id))
            answer = await self._writes.run(_RECORD, *arguments, *told, *last)
        match answer:
            case [b"recorded", owner]:
                return Recorded(event.event_id, None if owner is None else as_text(owner))
            case [b"duplicate", event_id, seen]:
                return Duplicate(as_text(event_id), seen)
            case _:
                return Conflict(as_text(answer[1]), conflict_id)

    async def refuse(self, refusals: Sequence[Refusal], now: int) -> None:  # noqa: ARG002
        """See the contract; each refusal carries its own instant."""
        if refusals:
            await refusal.refuse(self._writes, refusals)


def _arguments(event: NewEvent) -> tuple[bytes | int, ...]:
    return (
        *(event.event_id.encode(), name.of_key(event), event.content_digest, text(event.headers)),
        *(event_row(event), event.body, int(event.key_is_id)),
        *(name.by_job(event), name.by_reference(event), event.entry()),
        *(name.of_scope(event.scope), name.of_source(event.source), name.of_type(event.event_type)),
    )
