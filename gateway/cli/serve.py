"""`vouchback serve`: the gateway and the reconciler, until a signal."""

import asyncio
import signal
from typing import Any, cast

import click
import uvloop

from gateway.cli.invocation import Invocation, config_option
from gateway.cli.output import say
from gateway.cli.runtime import ROLES, Running, run
from gateway.config import Config, load_config
from reconciler import logs
from reconciler.config import ConfigError


@click.command()
@config_option
@click.option(
    "--role",
    "roles",
    type=click.Choice(sorted(ROLES)),
    multiple=True,
    help="Only this part of the work (several processes on one Redis or Valkey).",
)
@click.pass_obj
def serve(invocation: Invocation, roles: tuple[str, ...]) -> None:
    """Start the gateway and the reconciler; SIGTERM or Ctrl-C finishes what was accepted."""
    # Not `invocation.load()`: a server is configured on purpose, never by what `dev` left behind.
    config = load_config(invocation.config)
    logs.setup(cast("Any", config.settings.log.format), config.settings.log.level)
    chosen = frozenset(roles) or ROLES
    if chosen != ROLES and not config.settings.storage.is_shared:
        raise ConfigError(
            f"{config.where()}: storage.url is a SQLite file, which one process owns;"
            " start it without --role, or give redis://… to share the ledger"
        )
    uvloop.run(_serve(config, chosen))


async def _serve(config: Config, roles: frozenset[str]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await run(config, stop=stop, on_ready=_ready, roles=roles)


def _ready(running: Running) -> None:
    if running.public is not None:
        say(f"public    http://{running.public[0]}:{running.public[1]}/in/SOURCE")
    say(f"internal  http://{running.internal[0]}:{running.internal[1]}")
    say(f"token     {running.token_file}")
