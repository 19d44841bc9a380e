"""The end of a run of `dev`: every operation beside what the provider says."""

import json
from random import Random

import pytest

from gateway.cli.dev.summary import Summary, print_summary, summarize
from gateway.cli.dev.watch import Tally
from gateway.demo.provider import DemoProvider
from reconciler.domain.operation import Operation, State
from tests.support import builders
from tests.support.builders import NOW


async def _nowhere(_headers: list[tuple[str, str]], _body: bytes) -> int:
    return 200


class World:
    """A provider with one job that has ended."""

    def __init__(self) -> None:
        self.now = NOW
        self.provider = DemoProvider(
            secret=b"s",
            post=_nowhere,
            clock=lambda: self.now,
            random=Random(1),  # noqa: S311
        )
        self.job = self.provider.create(None)
        self.now = self.job.ended.at

    def operation(self, state: str) -> Operation:
        """Return the job's operation in a state."""
        return builders.operation(remote_job_id=self.job.job_id, state=State(state))

    def summary(self, *states: str) -> Summary:
        """Summarize operations that stand in these states."""
        operations = [self.operation(state) for state in states]
        return summarize(operations, self.provider, Tally())


def test_the_provider_is_the_truth() -> None:
    """A run is right only if each operation ended exactly as the provider's own record says."""
    world = World()
    truth = world.job.ended.status
    wrong = next(end for end in ("succeeded", "failed", "cancelled") if end != truth)

    assert world.summary(truth).right
    assert not world.summary(truth, wrong).right
    assert not world.summary(wrong).right


@pytest.mark.parametrize("state", ["accepted", "observing", "needs_decision"])
def test_what_has_not_ended_is_not_right(state: str) -> None:
    """An operation that is still open when time is up makes the run fail."""
    assert not World().summary(state).right


def test_nothing_at_all_is_not_right() -> None:
    """A run without operations proves nothing."""
    assert not World().summary().right


def test_a_summary_for_programs_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON holds every figure and the verdict."""
    world = World()
    print_summary(world.summary(world.job.ended.status), "json")
    document = json.loads(capsys.readouterr().out)

    assert document["right"] is True
    assert {"accepted", "duplicates", "refused", "dropped", "outcomes"} <= set(document)
