"""The keys that providers publish, as this process uses them: read from the ledger, never fetched.

A few times a second what changed there becomes values in `Sources`. What requests need is collected
here and told to the ledger with the next round, an address once however many requests needed it: a
flood costs a set that is bounded, and no write that is not needed. Fetching is the reconciler's.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable

from gateway.source import Source, Sources
from reconciler import logs
from reconciler.domain.published import KeyDocument
from reconciler.storage.contract import PublishedKeys
from reconciler.storage.errors import StorageUnavailableError
from verifiers.published import address, trusted_address
from verifiers.request import RawRequest
from verifiers.verdict import Reason, Rejected, Verified

EVERY_S = 0.5
#: Addresses that a source's requests may name: a region or an account each, an old one beside it.
DOCUMENTS_MAX = 16
_log = logs.get("keys")


class KeyView:
    """Keeps the sources' published keys current."""

    def __init__(
        self,
        sources: Sources,
        keys: PublishedKeys,
        clock: Callable[[], int],
        lease_now: Callable[[], int],
    ) -> None:
        self._sources, self._keys = sources, keys
        self._clock, self._lease_now = clock, lease_now
        self._documents: dict[tuple[str, str], KeyDocument] = {}
        self._revision = 0
        self._wanted: defaultdict[str, set[str]] = defaultdict(set)
        self._used: defaultdict[str, set[str]] = defaultdict(set)

    def heed(self, source: Source, request: RawRequest, verdict: Verified | Rejected) -> None:
        """Note what a verdict says about the keys that there are; never waits."""
        if isinstance(verdict, Verified):
            self._prove(source, verdict.key_id)
        else:
            self._miss(source, request, verdict.reason)

    def _miss(self, source: Source, request: RawRequest, reason: Reason) -> None:
        """Note that a request could not be verified with the keys that there are.

        A request that names its key must name an unknown one. One that names none may be signed
        with a new key, so there a wrong signature counts as well.
        """
        published, waiting = source.preset.published, self._wanted[source.name]
        if published is None or len(waiting) >= DOCUMENTS_MAX:
            return
        nameless = published.url_from is None and reason is Reason.SIGNATURE_MISMATCH
        if reason is Reason.KEY_UNKNOWN or nameless:
            url = address(request, source.preset)
            if url is not None and not self._is_due(source.name, url):
                waiting.add(url)

    def _prove(self, source: Source, key_id: str) -> None:
        """Note that a document's keys verified a request that named it."""
        document = self._documents.get((source.name, key_id))
        if document is not None and document.proven_at is None:
            self._used[source.name].add(document.url)

    async def run(self) -> None:
        """Keep current until cancelled."""
        while True:
            await asyncio.sleep(EVERY_S)
            await self.tick()

    async def tick(self) -> None:
        """Do one round; a ledger that cannot answer leaves everything as it is."""
        if not any(source.preset.published for source in self._sources.all()):
            return
        try:
            await self._read()
            self._show()
            await self._tell()
        except StorageUnavailableError as error:
            _log.warning("storage_unavailable", error=str(error))

    async def _read(self) -> None:
        changed = await self._keys.after(self._revision)
        if any((each.source, each.url) not in self._documents for each in changed):
            # A new one may have taken another's place.
            self._documents.clear()
            changed = await self._keys.after(0)
        for document in changed:
            self._documents[document.source, document.url] = document
            self._revision = document.revision

    def _show(self) -> None:
        """Give the sources what may be used now."""
        now = self._clock()
        found: dict[str, dict[str, bytes]] = {}
        for document in self._documents.values():
            if document.content is not None and document.usable(now):
                found.setdefault(document.source, {})[document.url] = document.content
        self._sources.publish(found)

    async def _tell(self) -> None:
        """Tell the ledger what is needed, each source's own address among it."""
        wanted, self._wanted = self._wanted, defaultdict(set)
        used, self._used = self._used, defaultdict(set)
        for source in self._sources.all():
            published = source.preset.published
            if published is None or published.url_from is not None:
                continue
            if (source.name, published.url) not in self._documents:
                wanted[source.name].add(published.url)
        now = self._lease_now()
        for name, urls in wanted.items():
            for url in sorted(urls):
                await self._keys.want(name, url, DOCUMENTS_MAX, now)
        for name, urls in used.items():
            for url in sorted(urls):
                await self._keys.prove(name, url, now)

    def _is_due(self, source: str, url: str) -> bool:
        """Tell whether the document is fetched as soon as it may be, as far as is known here."""
        document = self._documents.get((source, url))
        if document is None or document.next_at is None:
            return False
        return document.next_at <= max(self._clock(), document.not_before_at)


def documents_of(source: Source, documents: list[KeyDocument]) -> list[KeyDocument]:
    """Return the documents that a source uses, for whoever asks; not those of an earlier preset."""
    published = source.preset.published
    if published is None:
        return []
    return [
        document
        for document in documents
        if document.source == source.name and trusted_address(published, document.url)
    ]
