"""The keys that providers publish, one record an address that a source needs.

The right to fetch is the record's own due time: a claim moves it on, so nobody else finds it due,
and raises the fence that the commit compares.
"""

from collections.abc import Sequence

from reconciler.domain.published import Failed, Fetched, KeyDocument, KeyFetch
from reconciler.storage.contract import Committed, LeaseLost
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import as_number, as_text, number, text
from reconciler.storage.redis.script import load

_AFTER, _WANT, _REFRESH = load("keys_after"), load("keys_want"), load("keys_refresh")
_PROVE, _DUE = load("keys_prove"), load("keys_due")
_CLAIM, _COMMIT = load("keys_claim"), load("keys_commit")


class PublishedKeys:
    """`contract.PublishedKeys` on Redis."""

    def __init__(self, reads: Pipeline, writes: Pipeline) -> None:
        self._reads, self._writes = reads, writes

    async def after(self, revision: int) -> list[KeyDocument]:
        """See the contract."""
        return [_document(*stored) for stored in await self._reads.run(_AFTER, revision)]

    async def want(self, source: str, url: str, documents_max: int, now: int) -> None:
        """See the contract."""
        await self._writes.run(_WANT, now, source.encode(), url.encode(), documents_max)

    async def refresh(self, source: str, now: int) -> int:
        """See the contract."""
        count: int = await self._writes.run(_REFRESH, now, source.encode())
        return count

    async def prove(self, source: str, url: str, now: int) -> None:
        """See the contract."""
        await self._writes.run(_PROVE, now, source.encode(), url.encode())

    async def is_due(self, sources: Sequence[str], now: int) -> bool:
        """See the contract."""
        return bool(await self._reads.run(_DUE, now, *_names(sources)))

    async def claim(
        self, sources: Sequence[str], limit: int, ttl_ms: int, now: int
    ) -> list[KeyFetch]:
        """See the contract."""
        taken = await self._writes.run(_CLAIM, now, limit, ttl_ms, *_names(sources))
        return [
            KeyFetch(
                *(as_text(source), as_text(url), fence),
                *(_text(etag), as_number(fetched_at), int(failures)),
            )
            for source, url, fence, etag, fetched_at, failures in taken
        ]

    async def commit(
        self, fetch: KeyFetch, outcome: Fetched | Failed, now: int
    ) -> Committed | LeaseLost:
        """See the contract."""
        key = (fetch.source.encode(), fetch.url.encode(), fetch.fence)
        times = (number(outcome.next_ms), outcome.hold_ms)
        found: tuple[bytes | int, ...]
        if isinstance(outcome, Fetched):
            found = (b"", outcome.content or b"", text(outcome.etag), outcome.valid_ms)
        else:
            found = (outcome.failure.encode(),)
        written = await self._writes.run(_COMMIT, now, *key, *times, *found)
        return Committed() if written else LeaseLost()


def _names(sources: Sequence[str]) -> list[bytes]:
    return [source.encode() for source in sources]


def _text(stored: bytes | None) -> str | None:
    return as_text(stored) if stored else None


def _document(source: bytes, url: bytes, fields: Reply) -> KeyDocument:
    content, etag, fetched, valid, failures, failure, due, hold, proven, revision = fields
    return KeyDocument(
        source=as_text(source),
        url=as_text(url),
        content=content,
        etag=_text(etag),
        fetched_at=as_number(fetched),
        valid_until_at=as_number(valid),
        failures=int(failures),
        failure=_text(failure),
        next_at=as_number(due),
        not_before_at=int(hold),
        proven_at=as_number(proven),
        revision=int(revision),
    )
