"""A demo job: when it is in which state, decided when it is created.

Pure values; the state at an instant is a function of the instant, so nothing has to tick.
"""

from dataclasses import dataclass, replace
from random import Random

#: The states of a job that has ended, as often as each is drawn.
_ENDS = ("succeeded", "succeeded", "succeeded", "failed", "cancelled")
_QUEUED_MS = (150, 500)
_RUNNING_MS = (900, 2200)


@dataclass(frozen=True, slots=True)
class Stage:
    """From when on (milliseconds since the epoch) the job is in a state."""

    at: int
    status: str


@dataclass(frozen=True, slots=True)
class Job:
    """One job of the demo provider."""

    job_id: str
    reference: str | None
    queued: Stage
    running: Stage
    ended: Stage

    def at(self, now: int) -> Stage:
        """Return the stage that the job is in at `now`."""
        past = [stage for stage in (self.queued, self.running, self.ended) if stage.at <= now]
        return past[-1] if past else self.queued

    def ending(self, status: str) -> "Job":
        """Return the same job with another end."""
        return replace(self, ended=replace(self.ended, status=status))


def make_job(job_id: str, reference: str | None, now: int, random: Random) -> Job:
    """Return a job that starts at `now` and ends a second or few later."""
    running_at = now + random.randint(*_QUEUED_MS)
    ended_at = running_at + random.randint(*_RUNNING_MS)
    return Job(
        job_id,
        reference,
        Stage(now, "queued"),
        Stage(running_at, "running"),
        Stage(ended_at, random.choice(_ENDS)),
    )
