"""How a run of `dev` went: what arrived, and whether each operation ended as the provider says."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import click

from gateway.cli.dev.watch import Tally
from gateway.cli.output import inert, print_json, print_table
from gateway.demo.mischief import WHY
from gateway.demo.provider import DemoProvider
from reconciler.domain.operation import Operation


@dataclass(frozen=True, slots=True)
class Outcome:
    """One operation beside the provider's own record of the job."""

    operation_id: str
    job_id: str
    habit: str
    provider: str
    vouchback: str
    same: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in figures."""

    outcomes: list[Outcome]
    accepted: int
    duplicates: int
    conflicts: int
    refused: Mapping[str, int]
    dropped: int

    @property
    def right(self) -> bool:
        """Whether every operation ended exactly as the provider says."""
        return bool(self.outcomes) and all(outcome.same for outcome in self.outcomes)


def summarize(operations: list[Operation], provider: DemoProvider, tally: Tally) -> Summary:
    """Compare the operations with the provider's record."""
    return Summary(
        outcomes=[_outcome(operation, provider) for operation in operations],
        accepted=tally.accepted,
        duplicates=tally.duplicates,
        conflicts=tally.conflicts,
        refused=dict(tally.refused),
        dropped=sum(sent.callback.dropped for sent in provider.sent),
    )


def _outcome(operation: Operation, provider: DemoProvider) -> Outcome:
    job_id = operation.remote_job_id or ""
    truth = provider.jobs[job_id].at(provider.now()).status
    return Outcome(
        operation.operation_id,
        job_id,
        WHY[provider.habits[job_id]],
        truth,
        operation.state,
        same=operation.state == truth,
    )


_COLUMNS = {
    "JOB": "job_id",
    "THE PROVIDER SAYS": "provider",
    "VOUCHBACK SAYS": "vouchback",
    "SAME": "same",
    "ITS CALLBACKS": "habit",
}


def print_summary(summary: Summary, style: str) -> None:
    """Print a run's end, for people or for programs."""
    if style != "table":
        print_json({**asdict(summary), "right": summary.right})
        return
    rows: list[dict[str, Any]] = [asdict(outcome) for outcome in summary.outcomes]
    click.echo()
    print_table(rows, _COLUMNS)
    refused = ", ".join(f"{inert(name)} {n}" for name, n in sorted(summary.refused.items()))
    same = sum(outcome.same for outcome in summary.outcomes)
    click.echo()
    click.echo(f"operations  {len(rows)}")
    click.echo(f"accepted    {summary.accepted} events")
    click.echo(f"duplicates  {summary.duplicates}")
    click.echo(f"refused     {refused or 'none'}")
    click.echo(f"dropped     {summary.dropped} callbacks that the provider never sent")
    click.echo(f"{same} of {len(rows)} operations ended exactly as the provider's own record says")
