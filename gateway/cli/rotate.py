"""`vouchback source rotate SOURCE`: where the rotation of a secret stands, and what comes next.

It reads the configuration and, where the server can be reached, which key verified which event. It
changes nothing: the configuration is the operator's, and so is the provider's console. The way is:
add the new key, let the provider sign with it, wait until the old one is silent for as long as
retries may come, end the old one, remove it.
"""

import datetime as dt
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from gateway.cli.client import Api
from gateway.cli.errors import CommandError
from gateway.cli.invocation import Invocation, server_options
from gateway.cli.output import inert, print_json, print_table, say
from gateway.cli.send import find
from gateway.source import build_sources

_PAGE = 200
_PAGES = 10
_COLUMNS = {
    "KEY": "id",
    "STATE": "state",
    "NOT BEFORE": "not_before",
    "NOT AFTER": "not_after",
    "EVENTS": "events",
    "LAST EVENT": "last_event_at",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """One key: its validity in unix seconds, and what it verified, as far as that is known."""

    id: str
    not_before: int | None
    not_after: int | None
    events: int | None = None
    last_event_at: int | None = None

    def state(self, now: int) -> str:
        """Return `early`, `live` or `expired`."""
        if self.not_before is not None and now < self.not_before:
            return "early"
        return "expired" if self.not_after is not None and now > self.not_after else "live"


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next: a word for programs, a sentence, and what to write where."""

    name: str
    do: str
    write: str = ""


@click.command("rotate")
@click.argument("name", metavar="SOURCE")
@server_options
@click.pass_obj
def rotate(invocation: Invocation, name: str) -> None:
    """Say how far the rotation of a secret is and what to do next; changes nothing."""
    source = find(build_sources(invocation.load()), name)
    now = int(time.time())
    seen = _seen(invocation, name)
    use = None if seen is None else count_by_key(seen[0])
    ids = dict.fromkeys((key.id, key.not_before, key.not_after) for key in source.keys.keys)
    keys = [Standing(*key, *_of(use, key[0])) for key in ids]
    step = next_step(name, keys, now, source.preset.retry_horizon_s, seen and seen[1])
    _print(invocation, name, keys, step, now)


def next_step(
    source: str, keys: list[Standing], now: int, horizon_s: int, since: int | None
) -> Step:
    """Return what comes next for the keys of a source, the newest last.

    `since` is from when on all events were counted, 0 for all that there are, None for none at
    all; `horizon_s` is how long the provider retries.
    """
    expired = [key for key in keys if key.state(now) == "expired"]
    usable = [key for key in keys if key not in expired]
    if not usable:
        return Step("add", "every key has expired, nothing is accepted: add one", _new(source, now))
    if len(usable) == 1 and expired:
        names = ", ".join(key.id for key in expired)
        return Step("remove", f"remove the section of {names} and reload: it has expired")
    if len(usable) == 1:
        return Step("add", "add the new key beside the old one, then reload", _new(source, now))
    return _overlap(usable, now, horizon_s, since)


def _overlap(usable: list[Standing], now: int, horizon_s: int, since: int | None) -> Step:
    *old, new = usable
    if new.state(now) == "early":
        return Step("wait", f"{new.id} counts from {_text(new.not_before)} on; wait, or set it now")
    if since is not None and not new.events:
        return Step("switch", f"let the provider sign with {new.id}: no event was signed with it")
    names = ", ".join(key.id for key in old)
    ended = [key for key in old if key.not_after is not None]
    if since is None:
        return Step("switch", f"let the provider sign with {new.id}, then watch {names}")
    last = max(since, *(key.last_event_at or 0 for key in old))
    if last and now - last < horizon_s:
        quiet = _text(last + horizon_s)
        return Step("watch", f"retries signed with {names} may come; look again after {quiet}")
    if len(ended) == len(old):
        until = _text(max(key.not_after or 0 for key in old))
        return Step("wait", f"{names} ends at {until}; then remove it")
    write = f"not_after = {_text(now)}"
    return Step("end", f"{names} is silent: end it, then reload", write)


def _new(source: str, now: int) -> str:
    month = dt.datetime.fromtimestamp(now, dt.UTC).strftime("%Y-%m")
    return (
        f'[[sources.{source}.keys]]\nid = "{month}"\n'
        f'secret = "file:/etc/vouchback/{source}-{month}.secret"\n'
        f"not_before = {_text(now)}"
    )


def _of(use: Mapping[str, tuple[int, int]] | None, key_id: str) -> tuple[int | None, int | None]:
    if use is None:
        return None, None
    return use.get(key_id, (0, None))


def _seen(invocation: Invocation, source: str) -> tuple[list[Mapping[str, Any]], int] | None:
    """Return the newest events and from when on they are all; None without a server."""
    try:
        return _events(invocation.api(), source)
    except CommandError as error:
        say(f"which key is in use is not known: {inert(error.message)}")
        return None


def count_by_key(events: Iterable[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return how many events each key verified, and when the last one came (unix seconds)."""
    found: dict[str, tuple[int, int]] = {}
    for event in events:
        count, last = found.get(event["key_id"], (0, 0))
        at = _received_at(event)
        found[event["key_id"]] = (count + 1, max(last, at))
    return found


def _events(api: Api, source: str) -> tuple[list[Mapping[str, Any]], int]:
    events: list[Mapping[str, Any]] = []
    before = None
    for _ in range(_PAGES):
        page = api.get("/v1/events", source=source, limit=_PAGE, before=before)
        events += page["items"]
        before = page["next"]
        if before is None:
            return events, 0
    return events, min(_received_at(event) for event in events)


def _received_at(event: Mapping[str, Any]) -> int:
    return int(dt.datetime.fromisoformat(event["received_at"]).timestamp())


def _print(invocation: Invocation, name: str, keys: list[Standing], step: Step, now: int) -> None:
    rows = [
        {
            "id": key.id,
            "state": key.state(now),
            "not_before": _text(key.not_before),
            "not_after": _text(key.not_after),
            "events": key.events,
            "last_event_at": _text(key.last_event_at),
        }
        for key in keys
    ]
    if invocation.format != "table":
        document = {"source": name, "step": step.name, "do": step.do, "write": step.write}
        print_json({**document, "keys": rows})
        return
    print_table(rows, _COLUMNS)
    click.echo(f"next: {inert(step.do)}")
    for line in step.write.splitlines():
        click.echo(f"  {inert(line)}")


def _text(at: int | None) -> str | None:
    """Return an instant as TOML and people write it."""
    return None if at is None else dt.datetime.fromtimestamp(at, dt.UTC).strftime(_FORMAT)


_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
