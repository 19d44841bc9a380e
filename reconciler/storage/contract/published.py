"""The keys that providers publish."""

from collections.abc import Sequence
from typing import Protocol

from reconciler.domain.published import Failed, Fetched, KeyDocument, KeyFetch
from reconciler.storage.contract.outcome import Committed, LeaseLost


class PublishedKeys(Protocol):
    """The keys that providers publish, a document at each address that a source needs.

    A document that is due is fetched by one process of many: whoever claims it has `ttl_ms` until
    it is due again. Its instants are counted from each step's `now`.
    """

    async def after(self, revision: int) -> list[KeyDocument]:
        """Return the documents that changed after a revision, oldest change first; 0 is all."""

    async def want(self, source: str, url: str, documents_max: int, now: int) -> None:
        """Make the document due as soon as its `not_before_at` allows; one that is due stays so.

        A new one is due at once. Where the source has `documents_max` already, it takes the place
        of the unproven one, not held by its `not_before_at`, that was new the longest ago, or of a
        proven one that may be used no longer; without such a one nothing happens.
        """

    async def refresh(self, source: str, now: int) -> int:
        """Make all documents of a source due now, whatever holds them; return how many."""

    async def prove(self, source: str, url: str, now: int) -> None:
        """Note that the document's keys verified a request."""

    async def is_due(self, sources: Sequence[str], now: int) -> bool:
        """Tell whether any document of these sources is due."""

    async def claim(
        self, sources: Sequence[str], limit: int, ttl_ms: int, now: int
    ) -> list[KeyFetch]:
        """Take the most overdue documents of these sources, each with a greater fence.

        They are held for `ttl_ms` and due again then.
        """

    async def commit(
        self, fetch: KeyFetch, outcome: Fetched | Failed, now: int
    ) -> Committed | LeaseLost:
        """Write what the fetch found, or nothing if the document was claimed again since.

        What failed counts one failure more and leaves content, etag and validity as they are.
        """
