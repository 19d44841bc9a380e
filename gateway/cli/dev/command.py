"""`vouchback dev`: the first five minutes, with nothing to configure."""

import asyncio
import datetime as dt
import os
import sys
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any, cast

import click

from gateway.cli.dev.folder import USUAL, load, prepare
from gateway.cli.dev.run import play
from gateway.cli.dev.stage import Script, Stage
from gateway.cli.dev.summary import Summary, print_summary
from gateway.cli.dev.watch import Line
from gateway.cli.errors import Exit
from gateway.cli.invocation import DEV_CONFIG, Invocation, config_option, format_option
from gateway.cli.output import say
from gateway.config import Config, find_file
from gateway.http.server import ListenError, bind
from reconciler import logs

_TRIES = 5
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
    seed = SystemRandom().randrange(10**6) if seed is None else seed
    summary = _play(invocation, port, lambda: _script(operations, seed, once=once))
    if once or invocation.format != "table":
        print_summary(summary, invocation.format)
    if once and not summary.right:
        raise click.exceptions.Exit(Exit.NEGATIVE)


def _script(operations: int, seed: int, *, once: bool) -> Script:
    # The demo's own dice: they decide which lies are told, nothing that must be secret.
    return Script(operations, once, seed, Random(seed))  # noqa: S311


def _play(invocation: Invocation, port: int | None, script: Callable[[], Script]) -> Summary:
    """Run; when somebody took a port that was free a moment ago, run with other ones."""
    for tries_left in reversed(range(_TRIES)):
        config, ports = load(invocation.config, port)
        logs.setup(cast("Any", config.settings.log.format), config.settings.log.level)
        try:
            with bind("127.0.0.1", ports.provider, setting="profiles.demo.base_url") as demo:
                voice = _Voice(invocation.format, script())
                return asyncio.run(play(config, demo, voice.script, voice))
        except ListenError:
            if port is not None or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


class _Voice:
    """Tells a person, or a program, what happens."""

    def __init__(self, style: str, script: Script) -> None:
        self.script = script
        self._to_stderr = style != "table"
        self._coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def started(self, config: Config) -> None:
        """Say where everything is."""
        settings = config.settings
        say(f"configuration  {config.where()}")
        say(f"public         {settings.public.url}/in/demo")
        say(f"internal       http://{settings.internal.listen}")
        say(f"demo provider  {settings.profiles['demo'].base_url} (--seed {self.script.seed})")
        say()

    def step(self, line: Line) -> None:
        """Print one line."""
        at = dt.datetime.fromtimestamp(line.at / 1000, dt.UTC)
        what = line.what.ljust(10)
        if self._coloured:
            what = click.style(what, fg=_COLOURS.get(line.what))
        text = f"{at:%H:%M:%S}.{line.at % 1000:03d}  {what}  {line.job.ljust(14)}  {line.told}"
        click.echo(text, err=self._to_stderr)

    def ended(self, stage: Stage) -> None:
        """Say what to try next, with commands that work as they stand."""
        command = "vouchback" if find_file(None) is None else f"vouchback --config {DEV_CONFIG}"
        job = next(iter(stage.provider.jobs))
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
        token = os.path.relpath(stage.running.token_file)
        api = f"http://{stage.config.settings.internal.listen}/v1/operations"
        say(f'  curl -H "Authorization: Bearer $(cat {token})" {api}')
        say("Ctrl-C ends it; the ledger stays.")
        say()
