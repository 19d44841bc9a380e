"""`vouchback config`: is the configuration right, and what is it after all."""

import click

from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import Invocation, config_option, format_option, server_options
from gateway.cli.output import inert, print_json, say, to_json


@click.group()
def config() -> None:
    """Check and show the configuration."""


@config.command("check")
@config_option
@click.pass_obj
def check(invocation: Invocation) -> None:
    """Check everything that a start would check, secrets included; exit 78 names each mistake."""
    from gateway.cli.parts import Parts

    loaded = invocation.load()
    parts = Parts.build(loaded)
    count = f"{len(parts.sources.all())} sources, {len(parts.profiles)} profiles"
    say(f"{loaded.where()}: right; {count}")


@config.command("show")
@config_option
@format_option
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Show the configuration in force, defaults and variables included; secrets are references."""
    loaded = invocation.load()
    document = loaded.settings.model_dump(mode="json")
    if invocation.format != "table":
        print_json(document, invocation.format)
        return
    say(f"from {loaded.where()}; relative paths start in {loaded.folder}")
    for line in flat(document):
        click.echo(line)


@config.command("reload")
@server_options
@click.pass_obj
def reload(invocation: Invocation) -> None:
    """Let the server read sources and profiles again; a mistake in them changes nothing."""
    try:
        _, told = invocation.api().post("/v1/config/reload", {})
    except CommandError as error:
        if error.code is Exit.USAGE:
            raise CommandError(error.message, Exit.CONFIGURATION, "nothing was changed") from None
        raise
    if invocation.format != "table":
        print_json(told, invocation.format)
        return
    say(f"read again: {told['sources']} sources")


def flat(document: dict[str, object], above: str = "") -> list[str]:
    """Return a line a setting: its dotted name and its value."""
    lines = []
    for name, value in document.items():
        here = f"{above}.{name}" if above else name
        if isinstance(value, dict) and value:
            lines += flat(value, here)
        elif value is not None:
            lines.append(f"{inert(here)} = {to_json(value)}")
    return lines
