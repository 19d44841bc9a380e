"""`vouchback preset`: the built-in schemes, and help for a scheme of your own.

Works offline, without server or configuration. Exit codes: 0 right, 1 a captured request is
refused, 2 usage, 78 the file is outside the grammar.
"""

import re
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from gateway.cli.captured import capture_options, captured
from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import Invocation, format_option
from gateway.cli.output import inert, print_facts, print_json, print_lines, print_table, say
from verifiers.catalogue import catalogue, counts, entry
from verifiers.grammar_check import mistakes
from verifiers.preset import Preset, load_preset, parse_preset, preset_text

_COLUMNS = {
    "PROVIDER": "provider",
    "KIND": "kind",
    "ALGORITHM": "algorithm",
    "PROOF": "proof",
    "HANDSHAKE": "handshake",
    "STATUS READ": "status_read",
}


@click.group()
def preset() -> None:
    """Signature schemes: the built-in ones, and your own."""


@preset.command("list")
@format_option
@click.pass_context
def list_presets(context: click.Context) -> None:
    """List the built-in presets: what each checks, and how far that is proven.

    Proven are sdk (the provider's own library), published (its own examples) and reference (an
    independent checker); documented ones follow the provider's page.
    """
    style = context.ensure_object(Invocation).format
    entries = catalogue()
    rows, totals = [asdict(row) for row in entries], counts(entries)
    if style == "json":
        print_json({"counts": totals, "items": rows})
    elif style == "ndjson":
        print_lines(rows)
    else:
        print_table(rows, _COLUMNS)
        parts = [f"{totals[name]} {name}" for name in ("sdk", "published", "reference")]
        say(f"{totals['total']} presets, {totals['proven']} proven: {', '.join(parts)}")


@preset.command("show")
@click.argument("name")
@click.option("--source", "as_written", is_flag=True, help="Print the file, to start from it.")
@format_option
@click.pass_context
def show(context: click.Context, name: str, *, as_written: bool) -> None:
    """Show one preset: what is signed, with what, and what is not covered."""
    found = load_preset(name)
    if as_written:
        click.echo(preset_text(found.name), nl=False)
    elif context.ensure_object(Invocation).format == "table":
        print_facts(facts(found))
    else:
        print_json(facts(found))


def facts(found: Preset) -> dict[str, Any]:
    """Return what a person asks about a preset."""
    rule = found.timestamp
    return {
        **asdict(entry(found)),
        "signed": " or ".join(content.template.text for content in found.contents),
        "signature": [place.text for place in found.signature],
        "secret": list(dict.fromkeys(_form(form) for form in found.secrets)),
        "timestamp": None if rule is None else [place.text for place in rule.places],
        "tolerance_s": rule.past_s if rule is not None and rule.judged else None,
        "event_id": [place.text for place in found.event_id],
        "event_type": [place.text for place in found.event_type],
        "covers": _covers(found),
        "retry_horizon_s": found.retry_horizon_s,
        "settings": sorted({name for rule in found.handshakes for name in rule.settings}),
        "acknowledgement": _acknowledgement(found),
    }


def _form(form: Any) -> str:
    parts = form.separator.join(part.upper().replace("_", "-") for part in form.parts)
    return f"{form.form}{f' as {parts}' if parts else ''}"


def _covers(found: Preset) -> list[str]:
    """Return what the signature covers; a person misses what is not here."""
    covered = (("body", found.body_signed), ("time", found.timestamp_signed))
    return [what for what, is_so in (*covered, ("event id", found.id_signed)) if is_so]


def _acknowledgement(found: Preset) -> str:
    ack = found.ack
    body = f" {ack.body.decode('utf-8', 'replace')!r}" if ack.body else ", empty"
    within = f", within {ack.deadline_s} s" if ack.deadline_s else ""
    return f"{ack.status}{body}{within}"


@preset.command("new")
@click.argument("name")
def new(name: str) -> None:
    """Print a scheme of your own to start from, every line of it explained."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", name):
        raise click.UsageError("a name is lower-case letters, digits and hyphens")
    click.echo(_NEW.replace("NAME", name), nl=False)


@preset.command("check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--secret",
    "references",
    multiple=True,
    metavar="REF",
    help="Also verify a captured request: env:NAME, file:PATH or cred:NAME.",
)
@capture_options
@click.option("--at", type=int, help="The time to verify at, unix seconds; default now.")
@format_option
@click.pass_context
def check(
    context: click.Context,
    /,
    file: Path,
    references: tuple[str, ...],
    at: int | None,
    **where: Any,
) -> None:
    """Check a preset's file, and with a secret a captured request against it."""
    text = _text(file)
    table = _table(text, file)
    found = mistakes(table, str(file), text)
    if found:
        raise CommandError("\n".join(found), Exit.CONFIGURATION, _WORDS)
    own = parse_preset(table, str(file), text)
    asked = any(where[name] is not None for name in ("headers", "body", "whole"))
    if not references:
        if asked:
            raise click.UsageError("a captured request needs its --secret")
        covered = ", ".join(_covers(own)) or "nothing: events are weak"
        say(f"{inert(str(file))}: right; the signature covers {covered}")
        return
    from gateway.cli.verification import judge

    judge(context, own, captured(**where), references, at=at)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{file}: not UTF-8", Exit.CONFIGURATION) from None


def _table(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CommandError(f"{file}: {error}", Exit.CONFIGURATION) from None


_WORDS = "every key and word is in docs/reference/preset-grammar.md"
_NEW = """\
# What a reviewer would otherwise miss: what is NOT signed, how the secret is written.
#
# Check it:          vouchback preset check NAME.toml
# Check a request:   vouchback preset check NAME.toml --secret env:SECRET --request captured.http
# Use it: as [sources.NAME.scheme] of the configuration (docs/how-to/private-scheme.md).
# Every key and word: docs/reference/preset-grammar.md
name = "NAME"

# Exactly the bytes that are signed: text, and fields in braces.
signed = "{id}.{timestamp}.{body}"

# For how long the sender goes on retrying; events are remembered at least that long.
retry_horizon_s = 86_400

[signature]
from = "header:x-NAME-signature"
# bare (one value), pairs (t=...,v1=...), list (v1,... v1,...), plain-list, positional
layout = "bare"
prefix = "sha256="
# Exactly as sent: hex, hex-upper, base64, base64url ...
encoding = "hex"

[secret]
algorithm = "hmac-sha256"
# How the secret is written: utf8 (the text itself), base64 or hex.
form = "utf8"

# Only for a time that is signed; leave the table out otherwise.
[timestamp]
from = "header:x-NAME-timestamp"
# s, ms, rfc3339, iso8601, http-date
unit = "s"
tolerance_s = 300
# Whether a retry is signed with a new time.
retry_restamps = true

[event]
# It must name one event, and stay the same when that event is sent again.
id = "header:x-NAME-id"
type = "body:/type"

[ack]
status = 200
"""
