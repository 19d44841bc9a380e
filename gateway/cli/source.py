"""`vouchback source`: the senders that the server knows."""

import click

from gateway.cli.client import segment
from gateway.cli.invocation import Invocation, server_options
from gateway.cli.output import print_facts, print_json, print_page
from gateway.cli.rotate import rotate

_SOURCES = {
    "SOURCE": "name",
    "PRESET": "preset",
    "PROJECT": "project",
    "MODE": "mode",
    "PROFILE": "profile",
    "ENDPOINT": "endpoint",
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
    if invocation.format == "table":
        print_facts(found)
    else:
        print_json(found, invocation.format)


source.add_command(rotate)
