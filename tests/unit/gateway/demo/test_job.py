"""A demo job's states are a function of time."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.job import make_job

START = 1_796_000_000_000


@given(st.integers(), st.lists(st.integers(0, 10_000), max_size=20))
def test_a_job_goes_forward_and_ends(seed: int, moments: list[int]) -> None:
    """Queued, running, ended: never back, and ended for good within a few seconds."""
    job = make_job("job_1", None, START, Random(seed))  # noqa: S311
    order = ["queued", "running", job.ended.status]
    seen = [order.index(job.at(START + moment).status) for moment in sorted(moments)]

    assert seen == sorted(seen)
    assert job.at(START - 1).status == "queued"
    assert job.at(START + 4000).status in {"succeeded", "failed", "cancelled"}


def test_the_same_seed_is_the_same_job() -> None:
    """Randomness is a parameter."""
    first, second = (make_job("job_1", "r", START, Random(7)) for _ in range(2))  # noqa: S311

    assert first == second
