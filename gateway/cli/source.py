"""`vouchback source`: the senders that the server knows."""

import click

from gateway.cli.client import segment
from gateway.cli.invocation import Invocation, server_options
from gateway.cli.output import inert, print_facts, print_json, print_page, print_table, say
from gateway.cli.rotate import rotate

_SOURCES = {
    "SOURCE": "name",
    "PRESET": "preset",
    "PROJECT": "project",
    "MODE": "mode",
    "PROFILE": "profile",
    "ENDPOINT": "endpoint",
}
_DOCUMENTS = {
    "URL": "url",
    "KEYS": "ids",
    "FETCHED": "fetched_at",
    "NEXT": "next_fetch_at",
    "FAILURES": "failures",
    "LAST FAILURE": "failure",
}


@click.group()
def source() -> None:
    """Look at configured senders."""


@source.command("list")
@server_options
@click.pass_obj
def list_sources(invocation: Invocation) -> None:
    """List the sources."""
    page = invocation.api().get("/v1/sources")
    print_page({"next": None, **page}, _SOURCES, invocation.format, "vouchback source list")


@source.command("show")
@click.argument("name", metavar="SOURCE")
@server_options
@click.pass_obj
def show(invocation: Invocation, name: str) -> None:
    """Show one source: endpoint, preset, keys (never their secrets), correlation."""
    found = invocation.api().get(f"/v1/sources/{segment(name)}")
    if invocation.format != "table":
        print_json(found, invocation.format)
        return
    documents = found.pop("published_keys", None)
    print_facts(found)
    if documents is not None:
        say("keys that the provider publishes:")
        print_table(documents, _DOCUMENTS)


@source.command("refresh")
@click.argument("name", metavar="SOURCE")
@server_options
@click.pass_obj
def refresh(invocation: Invocation, name: str) -> None:
    """Have the keys that the provider publishes fetched now, whatever their schedule says."""
    _, told = invocation.api().post(f"/v1/sources/{segment(name)}/refresh-keys", {})
    if invocation.format != "table":
        print_json(told, invocation.format)
        return
    say(f"{told['due']} due now; see: vouchback source show {inert(name)}")


source.add_command(rotate)
