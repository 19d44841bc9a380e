"""Reading what arrived."""

from functools import partial

from reconciler.domain.event import ConflictEvidence, Event, MovedBody, Refusal, RefusalCount
from reconciler.storage.contract import EventQuery, RefusalQuery
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.query import Where
from reconciler.storage.sqlite.table import Table, names
from reconciler.storage.sqlite.writer import Executor

_EVENTS, _CONFLICTS = Table(Event), Table(ConflictEvidence)
_REFUSALS, _COUNTS = Table(Refusal), Table(RefusalCount)
_SELECT = f"SELECT {names(_EVENTS.columns)} FROM event"  # noqa: S608  our own names
#: As the partial index says it.
_PARKED = """
    operation_id IS NULL AND profile IS NOT NULL
    AND (remote_job_id IS NOT NULL OR client_reference IS NOT NULL)
"""
_BODY = """
    SELECT coalesce(event.body, event_body.body), moved_body.digest
    FROM event
        LEFT JOIN event_body ON event_body.event_id = event.event_id
        LEFT JOIN moved_body ON moved_body.event_id = event.event_id
    WHERE event.event_id = ?
"""
_CONFLICTS_OF = f"SELECT {names(_CONFLICTS.columns)} FROM conflict WHERE event_id = ? ORDER BY seq"  # noqa: S608
_REFUSED = f"SELECT {names(_REFUSALS.columns)} FROM refusal"  # noqa: S608  our own names
_COUNTS_SINCE = f"""
    SELECT {names(_COUNTS.columns)} FROM refusal_count WHERE minute_at >= ?
    ORDER BY minute_at, project, mode, source, reason
"""  # noqa: S608  our own names


def _get(ledger: Ledger, event_id: str) -> Event | None:
    row = ledger.one(f"{_SELECT} WHERE event_id = ?", (event_id,))
    return None if row is None else _EVENTS.value(row)


def body(ledger: Ledger, event_id: str) -> bytes | MovedBody | None:
    """Return the raw body, or the digest of the file that holds it."""
    row = ledger.one(_BODY, (event_id,))
    if row is None:
        return None
    stored, digest = row
    return stored if digest is None else MovedBody(digest)


def _page(ledger: Ledger, query: EventQuery) -> list[Event]:
    where = Where()
    where.equal("source", query.source)
    where.equal("event_type", query.event_type)
    where.equal("operation_id", query.operation_id)
    if query.parked:
        where.that(_PARKED)
    if query.scope:
        # A scope holds most events. Where anything else is asked for, `+` keeps SQLite from
        # searching all of it for that.
        plus = "+" if where.values or query.parked else ""
        where.within(query.scope, f"{plus}project", f"{plus}mode")
    where.below("seq", query.before)
    rows = ledger.run(f"{_SELECT} {where} ORDER BY seq DESC LIMIT ?", (*where.values, query.limit))
    return [_EVENTS.value(row) for row in rows]


def _conflicts(ledger: Ledger, event_id: str) -> list[ConflictEvidence]:
    return [_CONFLICTS.value(row) for row in ledger.run(_CONFLICTS_OF, (event_id,))]


def _refusals(ledger: Ledger, query: RefusalQuery) -> list[Refusal]:
    where = Where()
    if query.scope:
        where.within(query.scope, "project", "mode")
    where.equal("source", query.source)
    where.equal("reason", query.reason)
    where.below("refusal_id", query.before)
    order = "ORDER BY refusal_id DESC LIMIT ?"
    rows = ledger.run(f"{_REFUSED} {where} {order}", (*where.values, query.limit))
    return [_REFUSALS.value(row) for row in rows]


def _refusal_counts(ledger: Ledger, since_at: int) -> list[RefusalCount]:
    return [_COUNTS.value(row) for row in ledger.run(_COUNTS_SINCE, (since_at,))]


class Events:
    """`contract.Events` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def get(self, event_id: str) -> Event | None:
        """See the contract."""
        return await self._executor.read(partial(_get, event_id=event_id))

    async def body(self, event_id: str) -> bytes | MovedBody | None:
        """See the contract."""
        return await self._executor.read(partial(body, event_id=event_id))

    async def page(self, query: EventQuery) -> list[Event]:
        """See the contract."""
        return await self._executor.read(partial(_page, query=query))

    async def conflicts(self, event_id: str) -> list[ConflictEvidence]:
        """See the contract."""
        return await self._executor.read(partial(_conflicts, event_id=event_id))

    async def refusals(self, query: RefusalQuery) -> list[Refusal]:
        """See the contract."""
        return await self._executor.read(partial(_refusals, query=query))

    async def refusal_counts(self, since_at: int) -> list[RefusalCount]:
        """See the contract."""
        return await self._executor.read(partial(_refusal_counts, since_at=since_at))
