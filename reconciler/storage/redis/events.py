"""Reading what arrived.

A list of events is a stream of numbers, or a set where numbers leave it or come late. A page takes
the list that holds the fewest and looks through it, some at a time, for what else is asked for.
"""

import json
from collections.abc import AsyncIterator

from reconciler.domain.event import (
    ANY,
    ConflictEvidence,
    Event,
    MovedBody,
    NewEvent,
    Refusal,
    RefusalCount,
    Scope,
)
from reconciler.storage.contract import EventQuery, RefusalQuery
from reconciler.storage.redis import name, refusal
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import Row, array, as_number, as_text, number
from reconciler.storage.redis.script import load

#: Events that one script call looks at: the server does nothing else meanwhile.
_LOOK = 200
_GET, _BODY, _PAGE = load("event_get"), load("event_body"), load("event_page")
_CONFLICTS, _REFUSALS = load("event_conflicts"), load("refusal_page")
_EVIDENCE = Row(ConflictEvidence, apart=("conflict_id", "event_id", "at", "body"))


class Events:
    """`contract.Events` on Redis."""

    def __init__(self, reads: Pipeline) -> None:
        self._reads = reads

    async def get(self, event_id: str) -> Event | None:
        """See the contract."""
        found = await self._reads.run(_GET, name.of_event(event_id))
        return None if found is None else event_of(found)

    async def body(self, event_id: str) -> bytes | MovedBody | None:
        """See the contract."""
        found: bytes | list[bytes] | None = await self._reads.run(_BODY, name.of_event(event_id))
        return MovedBody(found[0]) if isinstance(found, list) else found

    async def page(self, query: EventQuery) -> list[Event]:
        """See the contract."""
        page: list[Event] = []
        if query.limit > 0:
            async for event in self._listed(query):
                if _fits(event, query):
                    page.append(event)
                    if len(page) == query.limit:
                        break
        return page

    async def conflicts(self, event_id: str) -> list[ConflictEvidence]:
        """See the contract."""
        flat = await self._reads.run(_CONFLICTS, name.of_event(event_id))
        found = []
        for conflict_id, stored in zip(flat[::2], flat[1::2], strict=True):
            order, at, row, body = stored.split(b"\n", 3)
            apart = {"conflict_id": as_text(conflict_id), "event_id": event_id}
            evidence = _EVIDENCE.value(row, at=int(at), body=body, **apart)
            found.append((int(order), evidence))
        return [evidence for _, evidence in sorted(found, key=lambda each: each[0])]

    async def refusals(self, query: RefusalQuery) -> list[Refusal]:
        """See the contract."""
        page: list[Refusal] = []
        before = (query.before or "").encode()
        while len(page) < query.limit:
            found = await self._reads.run(_REFUSALS, before, _LOOK)
            kept = [refusal.ROW.value(row) for _, row in found]
            page += [each for each in kept if _is_wanted(each, query)]
            if len(found) < _LOOK:
                break
            before = found[-1][0]
        return page[: query.limit]

    async def refusal_counts(self, since_at: int) -> list[RefusalCount]:
        """See the contract."""
        found = await refusal.counts(self._reads, b"minute", number(since_at), b"+inf")
        return sorted((refusal.count(*each) for each in found), key=refusal.order)

    async def _listed(self, query: EventQuery) -> AsyncIterator[Event]:
        """Yield the events of the best list, newest first."""
        key, kind = _list(query)
        before = number(query.before)
        while True:
            found = await self._reads.run(_PAGE, key, kind, before, _LOOK)
            for each in found:
                yield event_of(each)
            if len(found) < _LOOK:
                return
            before = found[-1][0]


def _list(query: EventQuery) -> tuple[bytes, bytes]:
    """Return the list that holds the fewest of what is asked for, and its kind."""
    if query.operation_id is not None:
        return b"operation:%s:events" % query.operation_id.encode(), b"set"
    if query.event_type is not None:
        return b"event:" + name.of_type(query.event_type), b"stream"
    if query.parked:
        return b"parked", b"set"
    if query.source is not None:
        return b"event:" + name.of_source(query.source), b"stream"
    if query.scope is not None and ANY not in (query.scope.project, query.scope.mode):
        return b"event:" + name.of_scope(query.scope), b"stream"
    return b"", b"stream"


def _fits(event: Event, query: EventQuery) -> bool:
    is_parked = event.operation_id is None and event.profile is not None
    return (
        (query.scope is None or query.scope.covers(event.scope))
        and query.source in (None, event.source)
        and query.event_type in (None, event.event_type)
        and query.operation_id in (None, event.operation_id)
        and (not query.parked or (is_parked and _names_a_job(event)))
    )


def _names_a_job(event: Event) -> bool:
    return event.remote_job_id is not None or event.client_reference is not None


def _is_wanted(kept: Refusal, query: RefusalQuery) -> bool:
    return (
        (query.scope is None or query.scope.covers(kept.scope))
        and query.source in (None, kept.source)
        and query.reason in (None, kept.reason)
    )


# ---------------------------------------------------------------- rows


def event_kind(event: NewEvent) -> bytes:
    """Return what an event has in common with many others: a ledger keeps it once."""
    return array(
        *(event.scope.project, event.scope.mode, event.source, event.event_type),
        *(event.key_id, " ".join(event.flags), event.profile),
    )


def event_row(event: NewEvent) -> bytes:
    """Return what else of an event no script reads; `event_of` is the inverse of both.

    What goes without saying is left out: a key that is the provider's id, the source's own URL.
    """
    key = None if event.key == _key_of(event.provider_event_id) else event.key
    url = None if event.url == _url_of(event.source) else event.url
    return array(
        *(key, event.provider_event_id, event.signed_at, url, len(event.body)),
        *(event.remote_job_id, event.client_reference, event.remember_until_at),
    )


def remember_until_at(stored: Reply) -> int:
    """Return until when an event's key must be remembered, of a script's answer."""
    until_at: int = json.loads(stored[1][-1])[-1]
    return until_at


def _key_of(provider_event_id: str | None) -> str:
    return f"id:{provider_event_id}"


def _url_of(source: str) -> str:
    return f"/in/{source}"


def evidence(event: NewEvent) -> bytes:
    """Return what is kept of a request that conflicts with an event."""
    return _EVIDENCE.pack(event) + b"\n" + event.body


def event_of(stored: Reply) -> Event:
    """Return the event of a script's answer (`event_of` in the prelude)."""
    seq, fields, attached_to, seen_again, kind = stored
    _, event_id, _, digest, _, operation_id, _, received_at, _, _, _, headers, _, row = fields
    project, mode, source, event_type, key_id, flags, profile = json.loads(kind)
    key, provider_event_id, signed_at, url, body_bytes, remote_job_id, client_reference, _ = (
        json.loads(row)
    )
    return Event(
        seq=int(seq),
        event_id=as_text(event_id),
        scope=Scope(project, mode),
        source=source,
        key=_key_of(provider_event_id) if key is None else key,
        provider_event_id=provider_event_id,
        event_type=event_type,
        key_id=key_id,
        signed_at=signed_at,
        received_at=int(received_at),
        flags=tuple(flags.split()),
        url=_url_of(source) if url is None else url,
        headers=as_text(headers),
        body_bytes=body_bytes,
        content_digest=digest,
        profile=profile,
        remote_job_id=remote_job_id,
        client_reference=client_reference,
        operation_id=as_text(attached_to or operation_id) or None,
        seen=1 + (as_number(seen_again) or 0),
    )
