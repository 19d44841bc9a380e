"""Fetch the keys that providers publish, so that verification finds them as values.

`KeyFetcher` is the loop beside the worker, `fetch_keys` its effect: one guarded, bounded GET of an
address that the source's preset pins. Only a 200 with keys in it replaces what the ledger has;
everything else (an outage, a redirect, a login page, something huge) leaves the last good content
where it is, for as long as that may be used, and is tried again with backoff.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from reconciler import logs
from reconciler.domain.published import Failed, Fetched, KeyFetch
from reconciler.domain.retry import backoff_ms, retry_after_ms
from reconciler.effects.means import Client
from reconciler.providers.answer import Answer
from reconciler.providers.errors import ProviderError
from reconciler.providers.request import Outbound
from reconciler.storage.contract import LeaseLost, PublishedKeys
from reconciler.storage.errors import StorageUnavailableError
from verifiers.preset import Preset
from verifiers.published import key_ids, trusted_address

#: A set of keys is a few KiB; the client is given this bound, and a time for the whole call.
BODY_BYTES_MAX = 64 << 10
TOTAL_S = 10.0
#: Longer than a fetch can last: then somebody else may try.
LEASE_MS = 30_000
AT_ONCE_MAX = 8

#: Between two fetches of one address, however many requests name keys that nobody knows.
HOLD_MS = 60_000
#: How long what was fetched counts as fresh: what the answer says within these, else this.
FRESH_MIN_MS, FRESH_MS, FRESH_MAX_MS = 300_000, 3_600_000, 86_400_000
#: How long the last good keys are used while the provider cannot be asked.
VALID_MS = 7 * 86_400_000
#: After a failure.
RETRY_MIN_MS, RETRY_MAX_MS = 10_000, 3_600_000

_ETAG = re.compile(r'(?:W/)?"[!#-~]{0,128}"')
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age=([0-9]{1,9})(?=$|[,\s])", re.IGNORECASE)

_log = logs.get("keys")


@dataclass(frozen=True, slots=True)
class KeyFetcher:
    """Fetches what is due, until cancelled. `presets` are those with published keys, by source."""

    keys: PublishedKeys
    presets: Callable[[], Mapping[str, Preset]]
    client: Client
    jitter: Callable[[], float]
    #: What the ledger's steps are told of the time: see `worker.Worker.lease_now`.
    lease_now: Callable[[], int]
    clock: Callable[[], int]
    every_s: float = 0.5

    async def run(self) -> None:
        """Look for what is due a few times a second."""
        while True:
            try:
                await self.tick()
            except StorageUnavailableError as error:
                _log.warning("storage_unavailable", error=str(error))
            await asyncio.sleep(self.every_s)

    async def tick(self) -> None:
        """Fetch what is due now."""
        presets = self.presets()
        if not presets or not await self.keys.is_due(tuple(presets), self.lease_now()):
            return
        due = await self.keys.claim(tuple(presets), AT_ONCE_MAX, LEASE_MS, self.lease_now())
        await asyncio.gather(*(self._carry_out(fetch, presets[fetch.source]) for fetch in due))

    async def _carry_out(self, fetch: KeyFetch, preset: Preset) -> None:
        try:
            await self._fetch(fetch, preset)
        except StorageUnavailableError as error:
            # Written or not, the document is due again when the lease ends.
            _log.warning("outcome_unknown", source=fetch.source, url=fetch.url, error=str(error))
        except Exception:  # noqa: BLE001  # a bug of ours must not end the loop; it is logged whole
            _log.exception("fetch_failed", source=fetch.source, url=fetch.url)

    async def _fetch(self, fetch: KeyFetch, preset: Preset) -> None:
        outcome = await fetch_keys(fetch, preset, self.client, self.clock, self.jitter())
        told = await self.keys.commit(fetch, outcome, self.lease_now())
        if isinstance(told, LeaseLost):
            _log.warning("lease_lost", source=fetch.source, url=fetch.url)
        elif isinstance(outcome, Failed):
            failure, count = outcome.failure, fetch.failures + 1
            _log.warning(
                "keys_not_fetched", source=fetch.source, url=fetch.url, error=failure, count=count
            )
        elif outcome.content is not None:
            _log.info("keys_fetched", source=fetch.source, url=fetch.url)


async def fetch_keys(
    fetch: KeyFetch, preset: Preset, client: Client, clock: Callable[[], int], jitter: float
) -> Fetched | Failed:
    """Make one fetch and say what came of it; `jitter` is a number in [0, 1)."""
    assert preset.published is not None
    if not trusted_address(preset.published, fetch.url):
        # The configuration has changed since the address was wanted.
        return Failed("key_url_untrusted", None, RETRY_MAX_MS)
    headers: tuple[tuple[str, str], ...] = (("Accept", "*/*"),)
    if fetch.etag is not None:
        headers = (*headers, ("If-None-Match", fetch.etag))
    try:
        answer = await client.send(Outbound("GET", fetch.url, headers))
    except ProviderError as error:
        return _failed(error.slug, fetch, preset, jitter)
    if answer.status == HTTPStatus.NOT_MODIFIED and fetch.etag is not None:
        return _fetched(None, fetch.etag, answer, jitter)
    failure = _failure(fetch, preset, answer)
    if failure is None:
        return _fetched(answer.body, _etag(answer), answer, jitter)
    asked_ms = retry_after_ms(answer.values("retry-after"), clock(), cap_ms=RETRY_MAX_MS)
    return _failed(failure, fetch, preset, jitter, asked_ms or 0)


def _failure(fetch: KeyFetch, preset: Preset, answer: Answer) -> str | None:
    """Return why an answer holds no keys; redirects are not followed, so they hold none."""
    if answer.status != HTTPStatus.OK:
        return f"http_{answer.status}"
    if answer.body_fault is not None:
        return answer.body_fault
    return None if key_ids(preset, fetch.url, answer.body) else "no_keys"


def _fetched(content: bytes | None, etag: str | None, answer: Answer, jitter: float) -> Fetched:
    fresh_ms = _fresh_ms(answer)
    # Somewhere in the last fifth, so that sources do not all ask at once.
    return Fetched(content, etag, VALID_MS, fresh_ms - int(fresh_ms / 5 * jitter), HOLD_MS)


def _failed(
    failure: str, fetch: KeyFetch, preset: Preset, jitter: float, at_least_ms: int = 0
) -> Failed:
    # In the upper half of the ceiling, so that an outage is never asked often, by any chance.
    wait_ms = backoff_ms(
        fetch.failures, base_ms=RETRY_MIN_MS, cap_ms=RETRY_MAX_MS, jitter=0.5 + jitter / 2
    )
    wait_ms = max(wait_ms, at_least_ms)
    assert preset.published is not None
    if preset.published.url_from is not None and fetch.fetched_at is None:
        # A stranger may have made this address up: it is asked again only if it is named again.
        return Failed(failure, None, max(wait_ms, HOLD_MS))
    return Failed(failure, wait_ms, wait_ms)


def _fresh_ms(answer: Answer) -> int:
    """Return how long an answer is fresh (RFC 9111, section 4.2), within our bounds."""
    control = b",".join(answer.values("cache-control")).decode("latin-1")
    found = _MAX_AGE.findall(control)
    if len(found) != 1:
        return FRESH_MS
    ages = answer.values("age")
    age = int(ages[0]) if len(ages) == 1 and re.fullmatch(rb"[0-9]{1,9}", ages[0]) else 0
    return max(FRESH_MIN_MS, min((int(found[0]) - age) * 1000, FRESH_MAX_MS))


def _etag(answer: Answer) -> str | None:
    values = answer.values("etag")
    text = values[0].decode("latin-1") if len(values) == 1 else ""
    return text if _ETAG.fullmatch(text) else None
