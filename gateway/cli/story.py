"""An operation's story in words that a person on call understands, and the words themselves.

`dev` prints the same sentences live. Pure: API documents in, inert text out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import click

from gateway.cli.output import inert, print_facts, text_of

Document = Mapping[str, Any]

_MEANINGS = {
    "pending": "it waits",
    "running": "it runs",
    "succeeded": "it succeeded",
    "failed": "it failed",
    "cancelled": "it was cancelled",
    "not_found": "the provider does not know the job",
    "throttled": "the provider asked us to come back later",
    "unreadable": "the answer told nothing",
    "contradiction": "the answer contradicts what we know",
}
_STATES = {
    "create_pending": "the job is being created",
    "create_unknown": "nobody knows yet whether the job was created",
    "reconciliation": "the provider is being asked whether the job was created",
    "accepted": "the provider has the job; it was not read yet",
    "observing": "the provider is asked until the job ends",
    "cancel_requested": "somebody wants it cancelled",
    "cancelling": "cancelling; the provider is asked until it ends",
    "result_collecting": "it ended well; the result is being collected",
    "result_timed_out": "nobody waits any longer; a person decides",
    "cancellation_unconfirmed": "the cancellation was never confirmed; a person decides",
    "result_unavailable": "it ended well, but there is no result; a person decides",
    "result_validation_failed": "the result is not what was agreed; a person decides",
    "needs_decision": "a person decides",
    "succeeded": "ended: succeeded, confirmed by the provider",
    "failed": "ended: failed, confirmed by the provider",
    "cancelled": "ended: cancelled, confirmed by the provider",
}

_FACTS = (
    "profile",
    "remote_job_id",
    "client_reference",
    "remote_state",
    "created_at",
    "last_read_at",
    "next_at",
    "result_deadline",
    "trace_id",
)


class Moment(NamedTuple):
    """One line of a story. `rank` orders what happened in the same millisecond."""

    at: str
    rank: int
    what: str
    told: str


def clock_of(instant: str) -> str:
    """Return `12:34:56.789` of an RFC 3339 instant in UTC."""
    return inert(instant[11:23])


def moments(story: Mapping[str, Any]) -> list[Moment]:
    """Return everything that happened to an operation, in order."""
    lines = [transition(line) for line in story["history"]]
    lines += [read(seen) for seen in story["observations"]]
    lines += [event(arrived) for arrived in story["events"]]
    return sorted(lines, key=lambda line: (line.at, line.rank))


def event(document: Document) -> Moment:
    """Say that a verified event arrived."""
    kind = text_of(document["event_type"] or "event")
    seen = document["seen"]
    often = f", {seen - 1} more times (dropped as duplicates)" if seen > 1 else ""
    told = f"{kind} from {text_of(document['source'])}{often}: a hint, so a read is due"
    return Moment(document["received_at"], 0, "event", told)


def read(document: Document) -> Moment:
    """Say what a status read showed."""
    said = document["remote_state"]
    meaning = document["meaning"]
    words = _MEANINGS.get(meaning, inert(meaning))
    what = words if said is None else f'"{inert(said)}": {words}'
    detail = document.get("detail")
    if detail:
        what += f" ({inert(detail)})"
    return Moment(document["fetched_at"], 1, "asked", f"the provider {_why(document)}: {what}")


def _why(document: Document) -> str:
    prompted_by = document["prompted_by"]
    if prompted_by == "schedule":
        return "because it was time"
    return f"because of {inert(prompted_by)}"


def transition(document: Document) -> Moment:
    """Say how the state moved, and on what evidence."""
    after = inert(document["to"])
    if document["from"] is None:
        told = f"as {after} by {inert(document['actor'])}: {inert(document['reason'])}"
        return Moment(document["at"], -1, "registered", told)
    told = f"{inert(document['from'])} -> {after} ({inert(document['reason'])})"
    return Moment(document["at"], 2, "moved", told)


def print_story(story: Mapping[str, Any]) -> None:
    """Print an operation for a person: how it stands, its facts, then line by line."""
    operation = story["operation"]
    state = operation["state"]
    click.echo(f"{inert(operation['operation_id'])}  {inert(state)}")
    click.echo(f"{_STATES.get(state, '')}\n".lstrip())
    facts = {name: operation.get(name) for name in _FACTS}
    if operation.get("unreadable_reads"):
        facts["unreadable_reads"] = operation["unreadable_reads"]
    print_facts(facts)
    click.echo()
    _print_moments(moments(story))


def _print_moments(lines: Iterable[Moment]) -> None:
    for line in lines:
        click.echo(f"{clock_of(line.at)}  {line.what.ljust(10)}  {line.told}")
