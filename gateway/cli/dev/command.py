"""`vouchback dev`: the first five minutes, with nothing to configure."""

import asyncio
import datetime as dt
import os
import sys
from random import Random, SystemRandom
from typing import Any, cast

import click

from gateway.cli.dev.folder import USUAL, load, prepare
from gateway.cli.dev.run import Script, Stage, play
from gateway.cli.dev.summary import print_summary
from gateway.cli.dev.watch import Line
from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import DEV_CONFIG, Invocation, config_option, format_option
from gateway.cli.output import say
from gateway.config import Config, find_file
from gateway.http.server import ListenError
from reconciler import logs

_COLOURS = {
    "accepted": "green",
    "refused": "red",
    "duplicate": "yellow",
    "conflict": "yellow",
    "registered": "blue",
    "asked": "cyan",
    "moved": "magenta",
}


@click.command()
@click.option("--once", is_flag=True, help="End with a summary when the operations have ended.")
@click.option("--operations", type=click.IntRange(1, 1000), default=8, show_default=True)
@click.option("--port", type=click.IntRange(1, 65_533), help="Use this port and the next two.")
@click.option("--seed", type=int, help="The same demo jobs again.")
@format_option
@config_option
@click.pass_obj
def dev(
    invocation: Invocation, *, once: bool, operations: int, port: int | None, seed: int | None
) -> None:
    """Run everything on this machine with a demo provider that forges, repeats and drops callbacks.

    Configuration and keys are written to ./.vouchback once. Nothing listens beyond loopback.
    """
    if invocation.config is None:
        prepare(USUAL)
    config, ports = load(invocation.config, port)
    logs.setup(cast("Any", config.settings.log.format), config.settings.log.level)
    seed = SystemRandom().randrange(10**6) if seed is None else seed
    # The demo's own dice: they decide which lies are told, nothing that must be secret.
    script = Script(operations, once, Random(seed))  # noqa: S311
    _greet(config, seed)
    tell, done = _teller(invocation.format), _advise
    try:
        summary = asyncio.run(play(config, ports, script, tell, done))
    except ListenError as error:
        raise CommandError(str(error), Exit.CONFIGURATION, "the same again") from None
    if once or invocation.format != "table":
        print_summary(summary, invocation.format)
    if once and not summary.right:
        raise click.exceptions.Exit(Exit.NEGATIVE)


def _greet(config: Config, seed: int) -> None:
    settings = config.settings
    say(f"configuration  {config.where()}")
    say(f"public         {settings.public.url}/in/demo")
    say(f"internal       http://{settings.internal.listen}")
    say(f"demo provider  {settings.profiles['demo'].base_url} (--seed {seed})")
    say()


def _teller(style: str) -> Any:
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def tell(line: Line) -> None:
        at = dt.datetime.fromtimestamp(line.at / 1000, dt.UTC)
        what = line.what.ljust(10)
        if coloured:
            what = click.style(what, fg=_COLOURS.get(line.what))
        text = f"{at:%H:%M:%S}.{line.at % 1000:03d}  {what}  {line.job.ljust(14)}  {line.told}"
        click.echo(text, err=style != "table")

    return tell


def _advise(stage: Stage) -> None:
    """Say what to try next, with commands that work as they stand."""
    command = "vouchback" if find_file(None) is None else f"vouchback --config {DEV_CONFIG}"
    job = next(iter(stage.provider.jobs))
    api = f"http://{stage.config.settings.internal.listen}"
    say()
    say("every operation has ended. In another terminal, in this folder:")
    for tried, why in (
        ("send demo --tamper body", "a forged request; watch it here"),
        ("send demo --replay 10m", "a captured one, played again"),
        (f"send demo job.failed --job {job}", "genuine, and still only a hint"),
        (f"ops show {stage.operations[0]}", "the story of an operation"),
        ("events list", "what was believed; `events refused` has the rest"),
    ):
        say(f"  {command} {tried.ljust(44)} {why}")
    say(f'  curl -H "Authorization: Bearer $(cat {_shown(stage)})" {api}/v1/operations')
    say("Ctrl-C ends it; the ledger stays.")
    say()


def _shown(stage: Stage) -> str:
    return os.path.relpath(stage.running.token_file)
