"""Fetching published keys: what is asked, what is kept of any answer, and when it is asked again."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.domain.published import Failed, Fetched, KeyFetch
from reconciler.effects import fetch_keys as effect
from reconciler.effects.fetch_keys import KeyFetcher, fetch_keys
from reconciler.providers.answer import Answer
from reconciler.providers.client import Limits, ProviderClient
from reconciler.providers.egress import Allowed, Policy
from reconciler.providers.errors import EgressDeniedError, ProviderUnavailableError
from reconciler.providers.request import Outbound
from reconciler.storage.sqlite.store import SQLiteStore, open_store
from tests.support.builders import NOW
from tests.support.certificates import server_context
from tests.support.key_server import SigningKey, jwks
from tests.support.loopback import answering, serving, trickling
from tests.support.scripted import ScriptedClient
from verifiers.preset import Preset, load_preset

pytestmark = pytest.mark.anyio

FAL = load_preset("fal")
assert FAL.published is not None
FETCH = KeyFetch("acme", FAL.published.url, 1, None, None, 0)
GOOD = jwks(SigningKey("k1"))
SNS = load_preset("aws-sns")
SNS_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-01d0.pem"

Reply = Callable[[Outbound], Answer | Awaitable[Answer]]


def ok(body: bytes = GOOD, **headers: str) -> Reply:
    """Return a 200 with these headers, `_` for `-`."""
    pairs = tuple((k.replace("_", "-").encode(), v.encode()) for k, v in headers.items())
    return lambda _: Answer(200, pairs, body)


async def run(
    reply: Reply, fetch: KeyFetch = FETCH, preset: Preset = FAL, jitter: float = 0.0
) -> tuple[Fetched | Failed, ScriptedClient]:
    """Run the effect."""
    client = ScriptedClient(reply)
    return await fetch_keys(fetch, preset, client, lambda: NOW, jitter), client


async def test_what_is_asked() -> None:
    """One plain GET of the address, conditional where there was something good."""
    _, first = await run(ok())
    _, again = await run(ok(), replace(FETCH, etag='"v1"', fetched_at=NOW))

    [request] = first.requests
    assert (request.method, request.url, request.body) == ("GET", FETCH.url, None)
    assert "If-None-Match" not in dict(request.headers)
    assert dict(again.requests[0].headers)["If-None-Match"] == '"v1"'


async def test_keys_are_kept() -> None:
    """A good answer is kept as it is, with its name, for a week, and held for a minute."""
    outcome, _ = await run(ok(etag='"v2"'))

    assert outcome == Fetched(GOOD, '"v2"', effect.VALID_MS, effect.FRESH_MS, effect.HOLD_MS)


async def test_not_modified() -> None:
    """What is the same as before is good again; without a question that is no answer."""
    known = replace(FETCH, etag='"v1"', fetched_at=NOW)
    outcome, _ = await run(lambda _: Answer(304), known)
    unasked, _ = await run(lambda _: Answer(304))

    assert isinstance(outcome, Fetched)
    assert (outcome.content, outcome.etag) == (None, '"v1"')
    assert isinstance(unasked, Failed)


@pytest.mark.parametrize(
    ("headers", "fresh_s"),
    [
        ({}, 3_600),
        ({"cache_control": "public, max-age=7200"}, 7_200),
        ({"cache_control": "max-age=7200", "age": "1200"}, 6_000),
        ({"cache_control": "max-age=0"}, 300),
        ({"cache_control": "max-age=999999999"}, 86_400),
        ({"cache_control": "max-age=600, max-age=700"}, 3_600),
        ({"cache_control": "max-age=-1"}, 3_600),
        ({"cache_control": "s-max-age=700"}, 3_600),
        ({"cache_control": "max-age=600", "age": "junk"}, 600),
    ],
)
async def test_freshness(headers: dict[str, str], fresh_s: int) -> None:
    """What an answer says of its age counts, between five minutes and a day."""
    outcome, _ = await run(ok(**headers))

    assert outcome.next_ms == fresh_s * 1000


async def test_sources_do_not_ask_together() -> None:
    """Chance moves a fetch forward by up to a fifth."""
    outcome, _ = await run(ok(), jitter=0.5)

    assert outcome.next_ms == effect.FRESH_MS * 9 // 10


@pytest.mark.parametrize("etag", ["v1", '"a b"', '"' + "x" * 200 + '"', '"\xff"', '"a"b"'])
async def test_a_strange_etag_is_not_kept(etag: str) -> None:
    """What would be sent back to the provider is an entity tag (RFC 9110, section 8.8.3)."""
    outcome, _ = await run(lambda _: Answer(200, ((b"etag", etag.encode("latin-1")),), GOOD))

    assert isinstance(outcome, Fetched)
    assert outcome.etag is None


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (Answer(404), "http_404"),
        (Answer(301, ((b"location", b"https://evil.test/"),)), "http_301"),
        (Answer(206, (), GOOD), "http_206"),
        (Answer(200, (), b"", body_fault="truncated"), "truncated"),
        (Answer(200, (), b"<html>"), "no_keys"),
    ],
)
async def test_what_is_no_answer(answer: Answer, failure: str) -> None:
    """Only a whole 200 with keys in it is kept."""
    outcome, client = await run(lambda _: answer)

    assert isinstance(outcome, Failed)
    assert outcome.failure == failure
    assert len(client.requests) == 1


@pytest.mark.parametrize(
    "error", [ProviderUnavailableError("timeout"), EgressDeniedError("address")]
)
async def test_no_answer(error: Exception) -> None:
    """A provider that is not reached, or may not be, is a failure like others."""

    def reply(_: Outbound) -> Answer:
        raise error

    outcome, _ = await run(reply)

    assert isinstance(outcome, Failed)
    assert outcome.failure in {"timeout", "address"}


async def test_failures_wait_longer_each_time() -> None:
    """Between failures the wait doubles, up to an hour, and no request shortens it."""
    waits = []
    for failures in (0, 1, 2, 30):
        outcome, _ = await run(
            lambda _: Answer(500), replace(FETCH, failures=failures), jitter=0.99
        )
        assert isinstance(outcome, Failed)
        assert outcome.hold_ms == outcome.next_ms
        waits.append(round((outcome.next_ms or 0) / 1000, -1))

    assert waits == [10, 20, 40, 3580]


async def test_retry_after_is_obeyed() -> None:
    """A provider that asks for a pause gets it, up to an hour."""
    for asked, waits in (("120", 120_000), ("999999", 3_600_000)):
        outcome, _ = await run(lambda _, a=asked: Answer(429, ((b"retry-after", a.encode()),)))  # type: ignore[misc]
        assert outcome.next_ms == waits


async def test_an_address_that_a_stranger_made_up_is_not_tried_by_itself() -> None:
    """An address from a request that never held anything waits for another request; a known one is tried."""
    made_up = KeyFetch("acme", SNS_URL, 1, None, None, 0)
    first, _ = await run(lambda _: Answer(404), made_up, SNS)
    known, _ = await run(lambda _: Answer(404), replace(made_up, fetched_at=NOW), SNS)

    assert first == Failed("http_404", None, effect.HOLD_MS)
    assert known.next_ms is not None


@pytest.mark.parametrize("url", ["https://evil.test/x.pem", SNS_URL.replace("https", "http")])
async def test_an_address_that_is_not_sure_is_not_asked(url: str) -> None:
    """Whatever the ledger says, only what the preset allows is asked (SC-16)."""
    outcome, client = await run(ok(), KeyFetch("acme", url, 1, None, None, 0), SNS)

    assert isinstance(outcome, Failed)
    assert (outcome.failure, outcome.next_ms, client.requests) == ("key_url_untrusted", None, [])


# ---------------------------------------------------------------- over sockets


async def _over(preset: Preset, url: str, client: ProviderClient) -> Fetched | Failed:
    published = replace(preset.published, url=url) if preset.published else None
    fetch = KeyFetch("acme", url, 1, None, None, 0)
    try:
        return await fetch_keys(fetch, replace(preset, published=published), client, lambda: NOW, 0)
    finally:
        await client.aclose()


def _client(port: int, scheme: str = "http", **given: ssl.SSLContext) -> ProviderClient:
    policy = Policy((Allowed.parse(f"{scheme}://127.0.0.1/32:{port}"),))
    return ProviderClient(policy, limits=Limits(total_s=0.5, body_bytes_max=2_000), **given)


async def test_a_slow_server_costs_no_more_than_the_deadline() -> None:
    """A server that drips is left after the whole call's deadline."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    async with asyncio.timeout(5), serving(trickling(head, b" ", pause_s=0.05)) as server:
        outcome = await _over(FAL, f"{server.url}/jwks", _client(server.port))

    assert isinstance(outcome, Failed)
    assert outcome.failure == "timeout"


async def test_a_redirect_is_not_followed() -> None:
    """A redirect is an answer without keys; where it points is never asked."""
    async with serving(answering(b"")) as other:
        raw = f"HTTP/1.1 302 X\r\nLocation: {other.url}/\r\nContent-Length: 0\r\n\r\n"
        async with serving(answering(raw.encode())) as server:
            outcome = await _over(FAL, f"{server.url}/jwks", _client(server.port))

    assert isinstance(outcome, Failed)
    assert (outcome.failure, other.heads) == ("http_302", [])


async def test_certificates_are_checked(tmp_path: Path) -> None:
    """Keys come from a server that proves its name, or not at all."""
    tls, trusted = server_context(tmp_path, ["127.0.0.1"])
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(GOOD), GOOD)
    async with serving(answering(raw), tls) as server:
        url = f"https://127.0.0.1:{server.port}/jwks"
        stranger = await _over(FAL, url, _client(server.port, "https"))
        context = ssl.create_default_context(cafile=trusted)
        known = await _over(FAL, url, _client(server.port, "https", ssl_context=context))

    assert isinstance(stranger, Failed)
    assert stranger.failure == "tls_failed"
    assert isinstance(known, Fetched)


# ---------------------------------------------------------------- the loop


class Clock:
    """A time that a test moves."""

    now = NOW

    def __call__(self) -> int:
        """Return it."""
        return self.now


def fetcher(store: SQLiteStore, reply: Reply, clock: Clock) -> tuple[KeyFetcher, ScriptedClient]:
    """Return a loop over a ledger."""
    client = ScriptedClient(reply)
    presets = {"acme": FAL, "sns": SNS}
    return KeyFetcher(
        store.published_keys, lambda: presets, client, lambda: 0.0, clock, clock
    ), client


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    """Return an empty ledger."""
    return open_store(tmp_path / "ledger.db", now=lambda: NOW)


async def test_many_processes_fetch_once(store: SQLiteStore) -> None:
    """Of many loops over one ledger, one fetches."""
    clock = Clock()
    loops = [fetcher(store, ok(), clock) for _ in range(10)]
    await store.published_keys.want("acme", FETCH.url, 16, NOW)

    await asyncio.gather(*(loop.tick() for loop, _ in loops))

    assert sum(len(client.requests) for _, client in loops) == 1
    [document] = await store.published_keys.after(0)
    assert document.content == GOOD
    await store.close()


async def test_a_flood_is_one_fetch_an_interval(store: SQLiteStore) -> None:
    """Wanted ten times a second for ten minutes, a document is fetched ten times."""
    clock = Clock()
    loop, client = fetcher(store, ok(cache_control="max-age=86400"), clock)
    for _ in range(6_000):
        await store.published_keys.want("acme", FETCH.url, 16, clock())
        if clock.now % 1_000 == 0:
            await loop.tick()
        clock.now += 100

    assert len(client.requests) == 600_000 // effect.HOLD_MS
    await store.close()


async def test_an_outage_is_asked_seldom(store: SQLiteStore) -> None:
    """In a day's outage with a flood of requests nobody is asked more than a few dozen times."""
    clock = Clock()
    loop, client = fetcher(store, lambda _: Answer(503), clock)
    for _ in range(86_400 // 20):
        await store.published_keys.want("acme", FETCH.url, 16, clock())
        await loop.tick()
        clock.now += 20_000

    assert 20 < len(client.requests) < 60
    await store.close()


async def test_a_bug_does_not_end_the_loop(store: SQLiteStore) -> None:
    """A fetch that breaks our code harms no other, and is tried again when its lease ends."""
    clock = Clock()

    def reply(request: Outbound) -> Answer:
        assert request.url != SNS_URL
        return Answer(200, (), GOOD)

    loop, client = fetcher(store, reply, clock)
    await store.published_keys.want("sns", SNS_URL, 16, NOW)
    await store.published_keys.want("acme", FETCH.url, 16, NOW)

    await loop.tick()
    clock.now += effect.LEASE_MS
    await loop.tick()

    assert [request.url for request in client.requests].count(SNS_URL) == 2
    assert {d.url for d in await store.published_keys.after(0) if d.content} == {FETCH.url}
    await store.close()
