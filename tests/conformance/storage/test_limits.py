"""`Limits`: how often a provider may be asked, by all processes together."""

from collections.abc import Callable
from random import Random

import pytest

from reconciler.domain.pace import PAUSE_MS_MAX, Pace, Taken
from reconciler.storage.contract import Store
from tests.support.builders import NOW

pytestmark = pytest.mark.anyio

#: Three at once, then one a second.
PACE = Pace.of(1, 3)


async def test_burst_then_pace(store: Store) -> None:
    """A rested provider may be asked in a burst, then once an interval."""
    assert [await store.limits.take("acme", PACE, NOW) for _ in range(3)] == [0, 0, 0]
    assert await store.limits.take("acme", PACE, NOW) == 1_000
    assert await store.limits.take("acme", PACE, NOW + 999) > 0
    assert await store.limits.take("acme", PACE, NOW + 1_000) == 0
    assert await store.limits.take("acme", PACE, NOW + 1_000) > 0


async def test_a_wait_takes_nothing(store: Store) -> None:
    """However often somebody asks too early, the next call is not put off."""
    for _ in range(3):
        await store.limits.take("acme", PACE, NOW)
    for _ in range(200):
        assert await store.limits.take("acme", PACE, NOW + 500) > 0

    assert await store.limits.take("acme", PACE, NOW + 1_000) == 0


async def test_who_waits_comes_apart(store: Store) -> None:
    """Those who must wait are told instants an interval apart, within a minute."""
    for _ in range(3):
        await store.limits.take("acme", PACE, NOW)

    waits = [await store.limits.take("acme", PACE, NOW) for _ in range(70)]

    assert [second * 1_000 for second in range(1, 62)] == waits[:61]
    assert waits[61] == 1_000


async def test_providers_are_apart(store: Store) -> None:
    """What one provider was asked says nothing of another."""
    pace = Pace.of(1, 1)
    await store.limits.take("acme", pace, NOW)
    await store.limits.pause("acme", 5_000, NOW)

    assert await store.limits.take("other", pace, NOW) == 0


async def test_a_quick_pace_is_exact(store: Store) -> None:
    """Intervals of less than a millisecond add up."""
    pace = Pace.of(3_000, 1)
    granted = 0
    for ms in range(100):
        for _ in range(5):
            granted += await store.limits.take("acme", pace, NOW + ms) == 0

    assert granted <= 300
    assert granted >= 100


async def test_pause(store: Store) -> None:
    """A paused provider is asked by nobody, with a pace or without; a shorter pause ends none."""
    await store.limits.pause("acme", 60_000, NOW)
    await store.limits.pause("acme", 1_000, NOW)

    assert await store.limits.take("acme", None, NOW + 59_000) == 1_000
    assert await store.limits.take("acme", PACE, NOW + 59_000) == 1_000
    assert await store.limits.take("acme", None, NOW + 60_000) == 0
    assert await store.limits.take("acme", PACE, NOW + 60_000) == 0


async def test_a_pause_is_bounded(store: Store) -> None:
    """One answer stops a provider for a quarter of an hour at most."""
    await store.limits.pause("acme", 86_400_000, NOW)

    assert await store.limits.take("acme", None, NOW) == PAUSE_MS_MAX


async def test_a_clock_that_was_put_back(store: Store) -> None:
    """What a clock that ran ahead left behind holds nobody up for longer than a burst or pause."""
    ahead = NOW + 10**9
    for _ in range(4):
        await store.limits.take("acme", PACE, ahead)
    await store.limits.pause("other", 5_000, ahead)

    assert await store.limits.take("acme", PACE, NOW) <= 1_000
    assert await store.limits.take("other", None, NOW) == PAUSE_MS_MAX


async def test_it_outlives_a_restart(open_ledger: Callable[[], Store]) -> None:
    """A node that starts again goes on where it was: restarts are no way around a limit."""
    first = open_ledger()
    for _ in range(3):
        await first.limits.take("acme", PACE, NOW)
    await first.limits.pause("other", 5_000, NOW)
    await first.close()
    second = open_ledger()

    waits = [
        await second.limits.take("acme", PACE, NOW),
        await second.limits.take("other", None, NOW),
    ]

    await second.close()
    assert waits == [1_000, 5_000]


@pytest.mark.parametrize("seed", range(3))
async def test_engines_agree_with_the_rule(store: Store, seed: int) -> None:
    """Whatever is asked, each engine answers as the rule in the domain does."""
    random, taken, now = Random(seed), Taken(), NOW  # noqa: S311  it must be repeatable
    told, expected = [], []
    for _ in range(150):
        now += random.choice([0, 0, 1, 40, 700, 90_000, -5_000])
        if random.random() < 0.1:
            wait_ms = random.choice([0, 300, 20_000, 10**7])
            taken = taken.pause(wait_ms, now * 1000)
            await store.limits.pause("acme", wait_ms, now)
            continue
        pace = random.choice([None, PACE, Pace.of(7, 2), Pace.of(0.01, 1)])
        taken, wait_us = taken.take(pace, now * 1000)
        expected.append(-(-wait_us // 1000))
        told.append(await store.limits.take("acme", pace, now))

    assert expected == told
