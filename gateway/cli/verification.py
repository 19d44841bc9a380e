"""`vouchback verify`, `sign` and `vectors`: verification offline, without server or ledger.

Secrets are references (env:NAME, file:PATH, cred:NAME), never values: others on the machine can
read command lines. Exit codes: 0 accepted, 1 refused or a vector failed, 2 usage.
"""

import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from gateway.cli.captured import capture_options, captured, read
from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import Invocation, format_option
from gateway.cli.output import inert, print_json, print_lines
from verifiers.explain import explain as explain_request
from verifiers.keys import KeyRing, SecretError, build_key_ring
from verifiers.preset import Preset, PresetError, load_preset
from verifiers.request import RawRequest
from verifiers.sign import sign as sign_body
from verifiers.vectors import VectorError, failures, parse_vectors
from verifiers.verdict import Rejected, State, Verified
from verifiers.verify import verify as verify_request

_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_MARKS = {State.PASSED: "ok", State.FAILED: "FAILED", State.NOT_REACHED: "-"}


@click.command()
@click.option("--preset", "name", required=True, help="The signature scheme, such as stripe.")
@click.option(
    "--secret",
    "references",
    required=True,
    multiple=True,
    metavar="REF",
    help="env:NAME, file:PATH or cred:NAME; may be repeated.",
)
@click.option("--key-id", "key_ids", multiple=True, help="A name for each secret, in order.")
@capture_options
@click.option("--at", type=int, help="The time to verify at, unix seconds; default now.")
@click.option("--explain", is_flag=True, help="Say what would mend it.")
@format_option
@click.pass_context
def verify(  # noqa: PLR0917  # one parameter an option
    context: click.Context,
    /,
    name: str,
    references: tuple[str, ...],
    key_ids: tuple[str, ...],
    at: int | None,
    explain: bool,
    **where: Any,
) -> None:
    """Say whether a captured request is genuine, check by check."""
    request = captured(**where)
    judge(context, _preset(name), request, references, key_ids, at=at, explain=explain)


def judge(
    context: click.Context,
    preset: Preset,
    request: RawRequest,
    references: tuple[str, ...],
    key_ids: tuple[str, ...] = (),
    *,
    at: int | None = None,
    explain: bool = True,
) -> None:
    """Print the verdict on a request, and what would mend it; a refusal ends with exit code 1."""
    secrets = tuple(_secret(reference) for reference in references)
    keys = _keys(preset, secrets, key_ids)
    now = int(time.time()) if at is None else at
    verdict = verify_request(request, preset, keys, now)
    report = _report(verdict, preset)
    if explain:
        found = explain_request(request, preset, keys, now, secrets)
        report["findings"] = [{"seen": finding.seen, "fix": finding.fix} for finding in found]
    _print_report(report, context.ensure_object(Invocation).format)
    if isinstance(verdict, Rejected):
        context.exit(Exit.NEGATIVE)


def _report(verdict: Verified | Rejected, preset: Preset) -> dict[str, Any]:
    report: dict[str, Any] = {"verdict": "accepted", "preset": preset.name}
    if isinstance(verdict, Rejected):
        report |= {"verdict": "refused", "reason": str(verdict.reason)}
    else:
        report |= {
            "key_id": verdict.key_id,
            "event_key": str(verdict.event_key),
            "event_id": verdict.event_id,
            "event_type": verdict.event_type,
            "timestamp": verdict.timestamp,
            "flags": [str(flag) for flag in verdict.flags],
        }
    report["checks"] = [
        {"check": str(line.check), "state": str(line.state)} for line in verdict.checks(preset)
    ]
    return report


def _print_report(report: dict[str, Any], style: str) -> None:
    if style == "json":
        print_json(report)
        return
    if style == "ndjson":
        print_lines([report])
        return
    reason = f": {report['reason']}" if "reason" in report else ""
    click.echo(f"{report['verdict']}{reason}")
    for line in report["checks"]:
        click.echo(f"  {_MARKS[State(line['state'])]:<7} {line['check']}")
    for key in ("key_id", "event_key", "event_id", "event_type", "timestamp"):
        if report.get(key) is not None:
            click.echo(f"{key:<10}  {inert(str(report[key]))}")
    if report.get("flags"):
        click.echo(f"{'flags':<10}  {', '.join(report['flags'])}")
    for finding in report.get("findings", ()):
        click.echo(f"seen: {inert(finding['seen'])}")
        click.echo(f"  fix: {inert(finding['fix'])}")


@click.command()
@click.option("--preset", "name", required=True, help="The signature scheme, such as stripe.")
@click.option(
    "--secret", "reference", required=True, metavar="REF", help="env:NAME, file:PATH or cred:NAME."
)
@click.option("--body", required=True, type=_INPUT, help="The raw body; - is stdin.")
@click.option("--at", type=int, help="The time of the signature, unix seconds; default now.")
@click.option(
    "--id",
    "event_id",
    default="evt_1",
    show_default=True,
    help="The event id, where a header carries it.",
)
@click.option("--type", "event_type", help="The event type, where a header carries it.")
@click.option("--curl", "url", metavar="URL", help="Print the command that sends it instead.")
@format_option
@click.pass_context
def sign(  # noqa: PLR0917  # one parameter an option
    context: click.Context,
    name: str,
    reference: str,
    body: Path,
    at: int | None,
    event_id: str,
    event_type: str | None,
    url: str | None,
) -> None:
    """Print the headers that make a body acceptable, one a line."""
    preset = _preset(name)
    keys = _keys(preset, (_secret(reference),), ())
    now = int(time.time()) if at is None else at
    try:
        pairs = sign_body(
            read(body),
            preset,
            keys,
            now,
            event_id=event_id,
            event_type=event_type,
            url=url or "",
        )
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from None
    headers = [(header.decode(), value.decode("latin-1")) for header, value in pairs]
    if url is not None:
        click.echo(_curl(headers, body, url))
    elif context.ensure_object(Invocation).format != "table":
        print_json(headers, context.ensure_object(Invocation).format)
    else:
        for header, value in headers:
            click.echo(f"{header}: {value}")


def _curl(headers: list[tuple[str, str]], body: Path, url: str) -> str:
    given = [option for header, value in headers for option in ("-H", f"{header}: {value}")]
    return shlex.join(["curl", "-sS", *given, "--data-binary", f"@{body}", url])


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="FILE...",
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--by-provider", is_flag=True, help="One line a file before the last one.")
@click.pass_context
def vectors(context: click.Context, paths: tuple[Path, ...], by_provider: bool) -> None:
    """Run vector files, and folders of them; the last line counts."""
    passed = failed = 0
    for file in _vector_files(paths):
        try:
            found = parse_vectors(file.read_text("utf-8"), str(file))
        except (VectorError, UnicodeDecodeError) as error:
            click.echo(inert(str(error)))
            failed += 1
            continue
        wrong = list(failures(found))
        for vector, failure in wrong:
            click.echo(f"{inert(f'{file}: {vector.name}: {failure}')}")
        passed += len(found) - len(wrong)
        failed += len(wrong)
        if by_provider:
            click.echo(inert(f"{file.stem}: {len(found) - len(wrong)} passed, {len(wrong)} failed"))
    click.echo(f"{passed} passed, {failed} failed")
    if failed:
        context.exit(Exit.NEGATIVE)
    if not passed:
        raise CommandError("no vector was found", Exit.USAGE)


def _vector_files(paths: tuple[Path, ...]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.json"))
        else:
            yield path


def _preset(name: str) -> Preset:
    try:
        return load_preset(name)
    except PresetError as error:
        raise click.UsageError(str(error)) from None


def _secret(reference: str) -> str:
    from reconciler.config import ConfigError, resolve_secret

    try:
        return resolve_secret(reference)
    except ConfigError as error:
        raise click.UsageError(f"--secret: {error}") from None


def _keys(preset: Preset, secrets: tuple[str, ...], key_ids: tuple[str, ...]) -> KeyRing:
    """Return the ring; an example's secret may be short here, where nothing is protected by it."""
    if len(key_ids) > len(secrets):
        raise click.UsageError("more --key-id than --secret")
    names = [*key_ids, *(f"key-{i}" for i in range(len(key_ids) + 1, len(secrets) + 1))]
    entries = [(name, text, None, None) for name, text in zip(names, secrets, strict=True)]
    try:
        return build_key_ring(preset, entries, allow_short=True)
    except SecretError as error:
        raise click.UsageError(str(error)) from None
