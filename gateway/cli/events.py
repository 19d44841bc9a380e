"""`vouchback events`: what arrived and was believed, and what was refused."""

import sys
from typing import Any

import click

from gateway.cli.client import segment
from gateway.cli.invocation import Invocation, page_options, server_options
from gateway.cli.output import inert, print_facts, print_json, print_page, print_table, say
from gateway.cli.shown import checks_of, headers_of

_EVENTS = {
    "RECEIVED": "received_at",
    "EVENT": "event_id",
    "SOURCE": "source",
    "TYPE": "event_type",
    "OPERATION": "operation_id",
    "SEEN": "seen",
    "FLAGS": "flags",
}
_REFUSALS = {
    "AT": "at",
    "REFUSAL": "refusal_id",
    "SOURCE": "source",
    "REASON": "reason",
    "METHOD": "method",
    "BYTES": "body_bytes",
    "PEER": "peer",
}
_CONFLICTS = {"AT": "at", "CONFLICT": "conflict_id", "KEY": "key_id", "DIGEST": "content_digest"}


@click.group()
def events() -> None:
    """Look at what arrived: verified events, and requests that were refused."""


@events.command("list")
@click.option("--source", help="Only this source.")
@click.option("--type", "event_type", help="Only this type.")
@click.option("--operation", help="Only events of this operation.")
@click.option("--parked", is_flag=True, help="Only events whose operation is not known yet.")
@page_options
@server_options
@click.pass_obj
def list_events(
    invocation: Invocation,
    *,
    source: str | None,
    event_type: str | None,
    operation: str | None,
    parked: bool,
    limit: int,
    before: str | None,
) -> None:
    """List events, newest first."""
    page = invocation.api().page(
        "/v1/events",
        limit,
        source=source,
        type=event_type,
        operation=operation,
        parked="true" if parked else None,
        before=before,
    )
    print_page(page, _EVENTS, invocation.format, "vouchback events list")


@events.command("refused")
@click.option("--source", help="Only this source.")
@click.option("--reason", help="Only this reason, e.g. signature_mismatch.")
@page_options
@server_options
@click.pass_obj
def refused(
    invocation: Invocation, source: str | None, reason: str | None, limit: int, before: str | None
) -> None:
    """List refused requests with their reasons, newest first.

    Of a flood only the first few of a minute are kept whole.
    """
    page = invocation.api().page("/v1/refusals", limit, source=source, reason=reason, before=before)
    print_page(page, _REFUSALS, invocation.format, "vouchback events refused")


@events.command("show")
@click.argument("event_id", metavar="EVENT")
@server_options
@click.pass_obj
def show(invocation: Invocation, event_id: str) -> None:
    """Show one event: what it said, how it was verified, what contradicts it."""
    api = invocation.api()
    path = f"/v1/events/{segment(event_id)}"
    event = api.get(path)
    conflicts = api.get(f"{path}/conflicts")["items"]
    if invocation.format != "table":
        print_json({**event, "conflicts": conflicts}, invocation.format)
        return
    _print_event(event)
    for line in checks_of(invocation, event["source"]):
        click.echo(f"  {line}")
    for name, value in headers_of(event):
        click.echo(f"  {name}: {value}")
    if conflicts:
        say("the same key came with other content later; the first one stands:")
        print_table(conflicts, _CONFLICTS)
    say(f"body: vouchback events raw {inert(event['event_id'])}")


def _print_event(event: dict[str, Any]) -> None:
    hidden = ("headers",)
    print_facts({name: value for name, value in event.items() if name not in hidden})


@events.command("raw")
@click.argument("event_id", metavar="EVENT")
@server_options
@click.pass_obj
def raw(invocation: Invocation, event_id: str) -> None:
    """Write the body exactly as it arrived; a terminal gets it with control characters escaped."""
    body = invocation.api().get_bytes(f"/v1/events/{segment(event_id)}/body")
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(body)
        return
    lines = body.decode("utf-8", "backslashreplace").split("\n")
    click.echo("\n".join(inert(line) for line in lines))
