"""`vouchback version`."""

from importlib import metadata

import click


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"vouchback {metadata.version('vouchback')}")
