"""The demo provider, played through on a clock of the test."""

from random import Random

import pytest

from gateway.demo.mischief import Habit
from gateway.demo.provider import DemoProvider

pytestmark = pytest.mark.anyio
START = 1_796_000_000_000


class World:
    """A clock that the test moves, and a gateway that answers 200."""

    def __init__(self, seed: int = 1, status: int = 200) -> None:
        self.now = START
        self.posts: list[tuple[int, bytes]] = []
        self.status = status
        self.provider = DemoProvider(
            secret=b"secret",
            post=self.post,
            clock=lambda: self.now,
            random=Random(seed),  # noqa: S311
        )

    async def post(self, headers: list[tuple[str, str]], body: bytes) -> int:
        """Take a callback."""
        assert dict(headers)["X-Webhook-Signature"].startswith("sha256=")
        self.posts.append((self.now, body))
        return self.status

    async def play(self) -> None:
        """Move the clock until nothing is left to be told."""
        while not self.provider.quiet:
            await self.provider.post_due()
            self.now += 10


async def test_the_same_seed_is_the_same_play() -> None:
    """Ids, times and callbacks depend on seed and clock alone."""
    first, second, other = World(5), World(5), World(6)
    for world in (first, second, other):
        for _ in range(8):
            world.provider.create(None)
        await world.play()

    assert first.posts == second.posts
    assert first.posts != other.posts


async def test_callbacks_wait_for_their_time() -> None:
    """Nothing is told before it is due."""
    world = World()
    job = world.provider.create(None)
    world.now = job.running.at - 1
    await world.provider.post_due()
    early = list(world.posts)
    world.now += 1
    await world.provider.post_due()

    assert (early, len(world.posts)) == ([], 1)


async def test_what_went_wrong_can_be_told_afterwards() -> None:
    """Each callback, sent or dropped, is kept with its habit and the answer."""
    world = World(status=0)
    for _ in Habit:
        world.provider.create(None)
    await world.play()
    sent = world.provider.sent

    assert {item.callback.habit for item in sent} == set(Habit)
    assert [item.status for item in sent if item.callback.habit is Habit.DROPPED] == [None] * 2
    assert {item.status for item in sent if not item.callback.dropped} == {0}
    assert sum(item.callback.forged for item in sent) == 1


async def test_a_handful_shows_every_habit() -> None:
    """Eight jobs go once through all habits, the honest and the forged one first."""
    world = World()
    for _ in range(8):
        world.provider.create(None)
    habits = list(world.provider.habits.values())

    assert set(habits) == set(Habit)
    assert habits[:2] == [Habit.HONEST, Habit.FORGED]


async def test_a_boast_never_comes_true() -> None:
    """The job whose success is claimed early ends as failed, so that the claim can be seen fail."""
    world = World()
    for _ in range(50):
        world.provider.create(None)
    boasts = [name for name, habit in world.provider.habits.items() if habit is Habit.BOASTFUL]

    assert {world.provider.jobs[name].ended.status for name in boasts} == {"failed"}


async def test_a_reference_names_one_job() -> None:
    """Creating twice with the same reference is one job."""
    world = World()
    first, again = (world.provider.create("order-1") for _ in range(2))

    assert first is again
    assert world.provider.create(None) is not world.provider.create(None)
