"""What the demo's callbacks do wrong, judged by the verification that they are to try."""

import json
from random import Random

import pytest

from gateway.demo.job import Job, make_job
from gateway.demo.mischief import WHY, Callback, Habit, plan
from verifiers.keys import build_key_ring
from verifiers.preset import load_preset
from verifiers.request import RawRequest
from verifiers.verdict import Rejected, Verified
from verifiers.verify import verify

START = 1_796_000_000_000
SECRET = "a secret of the demo provider, long enough"
PRESET = load_preset("timestamp-body")
KEYS = build_key_ring(PRESET, [("demo-1", SECRET, None, None)])


def job() -> Job:
    """Return a job."""
    return make_job("job_1", "order-1", START, Random(1))  # noqa: S311


def planned(habit: Habit) -> list[Callback]:
    """Return the callbacks of a job."""
    return plan(job(), habit, Random(2))  # noqa: S311


def judge(callback: Callback) -> Verified | Rejected:
    """Return the verdict on a callback at the moment at which it is sent."""
    headers = callback.headers(SECRET.encode())
    pairs = tuple((name.lower().encode(), value.encode()) for name, value in headers)
    request = RawRequest("POST", "http://127.0.0.1/in/demo", pairs, callback.body)
    return verify(request, PRESET, KEYS, callback.at // 1000)


def reasons(habit: Habit) -> list[str]:
    """Return the verdicts on what a habit sends, in its order."""
    verdicts = [judge(callback) for callback in planned(habit) if not callback.dropped]
    return [v.reason if isinstance(v, Rejected) else "accepted" for v in verdicts]


def types(habit: Habit) -> list[str]:
    """Return the event types of a habit in the order in which they are sent."""
    return [callback.event_type for callback in planned(habit)]


@pytest.mark.parametrize(
    ("habit", "expected"),
    [
        (Habit.HONEST, ["accepted"] * 2),
        (Habit.FORGED, ["accepted", "signature_mismatch", "accepted"]),
        (Habit.REPEATED, ["accepted"] * 4),
        (Habit.STALE, ["accepted", "timestamp_too_old", "accepted"]),
        (Habit.REORDERED, ["accepted"] * 2),
        (Habit.DROPPED, []),
        (Habit.BOASTFUL, ["accepted"] * 3),
    ],
)
def test_each_habit_is_judged_as_it_deserves(habit: Habit, expected: list[str]) -> None:
    """What the provider signed is genuine; what it forges or replays is refused for that reason."""
    assert reasons(habit) == expected


def test_a_repeat_is_the_same_event() -> None:
    """A repeated callback keeps id and body, so that it is a duplicate and no conflict."""
    ends = planned(Habit.REPEATED)[1:]

    assert len({(callback.event_id, callback.body) for callback in ends}) == 1


def test_reordered_means_the_end_comes_first() -> None:
    """The start of the work is told after its end."""
    assert types(Habit.REORDERED) == [f"job.{job().ended.status}", "job.running"]


def test_a_boast_is_told_while_the_job_runs() -> None:
    """A genuine claim of success is sent while the provider's own record says running."""
    claim = planned(Habit.BOASTFUL)[1]

    assert json.loads(claim.body)["data"]["status"] == "succeeded"
    assert job().at(claim.at).status == "running"


def test_every_habit_has_its_reason() -> None:
    """What goes wrong on purpose can be explained afterwards."""
    assert set(WHY) == set(Habit)
