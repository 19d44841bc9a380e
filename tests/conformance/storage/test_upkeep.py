"""`Upkeep`: what keeps a ledger healthy."""

import pytest

from reconciler.domain import journal
from reconciler.storage.contract import RefusalQuery, Store
from tests.support.builders import NOW, refusal

pytestmark = pytest.mark.anyio


async def test_probe(store: Store) -> None:
    """A probe leaves nothing behind that anybody reads."""
    await store.upkeep.probe(NOW)
    await store.upkeep.probe(NOW + 1)

    assert await store.journal.size() == 0


async def test_seal_refusals(store: Store) -> None:
    """Each count of a minute that is over becomes one entry, once, with count and digest."""
    await store.inbox.refuse([refusal(n) for n in range(3)], NOW)
    await store.inbox.refuse([refusal(9, at=NOW + 60_000)], NOW)

    assert await store.upkeep.seal_refusals(NOW + 60_000, NOW + 61_000) == 1
    assert await store.upkeep.seal_refusals(NOW + 60_000, NOW + 62_000) == 0

    (entry,) = await store.journal.page(-1, 10)
    kind, told = journal.decode(entry.entry)
    count = (await store.events.refusal_counts(NOW))[0]
    assert kind == "refusals.counted"
    assert entry.at == NOW + 61_000
    assert told == {
        "project": "shop",
        "mode": "live",
        "source": "acme",
        "reason": "signature_mismatch",
        "minute_at": NOW,
        "count": 3,
        "digest": count.digest,
    }


async def test_seal_late_refusals(store: Store) -> None:
    """What is counted for a minute after it was sealed is sealed by a further entry."""
    await store.inbox.refuse([refusal(1)], NOW)
    await store.upkeep.seal_refusals(NOW + 60_000, NOW)
    await store.inbox.refuse([refusal(2)], NOW)

    assert await store.upkeep.seal_refusals(NOW + 60_000, NOW) == 1

    entries = [journal.decode(entry.entry)[1]["count"] for entry in await store.journal.page(-1, 9)]
    assert entries == [1, 2]


async def test_trim_refusals(store: Store) -> None:
    """The oldest kept refusals go until `keep` are left; the counts stay."""
    for minute in range(4):
        at = NOW + minute * 60_000
        await store.inbox.refuse([refusal(10 * minute + n, at=at) for n in range(3)], at)

    gone = 0
    while went := await store.upkeep.trim_refusals(5, NOW):
        gone += went

    kept = await store.events.refusals(RefusalQuery())
    assert gone == 7
    assert [f"ref_{n:026}" for n in (32, 31, 30, 22, 21)] == [each.refusal_id for each in kept]
    assert [count.count for count in await store.events.refusal_counts(NOW)] == [3, 3, 3, 3]


async def test_trim_nothing(store: Store) -> None:
    """Fewer refusals than are to be kept stay."""
    await store.inbox.refuse([refusal()], NOW)

    assert await store.upkeep.trim_refusals(5, NOW) == 0
    assert await store.events.refusals(RefusalQuery()) == [refusal()]
