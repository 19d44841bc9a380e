"""`vouchback serve`: the gateway and the reconciler, until a signal."""

import asyncio
import signal
from typing import Any, cast

import click
import uvloop

from gateway.cli.invocation import Invocation, config_option
from gateway.cli.output import say
from gateway.cli.runtime import Running, run
from gateway.config import Config, load_config
from reconciler import logs


@click.command()
@config_option
@click.pass_obj
def serve(invocation: Invocation) -> None:
    """Start the gateway and the reconciler; SIGTERM or Ctrl-C finishes what was accepted."""
    # Not `invocation.load()`: a server is configured on purpose, never by what `dev` left behind.
    config = load_config(invocation.config)
    logs.setup(cast("Any", config.settings.log.format), config.settings.log.level)
    uvloop.run(_serve(config))


async def _serve(config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await run(config, stop=stop, on_ready=_ready)


def _ready(running: Running) -> None:
    say(f"public    http://{running.public[0]}:{running.public[1]}/in/SOURCE")
    say(f"internal  http://{running.internal[0]}:{running.internal[1]}")
    say(f"token     {running.token_file}")
