"""The demo provider: jobs that end by themselves, and callbacks that cannot be trusted.

Clock, randomness and the poster are parameters, so that a test plays it through without waiting.
`post_due` posts what is due and is called by whoever has the loop. Its own record of each job is
the truth that an operation must end with.
"""

import heapq
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from gateway.demo.job import Job, make_job
from gateway.demo.mischief import DECK, Callback, Habit, plan

#: Sends headers and body to the gateway; returns the status, or 0 where there was no answer.
Poster = Callable[[list[tuple[str, str]], bytes], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Sent:
    """A callback and the status that came back; `None` for one that was dropped on purpose."""

    callback: Callback
    status: int | None


class DemoProvider:
    """An asynchronous job API's inside."""

    def __init__(
        self,
        *,
        secret: bytes,
        post: Poster,
        clock: Callable[[], int],
        random: Random,
        deck: Sequence[Habit] = DECK,
    ) -> None:
        self._secret, self._post, self._clock, self._random = secret, post, clock, random
        self._deck = deck
        self._due: list[tuple[int, int, Callback]] = []
        self._order = count()
        self.jobs: dict[str, Job] = {}
        self.habits: dict[str, Habit] = {}
        self.sent: list[Sent] = []

    def create(self, reference: str | None) -> Job:
        """Start a job; its callbacks are planned at once. The same reference is the same job."""
        known = None if reference is None else self.by_reference(reference)
        if known is not None:
            return known
        habit = self._deck[len(self.jobs) % len(self._deck)]
        job_id = f"job_{self._random.randbytes(5).hex()}"
        job = make_job(job_id, reference, self._clock(), self._random)
        if habit is Habit.BOASTFUL:
            job = job.ending("failed")
        self.jobs[job_id], self.habits[job_id] = job, habit
        for callback in plan(job, habit, self._random):
            heapq.heappush(self._due, (callback.at, next(self._order), callback))
        return job

    def by_reference(self, reference: str) -> Job | None:
        """Return the job with a client's reference."""
        return next((job for job in self.jobs.values() if job.reference == reference), None)

    def now(self) -> int:
        """Return the provider's time, milliseconds since the epoch."""
        return self._clock()

    @property
    def quiet(self) -> bool:
        """Whether nothing is left to be told."""
        return not self._due

    async def post_due(self) -> None:
        """Post every callback that is due, one after the other."""
        while self._due and self._due[0][0] <= self._clock():
            _, _, callback = heapq.heappop(self._due)
            if callback.dropped:
                self.sent.append(Sent(callback, None))
                continue
            status = await self._post(callback.headers(self._secret), callback.body)
            self.sent.append(Sent(callback, status))
