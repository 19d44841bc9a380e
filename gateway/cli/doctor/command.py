"""`vouchback doctor`: whether this node fits its configuration, and its store this node.

It changes nothing but for one write without meaning, and only where no server owns the ledger.
"""

import time
from collections.abc import Iterator

import click

from gateway.cli.doctor import node
from gateway.cli.errors import Exit
from gateway.cli.invocation import Invocation, config_option, format_option
from gateway.cli.output import inert, print_json, print_lines
from gateway.config import Config
from reconciler.config import ConfigError, resolve_secret
from reconciler.storage.finding import Finding, Level


@click.command()
@config_option
@format_option
@click.pass_context
def doctor(context: click.Context) -> None:
    """Check node, store and configuration, one line a check; exit 1 if any failed."""
    invocation: Invocation = context.obj
    found = list(_examine(invocation))
    failed = any(finding.level is Level.FAILED for finding in found)
    _print(found, invocation.format, failed=failed)
    if failed:
        context.exit(int(Exit.NEGATIVE))


def _examine(invocation: Invocation) -> Iterator[Finding]:
    try:
        config = invocation.load()
    except ConfigError as error:
        for line in str(error).splitlines():
            yield Finding("configuration", Level.FAILED, line)
        return
    yield from node.configuration(config)
    yield from node.folder(config)
    yield from node.urls(config)
    yield from node.keep_alive(config)
    yield from node.listeners(config)
    yield from _ledger(config)


def _ledger(config: Config) -> Iterator[Finding]:
    section = config.settings.storage
    if not section.is_shared:
        from reconciler.storage.sqlite.examine import examine as examine_sqlite

        yield from examine_sqlite(config.ledger(), _now_ms())
        return
    from reconciler.storage.redis.examine import examine as examine_redis

    try:
        password = section.password and resolve_secret(section.password, config.folder)
    except ConfigError as error:
        yield Finding("ledger", Level.FAILED, f"storage.password: {error}")
        return
    yield from examine_redis(section.url, password, _now_ms)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _print(found: list[Finding], style: str, *, failed: bool) -> None:
    documents = [
        {"check": each.check, "level": each.level, "text": each.text, "mend": each.mend}
        for each in found
    ]
    if style == "json":
        print_json({"status": Level.FAILED if failed else Level.OK, "checks": documents})
    elif style == "ndjson":
        print_lines(documents)
    else:
        width = max(len(each.check) for each in found)
        for each in found:
            mend = f"; {each.mend}" if each.mend else ""
            click.echo(f"{each.level:7}  {each.check:{width}}  {inert(each.text + mend)}")
