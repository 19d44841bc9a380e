"""What arrived: one upsert decides between new, duplicate and conflict.

The unique constraint is the dedup; there is no look before the insert. On the hot path, so it does
no more than it must.
"""

import hashlib
from collections.abc import Sequence
from functools import partial

from reconciler.domain.event import REFUSALS_KEPT_A_MINUTE, NewEvent, Refusal
from reconciler.storage.contract import Conflict, Duplicate, Recorded
from reconciler.storage.sqlite import due, journal, naming
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.table import Table, insert
from reconciler.storage.sqlite.writer import Executor

#: Larger bodies stand in a table of their own, later in the blob store.
BODY_BYTES_INLINE_MAX = 256 * 1024
_MINUTE_MS = 60_000

_RECORD = (
    insert(
        "event",
        (
            *("event_id", "project", "mode", "source", "key", "content_digest"),
            *("provider_event_id", "event_type", "key_id", "signed_at", "received_at", "flags"),
            *("url", "headers", "body_bytes", "profile", "remote_job_id", "client_reference"),
            *("operation_id", "remember_until_at", "body"),
        ),
    )
    # Only the same content counts as seen again; a duplicate writes too, so that its answer, as any
    # other, follows a commit.
    + """
    ON CONFLICT (project, mode, source, key)
    DO UPDATE SET seen = seen + (content_digest = excluded.content_digest)
    RETURNING event_id, content_digest, seen, operation_id
    """
)
_LARGE_BODY = insert("event_body", ("event_id", "body"))
_EVIDENCE = (
    insert(
        "conflict",
        ("conflict_id", "event_id", "at", "key_id", "content_digest", "headers", "body"),
    )
    + " ON CONFLICT (conflict_id) DO NOTHING"
)


def record(
    ledger: Ledger, event: NewEvent, conflict_id: str, now: int
) -> Recorded | Duplicate | Conflict:
    """Store the event, claim its key, write the journal and make the read due."""
    operation_id = naming.find_for(ledger, event)
    inline = len(event.body) <= BODY_BYTES_INLINE_MAX
    row = ledger.one(_RECORD, _row(event, operation_id, now, event.body if inline else None))
    assert row is not None
    event_id, digest, seen, stored_operation_id = row
    if digest != event.content_digest:
        _keep_evidence(ledger, event, event_id, conflict_id, now)
        due.hint(ledger, stored_operation_id, event_id, now)
        return Conflict(event_id, conflict_id)
    if seen > 1:
        if not event.key_is_id:
            due.hint(ledger, stored_operation_id, event_id, now)
        return Duplicate(event_id, seen)
    if not inline:
        ledger.execute(_LARGE_BODY, (event_id, event.body))
    journal.append(ledger, event.entry(), now)
    due.hint(ledger, operation_id, event_id, now)
    return Recorded(event_id, operation_id)


def _row(
    event: NewEvent, operation_id: str | None, now: int, body: bytes | None
) -> tuple[str | bytes | int | None, ...]:
    scope = event.scope
    return (
        *(event.event_id, scope.project, scope.mode, event.source, event.key),
        *(event.content_digest, event.provider_event_id, event.event_type, event.key_id),
        *(event.signed_at, now, " ".join(event.flags), event.url, event.headers, len(event.body)),
        *(event.profile, event.remote_job_id, event.client_reference, operation_id),
        *(event.remember_until_at, body),
    )


def _keep_evidence(
    ledger: Ledger, event: NewEvent, event_id: str, conflict_id: str, now: int
) -> None:
    values = (conflict_id, event_id, now, event.key_id, event.content_digest, event.headers)
    ledger.run(_EVIDENCE, (*values, event.body))
    # The same evidence again, after an answer that was lost, is not told twice.
    if ledger.changes():
        journal.append(ledger, event.conflict_entry(conflict_id), now)


# ---------------------------------------------------------------- refusals

_REFUSALS = Table(Refusal)
_COUNTED = """
    SELECT count, digest FROM refusal_count
    WHERE minute_at = ? AND project = ? AND mode = ? AND source = ? AND reason = ?
"""
_COUNT = """
    INSERT INTO refusal_count (minute_at, project, mode, source, reason, count, digest)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (minute_at, project, mode, source, reason)
    DO UPDATE SET count = excluded.count, digest = excluded.digest
"""
_KEEP = insert("refusal", _REFUSALS.columns) + " ON CONFLICT (refusal_id) DO NOTHING"


def refuse(ledger: Ledger, refusals: Sequence[Refusal]) -> None:
    """Count each refusal; keep the first few of a source, reason and minute whole."""
    counts: dict[tuple[int, str, str, str, str], tuple[int, bytes]] = {}
    for refusal in refusals:
        minute_at = refusal.at - refusal.at % _MINUTE_MS
        scope = refusal.scope
        key = (minute_at, scope.project, scope.mode, refusal.source, refusal.reason)
        count, digest = counts.get(key) or ledger.one(_COUNTED, key) or (0, b"")
        counts[key] = count + 1, chain(digest, refusal)
        if count < REFUSALS_KEPT_A_MINUTE:
            ledger.run(_KEEP, tuple(_REFUSALS.row(refusal).values()))
    for key, (count, digest) in counts.items():
        ledger.run(_COUNT, (*key, count, digest))


def chain(digest: bytes, refusal: Refusal) -> bytes:
    """Return the digest of all refusals so far and this one; `digest` is empty for the first."""
    return hashlib.sha256(digest + refusal.refusal_id.encode() + refusal.body_digest).digest()


class Inbox:
    """`contract.Inbox` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def record(
        self, event: NewEvent, conflict_id: str, now: int
    ) -> Recorded | Duplicate | Conflict:
        """See the contract."""
        step = partial(record, event=event, conflict_id=conflict_id, now=now)
        return await self._executor.write(step)

    async def refuse(self, refusals: Sequence[Refusal], now: int) -> None:  # noqa: ARG002
        """See the contract; each refusal carries its own instant."""
        await self._executor.write(partial(refuse, refusals=refusals))
