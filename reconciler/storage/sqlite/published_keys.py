"""The keys that providers publish, one row an address that a source needs.

The right to fetch is the row's own `next_at`: a claim moves it on, so nobody else finds it due, and
raises the fence that the commit compares.
"""

from collections.abc import Sequence
from functools import partial

from reconciler.domain.published import Failed, Fetched, KeyDocument, KeyFetch
from reconciler.storage.contract import Committed, LeaseLost
from reconciler.storage.sqlite.connection import Ledger, Value
from reconciler.storage.sqlite.table import Table, names
from reconciler.storage.sqlite.writer import Executor

_DOCUMENTS, _FETCHES = Table(KeyDocument), Table(KeyFetch)
_AFTER = f"""
    SELECT {names(_DOCUMENTS.columns)} FROM key_document WHERE revision > ? ORDER BY revision
"""  # noqa: S608  our own names
_REVISION = "SELECT coalesce(max(revision), 0) + 1 FROM key_document"
# A change's revision, in a statement of its own change.
_CHANGED = f"revision = ({_REVISION})"

_WANT = f"""
    UPDATE key_document SET next_at = max(?3, not_before_at), {_CHANGED}
    WHERE source = ?1 AND url = ?2 AND coalesce(next_at, 9e18) > max(?3, not_before_at)
"""  # noqa: S608  our own names
_KNOWN = "SELECT 1 FROM key_document WHERE source = ? AND url = ?"
_COUNT = "SELECT count(*) FROM key_document WHERE source = ?"
_REPLACEABLE = """
    SELECT seq FROM key_document
    WHERE source = ?1 AND not_before_at <= ?2
        AND (proven_at IS NULL OR coalesce(valid_until_at, 0) <= ?2)
    ORDER BY seq LIMIT 1
"""
_DELETE = "DELETE FROM key_document WHERE seq = ?"
_INSERT = """
    INSERT INTO key_document (source, url, next_at, not_before_at, revision)
    VALUES (?1, ?2, ?3, ?3, ?4)
"""
_PROVE = f"""
    UPDATE key_document SET proven_at = ?3, {_CHANGED}
    WHERE source = ?1 AND url = ?2 AND proven_at IS NULL
"""  # noqa: S608  our own names
_REFRESH = f"""
    UPDATE key_document SET next_at = ?2, not_before_at = ?2, {_CHANGED}
    WHERE seq = ?1
"""  # noqa: S608  our own names
_OF_SOURCE = "SELECT seq FROM key_document WHERE source = ? ORDER BY seq"
_HOLD = f"""
    UPDATE key_document SET fence = fence + 1, next_at = ?2, not_before_at = ?2, {_CHANGED}
    WHERE seq = ?1 RETURNING {names(_FETCHES.columns)}
"""  # noqa: S608  our own names
_SUCCEED = f"""
    UPDATE key_document SET
        content = coalesce(?4, content), etag = ?5, fetched_at = ?6, valid_until_at = ?7,
        failures = 0, failure = NULL, next_at = ?8, not_before_at = ?9, {_CHANGED}
    WHERE source = ?1 AND url = ?2 AND fence = ?3
"""  # noqa: S608  our own names
_FAIL = f"""
    UPDATE key_document SET
        failures = failures + 1, failure = ?4, next_at = ?5, not_before_at = ?6, {_CHANGED}
    WHERE source = ?1 AND url = ?2 AND fence = ?3
"""  # noqa: S608  our own names


# ---------------------------------------------------------------- steps


def want(ledger: Ledger, source: str, url: str, documents_max: int, now: int) -> None:
    """Make a document due, a new one in the place of another if need be."""
    if ledger.one(_KNOWN, (source, url)) is not None:
        ledger.execute(_WANT, (source, url, now))
        return
    revision = _number(ledger, _REVISION)
    if _number(ledger, _COUNT, (source,)) >= documents_max:
        given_up = ledger.one(_REPLACEABLE, (source, now))
        if given_up is None:
            return
        ledger.execute(_DELETE, given_up)
    ledger.execute(_INSERT, (source, url, now, revision))


def refresh(ledger: Ledger, source: str, now: int) -> int:
    """Make all documents of a source due."""
    rows = ledger.run(_OF_SOURCE, (source,))
    for (seq,) in rows:
        ledger.execute(_REFRESH, (seq, now))
    return len(rows)


def prove(ledger: Ledger, source: str, url: str, now: int) -> None:
    """Note that a document's keys verified a request."""
    ledger.execute(_PROVE, (source, url, now))


def claim(
    ledger: Ledger, sources: Sequence[str], limit: int, ttl_ms: int, now: int
) -> list[KeyFetch]:
    """Take the most overdue documents of these sources."""
    due = ledger.run(*_due("seq", sources, now, limit))
    held = [ledger.one(_HOLD, (seq, now + ttl_ms)) for (seq,) in due]
    return [_FETCHES.value(row) for row in held if row is not None]


def commit(
    ledger: Ledger, fetch: KeyFetch, outcome: Fetched | Failed, now: int
) -> Committed | LeaseLost:
    """Write what a fetch found, if nobody claimed the document since."""
    key = (fetch.source, fetch.url, fetch.fence)
    hold_until = now + outcome.hold_ms
    if isinstance(outcome, Fetched):
        found = (outcome.content, outcome.etag, now, now + outcome.valid_ms)
        ledger.execute(_SUCCEED, (*key, *found, now + outcome.next_ms, hold_until))
    else:
        next_at = None if outcome.next_ms is None else now + outcome.next_ms
        ledger.execute(_FAIL, (*key, outcome.failure, next_at, hold_until))
    return Committed() if ledger.changes() else LeaseLost()


def _due(
    columns: str, sources: Sequence[str], now: int, limit: int
) -> tuple[str, tuple[Value, ...]]:
    marks = ", ".join("?" * len(sources))
    sql = f"""
        SELECT {columns} FROM key_document
        WHERE next_at <= ? AND source IN ({marks}) ORDER BY next_at, seq LIMIT ?
    """  # noqa: S608  our own names
    return sql, (now, *sources, limit)


def _number(ledger: Ledger, sql: str, values: Sequence[Value] = ()) -> int:
    row = ledger.one(sql, values)
    assert row is not None
    number: int = row[0]
    return number


def _after(ledger: Ledger, revision: int) -> list[KeyDocument]:
    return [_DOCUMENTS.value(row) for row in ledger.run(_AFTER, (revision,))]


def _is_due(ledger: Ledger, sources: Sequence[str], now: int) -> bool:
    return ledger.one(*_due("1", sources, now, 1)) is not None


class PublishedKeys:
    """`contract.PublishedKeys` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def after(self, revision: int) -> list[KeyDocument]:
        """See the contract."""
        return await self._executor.read(partial(_after, revision=revision))

    async def want(self, source: str, url: str, documents_max: int, now: int) -> None:
        """See the contract."""
        step = partial(want, source=source, url=url, documents_max=documents_max, now=now)
        await self._executor.write(step)

    async def refresh(self, source: str, now: int) -> int:
        """See the contract."""
        return await self._executor.write(partial(refresh, source=source, now=now))

    async def prove(self, source: str, url: str, now: int) -> None:
        """See the contract."""
        await self._executor.write(partial(prove, source=source, url=url, now=now))

    async def is_due(self, sources: Sequence[str], now: int) -> bool:
        """See the contract."""
        return await self._executor.read(partial(_is_due, sources=sources, now=now))

    async def claim(
        self, sources: Sequence[str], limit: int, ttl_ms: int, now: int
    ) -> list[KeyFetch]:
        """See the contract."""
        step = partial(claim, sources=sources, limit=limit, ttl_ms=ttl_ms, now=now)
        return await self._executor.write(step)

    async def commit(
        self, fetch: KeyFetch, outcome: Fetched | Failed, now: int
    ) -> Committed | LeaseLost:
        """See the contract."""
        return await self._executor.write(partial(commit, fetch=fetch, outcome=outcome, now=now))
