"""What the demo provider's callbacks do wrong, on purpose and with a reason.

A plan is the whole list of callbacks for one job, made when the job is made. Signing is written out
here instead of borrowed from `verifiers`: this stands for somebody else's system, and shares no
code with what it is to try.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from gateway.demo.job import Job, Stage
from gateway.demo.moment import rfc3339


class Habit(StrEnum):
    """How the callbacks of one job misbehave."""

    HONEST = "honest"
    FORGED = "forged"
    REPEATED = "repeated"
    STALE = "stale"
    REORDERED = "reordered"
    DROPPED = "dropped"
    BOASTFUL = "boastful"


#: One round through every habit; the first two show an accepted and a refused event at once.
DECK = tuple(Habit)

WHY: Mapping[Habit, str] = {
    Habit.HONEST: "each change was told once, in order",
    Habit.FORGED: "somebody without the key claimed an early success",
    Habit.REPEATED: "the end was told three times, as if nobody had answered",
    Habit.STALE: "a callback signed ten minutes ago was played again",
    Habit.REORDERED: "the end was told before the start",
    Habit.DROPPED: "nothing was told at all; only asking finds the end",
    Habit.BOASTFUL: "a genuine callback claimed a success that never came",
}

_STALE_S = 600
_LATE_MS = 400
_AGAIN_MS = 150


@dataclass(frozen=True, slots=True)
class Callback:
    """One callback of a plan. `at` is in milliseconds, `signed_at` in seconds since the epoch."""

    at: int
    habit: Habit
    job_id: str
    event_id: str
    event_type: str
    body: bytes
    signed_at: int
    #: Signed with a key that is not the provider's.
    forged: bool = False
    #: Never sent.
    dropped: bool = False

    def headers(self, secret: bytes) -> list[tuple[str, str]]:
        """Return the headers, signed in the timestamp-dot-body form (mission.md, D1)."""
        key = b"not the key of this provider, nor of any other" if self.forged else secret
        content = b"%d." % self.signed_at + self.body
        signature = hmac.new(key, content, hashlib.sha256).hexdigest()
        return [
            ("Content-Type", "application/json"),
            ("X-Webhook-Event", self.event_type),
            ("X-Webhook-Timestamp", str(self.signed_at)),
            ("X-Webhook-Signature", f"sha256={signature}"),
        ]


def plan(job: Job, habit: Habit, random: Random) -> list[Callback]:
    """Return the callbacks for a job, in the order of their times."""
    running = _tell(job, job.running, habit, random)
    ended = _tell(job, job.ended, habit, random)
    # Half way to the end: whatever is claimed now is not true yet.
    early = replace(job.ended, at=(job.running.at + job.ended.at) // 2, status="succeeded")
    claim = _tell(job, early, habit, random)
    planned = [running, ended]
    match habit:
        case Habit.HONEST:
            pass
        case Habit.FORGED:
            planned.append(replace(claim, forged=True))
        case Habit.REPEATED:
            planned += [replace(ended, at=ended.at + n * _AGAIN_MS) for n in (1, 2)]
        case Habit.STALE:
            planned.append(replace(claim, signed_at=claim.signed_at - _STALE_S))
        case Habit.REORDERED:
            planned = [ended, replace(running, at=ended.at + _LATE_MS)]
        case Habit.DROPPED:
            planned = [replace(callback, dropped=True) for callback in planned]
        case Habit.BOASTFUL:
            planned.append(claim)
    return sorted(planned, key=lambda callback: callback.at)


def _tell(job: Job, stage: Stage, habit: Habit, random: Random) -> Callback:
    event_id = f"evt_{random.randbytes(8).hex()}"
    event_type = f"job.{stage.status}"
    document = {
        "event_id": event_id,
        "event": event_type,
        "created_at": rfc3339(stage.at),
        "data": {"job_id": job.job_id, "reference": job.reference, "status": stage.status},
    }
    body = json.dumps(document, separators=(",", ":")).encode()
    signed_at = stage.at // 1000
    return Callback(stage.at, habit, job.job_id, event_id, event_type, body, signed_at)
