"""`vouchback send`: a signed request to the public listener, or one of its wrong twins.

It signs with the source's own newest key, so it needs the configuration of the server, and the
right to read its secrets.
"""

import re
import time
from dataclasses import dataclass
from secrets import token_hex
from typing import BinaryIO
from urllib.parse import urlsplit

import click

from gateway.cli.client import exchange
from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import (
    Invocation,
    addresses,
    check_url,
    config_option,
    format_option,
)
from gateway.cli.output import inert, print_json, say
from gateway.cli.twins import PARTS, Twin, Wanted, build, reason_of
from gateway.source import Source, build_sources
from reconciler.config import suggest

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_ACCEPTED = range(200, 300)
_REFUSED = 401


class Age(click.ParamType[int]):
    """A length of time, such as `90s` or `10m`, in seconds."""

    name = "age"

    def convert(
        self, value: str | int, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the seconds."""
        found = re.fullmatch(r"([0-9]{1,6})([smhd])", str(value))
        if found is None:
            self.fail(f"{value!r} is no length of time, write 90s, 10m, 2h or 1d", param, ctx)
        return int(found[1]) * _UNITS_S[found[2]]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a request."""

    status: int
    twin: Twin
    reason: str | None

    @property
    def as_expected(self) -> bool:
        """Whether the answer is the one that a correct gateway gives."""
        if self.twin.acceptable:
            return self.status in _ACCEPTED
        return self.status == _REFUSED

    def sentence(self) -> str:
        """Say what the answer means."""
        what = "accepted" if self.status in _ACCEPTED else "refused"
        if self.status in _ACCEPTED or self.status == _REFUSED:
            verdict = "as it should be" if self.as_expected else "and it should NOT be"
        else:
            verdict = "for a reason that has nothing to do with its signature"
        reason = f" [{self.reason}]" if self.reason and self.status == _REFUSED else ""
        return f"{self.status}: {what}{reason}, {verdict}: {self.twin.why}"


@click.command()
@click.argument("source")
@click.argument("event_type", metavar="[TYPE]", required=False)
@click.option("--body", type=click.File("rb"), help="A file, or - for stdin.")
@click.option("--again", is_flag=True, help="The same request twice: the second is a duplicate.")
@click.option("--replay", type=Age(), metavar="10m", help="Signed that long ago.")
@click.option("--tamper", type=click.Choice(PARTS), help="Changed after signing.")
@click.option("--job", metavar="ID", help="Name this job where the source looks for it.")
@click.option("--to", metavar="URL", help="The public listener, if not the configured one.")
@format_option
@config_option
@click.pass_obj
def send(
    invocation: Invocation,
    *,
    source: str,
    event_type: str | None,
    body: BinaryIO | None,
    again: bool,
    replay: int | None,
    tamper: str | None,
    job: str | None,
    to: str | None,
) -> None:
    """Send a signed request for SOURCE, or one that must be refused.

    Exit code 0 says that the gateway answered as it should: 2xx to a genuine request, 401 to a
    forged or replayed one.
    """
    config = invocation.load()
    known = find(build_sources(config), source)
    url = check_url(
        to or addresses(config).get("public") or f"http://{config.settings.public.listen}"
    )
    now = int(time.time())
    wanted = Wanted(
        event_id=f"evt_{token_hex(8)}",
        event_type=event_type or "test.event",
        body=body.read() if body is not None else None,
        job_id=job,
        signed_at=now - (replay or 0),
    )
    twin = build(known, wanted, now, tamper)
    results = [_post(url, known, twin) for _ in range(2 if again else 1)]
    _print(invocation, results)
    if not all(result.as_expected for result in results):
        raise click.exceptions.Exit(Exit.NEGATIVE)


def find(sources: dict[str, Source], name: str) -> Source:
    """Return the source of a name; an unknown one is answered with the nearest known."""
    if name not in sources:
        known = ", ".join(sorted(sources)) or "none is configured"
        raise CommandError(
            f"there is no source {name}{suggest(name, list(sources))}", Exit.NOT_FOUND, known
        )
    return sources[name]


def _post(url: str, source: Source, twin: Twin) -> Sent:
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in twin.request.headers
    ]
    path = urlsplit(source.url).path
    answer = exchange(url, "POST", path, headers=headers, body=twin.request.body)
    return Sent(answer.status, twin, reason_of(source, twin.request, int(time.time())))


def _print(invocation: Invocation, results: list[Sent]) -> None:
    for number, result in enumerate(results):
        if invocation.format == "table":
            click.echo(inert(result.sentence()))
            if number:
                say("the second is a duplicate: acknowledged alike, but no second event")
        else:
            print_json(
                {
                    "status": result.status,
                    "as_expected": result.as_expected,
                    "reason": result.reason,
                    "why": result.twin.why,
                }
            )
    if invocation.format == "table":
        listed = "events list" if results[0].status in _ACCEPTED else "events refused"
        say(f"next: vouchback {listed}")
