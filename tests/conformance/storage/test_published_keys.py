"""`PublishedKeys`: what providers publish, and who fetches it when."""

import asyncio
from collections.abc import Callable

import pytest

from reconciler.domain.published import Failed, Fetched, KeyDocument, KeyFetch
from reconciler.storage.contract import Committed, LeaseLost, Store
from tests.support.builders import NOW

pytestmark = pytest.mark.anyio

URL = "https://keys.acme.test/jwks?v=1"
TTL = 30_000
GOOD = Fetched(b'{"keys":[]} \x00\xff', '"v1"', valid_ms=9_000, next_ms=5_000, hold_ms=1_000)


async def _want(store: Store, url: str = URL, *, source: str = "acme", now: int = NOW) -> None:
    await store.published_keys.want(source, url, 3, now)


async def _claim(store: Store, now: int = NOW, *sources: str, limit: int = 9) -> list[KeyFetch]:
    return await store.published_keys.claim(sources or ("acme",), limit, TTL, now)


async def _fetch(store: Store, outcome: Fetched | Failed, now: int = NOW) -> None:
    [fetch] = await _claim(store, now)
    assert Committed() == await store.published_keys.commit(fetch, outcome, now)


async def _only(store: Store) -> KeyDocument:
    [document] = await store.published_keys.after(0)
    return document


async def _urls(store: Store) -> set[str]:
    return {document.url for document in await store.published_keys.after(0)}


# ---------------------------------------------------------------- wanting


async def test_want_new(store: Store) -> None:
    """A document that nobody knew is due at once and has nothing to use."""
    await _want(store)

    expected = KeyDocument("acme", URL, None, None, None, None, 0, None, NOW, NOW, None, 1)
    assert expected == await _only(store)
    assert not expected.usable(NOW)
    assert await store.published_keys.is_due(["acme"], NOW)


async def test_want_again(store: Store) -> None:
    """A document that is due stays so, and nothing is written for it."""
    await _want(store)
    before = await _only(store)
    for later in range(500):
        await _want(store, now=NOW + later)

    assert before == await _only(store)


async def test_want_held(store: Store) -> None:
    """A wanted document is due no sooner than its last fetch allows, however often it is wanted."""
    await _want(store)
    await _fetch(store, GOOD)

    for _ in range(500):
        await _want(store)

    assert (await _only(store)).next_at == NOW + GOOD.hold_ms
    assert await _claim(store, NOW + GOOD.hold_ms - 1) == []
    assert len(await _claim(store, NOW + GOOD.hold_ms)) == 1


async def test_want_after_hold(store: Store) -> None:
    """A document that no fetch holds any more is due at once when it is wanted."""
    await _want(store)
    await _fetch(store, GOOD)

    await _want(store, now=NOW + 2_000)

    assert (await _only(store)).next_at == NOW + 2_000


async def test_want_given_up(store: Store) -> None:
    """A document that is not tried by itself is due again once it is wanted."""
    await _want(store)
    await _fetch(store, Failed("status_404", None, 1_000))
    assert (await _only(store)).next_at is None
    assert not await store.published_keys.is_due(["acme"], NOW + 10**12)

    await _want(store)

    assert (await _only(store)).next_at == NOW + 1_000


async def test_want_full(store: Store) -> None:
    """With as many documents as a source may have, all of them held, a further one is not kept."""
    for name in "abc":
        await _want(store, f"https://a.test/{name}")
    assert len(await _claim(store)) == 3

    await _want(store, "https://a.test/d")

    assert await _urls(store) == {f"https://a.test/{name}" for name in "abc"}


async def test_want_takes_a_place(store: Store) -> None:
    """The unproven one that was new the longest ago gives its place up, once nothing holds it."""
    for name in "abc":
        await _want(store, f"https://a.test/{name}")
    await _fetch_all(store)
    await store.published_keys.prove("acme", "https://a.test/a", NOW)

    await _want(store, "https://a.test/d", now=NOW + GOOD.hold_ms)

    assert await _urls(store) == {f"https://a.test/{name}" for name in "acd"}
    assert await store.published_keys.refresh("acme", NOW + GOOD.hold_ms) == 3
    await _want(store, "https://a.test/e", now=NOW + GOOD.hold_ms)
    assert await _urls(store) == {f"https://a.test/{name}" for name in "ade"}


async def _fetch_all(store: Store) -> None:
    for fetch in await _claim(store):
        await store.published_keys.commit(fetch, GOOD, NOW)


async def test_want_of_others(store: Store) -> None:
    """One source's documents take no place from another's."""
    for name in "abc":
        await _want(store, f"https://a.test/{name}")
    await _want(store, "https://a.test/d", source="other")

    assert len(await store.published_keys.after(0)) == 4


async def test_want_proven(store: Store) -> None:
    """Proven documents give up their places only when they may be used no longer."""
    for name in "abc":
        await _want(store, f"https://a.test/{name}")
    await _fetch_all(store)
    for name in "abc":
        await store.published_keys.prove("acme", f"https://a.test/{name}", NOW)

    await _want(store, "https://a.test/d", now=NOW + GOOD.valid_ms - 1)
    assert await _urls(store) == {f"https://a.test/{name}" for name in "abc"}

    await _want(store, "https://a.test/d", now=NOW + GOOD.valid_ms)
    assert await _urls(store) == {f"https://a.test/{name}" for name in "bcd"}


async def test_prove(store: Store) -> None:
    """What was proven first stands; what is not there cannot be proven."""
    await _want(store)
    await store.published_keys.prove("acme", URL, NOW + 1)
    await store.published_keys.prove("acme", URL, NOW + 2)
    await store.published_keys.prove("acme", "https://a.test/none", NOW)

    assert (await _only(store)).proven_at == NOW + 1


# ---------------------------------------------------------------- changes


async def test_after(store: Store) -> None:
    """Whoever asks after the last revision seen gets each change, in order, and no more."""
    keys = store.published_keys
    for name in "ab":
        await _want(store, f"https://a.test/{name}")
    seen = (await keys.after(0))[-1].revision
    assert await keys.after(seen) == []

    [first, _] = await _claim(store)
    changed = await keys.after(seen)
    await keys.commit(first, GOOD, NOW)
    [last] = await keys.after(changed[-1].revision)

    assert [document.url[-1] for document in changed] == ["a", "b"]
    assert (last.url, last.content) == (first.url, GOOD.content)


async def test_after_taken_place(store: Store) -> None:
    """A document in another's place is news, also where that one had changed last."""
    for name in "abc":
        await _want(store, f"https://a.test/{name}")
    await _claim(store)
    [*_, last] = await store.published_keys.after(0)
    for name in "ab":
        await store.published_keys.prove("acme", f"https://a.test/{name}", NOW)
    fetch = KeyFetch("acme", "https://a.test/c", 1, None, None, 0)
    await store.published_keys.commit(fetch, Failed("x", None, 0), NOW)
    seen = (await store.published_keys.after(last.revision))[-1].revision

    await _want(store, "https://a.test/d", now=NOW)

    assert [d.url for d in await store.published_keys.after(seen)] == ["https://a.test/d"]


# ---------------------------------------------------------------- fetching


async def test_claim(store: Store) -> None:
    """Of many that ask at once, one gets the right to fetch."""
    await _want(store)

    claims = await asyncio.gather(*(_claim(store) for _ in range(20)))

    assert [KeyFetch("acme", URL, 1, None, None, 0)] == [fetch for got in claims for fetch in got]
    assert not await store.published_keys.is_due(["acme"], NOW)


async def test_claim_ends(store: Store) -> None:
    """Who claimed and died holds nobody up for longer than was said; whoever is late writes nothing.

    A request that wants the document meanwhile changes neither.
    """
    await _want(store)
    [first] = await _claim(store)
    await _want(store)
    assert await _claim(store, NOW + TTL - 1) == []

    [second] = await _claim(store, NOW + TTL)

    assert second.fence > first.fence
    assert LeaseLost() == await store.published_keys.commit(first, GOOD, NOW + TTL)
    assert LeaseLost() == await store.published_keys.commit(first, Failed("x", 1, 1), NOW + TTL)
    assert (await _only(store)).content is None
    assert Committed() == await store.published_keys.commit(second, GOOD, NOW + TTL)


async def test_claim_in_order(store: Store) -> None:
    """The most overdue are taken first, no more than asked for, and of the named sources only."""
    for number, name in enumerate("cab"):
        await _want(store, f"https://a.test/{name}", now=NOW + number)
    await _want(store, source="other", now=NOW - 1)

    taken = await _claim(store, NOW + 9, limit=2)

    assert [fetch.url[-1] for fetch in taken] == ["c", "a"]
    assert not await store.published_keys.is_due(["unknown"], NOW + 9)
    assert await _claim(store, NOW + 9, "unknown") == []
    assert [f.source for f in await _claim(store, NOW + 9, "other", "acme")] == ["other", "acme"]


async def test_claim_nothing(store: Store) -> None:
    """Without sources nothing is due."""
    await _want(store)

    assert not await store.published_keys.is_due([], NOW)
    assert await store.published_keys.claim([], 9, TTL, NOW) == []


async def test_commit_fetched(store: Store) -> None:
    """Content is kept byte for byte, with when it was seen and how long it is good for."""
    await _want(store)
    await _fetch(store, Failed("timeout", 0, 0))
    await _fetch(store, GOOD, NOW + 1)

    found = await _only(store)

    expected = KeyDocument(
        *("acme", URL, GOOD.content, '"v1"', NOW + 1, NOW + 9_001, 0, None),
        *(NOW + 5_001, NOW + 1_001, None, found.revision),
    )
    assert expected == found
    assert found.usable(NOW + 9_000)
    assert not found.usable(NOW + 9_001)


async def test_commit_unchanged(store: Store) -> None:
    """What is the same as before keeps its content and is good for longer."""
    await _want(store)
    await _fetch(store, GOOD)
    again = Fetched(None, None, valid_ms=9_000, next_ms=5_000, hold_ms=1_000)
    await _fetch(store, again, NOW + 5_000)

    found = await _only(store)

    assert (found.content, found.etag) == (GOOD.content, None)
    assert (found.fetched_at, found.valid_until_at) == (NOW + 5_000, NOW + 14_000)


async def test_commit_failed(store: Store) -> None:
    """Failures are counted and named, and take nothing away from what was good."""
    await _want(store)
    await _fetch(store, GOOD)
    good = await _only(store)
    await _fetch(store, Failed("status_500", 100, 100), NOW + 5_000)
    await _fetch(store, Failed("timeout", 200, 200), NOW + 5_100)

    found = await _only(store)

    assert (found.failures, found.failure) == (2, "timeout")
    assert (found.next_at, found.not_before_at) == (NOW + 5_300, NOW + 5_300)
    kept = ("content", "etag", "fetched_at", "valid_until_at")
    assert [getattr(good, name) for name in kept] == [getattr(found, name) for name in kept]
    [fetch] = await _claim(store, NOW + 5_300)
    assert (fetch.etag, fetch.fetched_at, fetch.failures) == ('"v1"', NOW, 2)


async def test_refresh(store: Store) -> None:
    """An operator's word makes all documents of a source due now, whatever holds them."""
    for name in "ab":
        await _want(store, f"https://a.test/{name}")
    await _want(store, source="other")
    await _fetch_all(store)

    assert await store.published_keys.refresh("acme", NOW + 1) == 2
    assert await store.published_keys.refresh("unknown", NOW + 1) == 0

    assert len(await _claim(store, NOW + 1)) == 2


async def test_refresh_during_fetch(store: Store) -> None:
    """A fetch that was under way then is overtaken by the one that was asked for."""
    await _want(store)
    [first] = await _claim(store)
    await store.published_keys.refresh("acme", NOW)

    [second] = await _claim(store)

    assert LeaseLost() == await store.published_keys.commit(first, GOOD, NOW)
    assert Committed() == await store.published_keys.commit(second, GOOD, NOW)


async def test_reopen(open_ledger: Callable[[], Store]) -> None:
    """The last good content is there when the ledger is opened again."""
    before = open_ledger()
    await _want(before)
    await _fetch(before, GOOD)
    expected = await _only(before)
    await before.close()

    after = open_ledger()
    try:
        assert expected == await _only(after)
    finally:
        await after.close()
