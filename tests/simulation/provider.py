"""A provider that lies: it is late, goes back, talks nonsense, throttles, and answers for others.

What it never does is to say a wrong end of a job, save for jobs that are made to change their mind.
"""

import asyncio
import json
from dataclasses import dataclass, field
from random import Random

from reconciler.providers.answer import Answer
from reconciler.providers.errors import ProviderUnavailableError
from reconciler.providers.request import Outbound

ENDS = ("succeeded", "failed", "cancelled")
RETRY_AFTER = ("0", "5", "300", "-1", "1.5", "soon", "Thu, 01 Jan 2026 00:10:00 GMT", "9" * 30)


@dataclass
class Job:
    """A job's truth: when it runs and ends (virtual seconds), and as what; `None` never ends."""

    job_id: str
    runs_at: float
    ends_at: float
    end: str | None
    #: What it says instead before it settles, for a job that changes its mind.
    first: str | None = None
    #: The ends that it was heard to say.
    said: list[str] = field(default_factory=list)

    def word(self, now: float) -> str:
        """Return the provider's word for the state at a time."""
        if now < self.runs_at:
            return "queued"
        if now < self.ends_at or self.end is None:
            return "running"
        return self.first if self.first and now < self.ends_at + 120 else self.end


@dataclass
class LyingProvider:
    """Answers status reads; about one in three of them badly."""

    random: Random
    jobs: dict[str, Job]

    async def answer(self, request: Outbound) -> Answer:
        """Answer late, wrongly, rightly, or not at all."""
        now = asyncio.get_running_loop().time
        await asyncio.sleep(self.random.choice([0.05, 0.2, 1.0, 4.0, 12.0]))
        job = self.jobs[request.url.rsplit("/", 1)[1]]
        fault = self.random.random()
        if fault < 0.06:
            raise ProviderUnavailableError("reset", ambiguous=True)
        if fault < 0.2:
            return self._nonsense()
        if fault < 0.26:
            wait = self.random.choice(RETRY_AFTER)
            return Answer(self.random.choice([429, 503]), ((b"retry-after", wait.encode()),))
        word = job.word(now())
        if fault < 0.34:
            word = self.random.choice(["queued", "running", "almost_done", "SUCCEEDED", ""])
        asked = "job_other" if fault > 0.999 else job.job_id
        if word in ENDS and asked == job.job_id:
            job.said.append(word)
        return Answer(200, (), json.dumps({"id": asked, "status": word}).encode())

    def _nonsense(self) -> Answer:
        return self.random.choice(
            [
                Answer(404),
                Answer(401),
                Answer(500),
                Answer(302),
                Answer(200),
                Answer(200, body=b"<html>login</html>"),
                Answer(200, body=b'{"status": "succeeded"'),
                Answer(200, body=b'{"status": "failed", "status": "running"}'),
                Answer(200, body=b"", body_fault="timeout"),
            ]
        )
