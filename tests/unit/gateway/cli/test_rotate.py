"""`vouchback source rotate`: what comes next, from the configuration and the events."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.rotate import Standing, count_by_key, next_step
from tests.support.canned_api import CannedApi, Run

NOW = 1_800_000_000
DAY = 86_400
HORIZON = 3 * DAY


def old(**other: Any) -> Standing:
    """Return the old key with other facts."""
    facts = {"not_before": None, "not_after": None, "events": 9, "last_event_at": NOW - 4 * DAY}
    return Standing("old", **{**facts, **other})


def new(**other: Any) -> Standing:
    """Return the new key with other facts."""
    facts = {"not_before": NOW - 5 * DAY, "not_after": None, "events": 3, "last_event_at": NOW}
    return Standing("new", **{**facts, **other})


@pytest.mark.parametrize(
    ("keys", "step", "told"),
    [
        ([old()], "add", "add the new key beside the old one"),
        ([old(not_after=NOW - 1)], "add", "nothing is accepted"),
        ([old(), new(not_before=NOW + 9)], "wait", "new counts from 2027-01-15T08:00:09Z on"),
        ([old(), new(events=0)], "switch", "let the provider sign with new"),
        ([old(last_event_at=NOW - DAY), new()], "watch", "look again after 2027-01-17T08:00:00Z"),
        ([old(), new()], "end", "old is silent"),
        ([old(events=0, last_event_at=None), new()], "end", "old is silent"),
        ([old(not_after=NOW + DAY), new()], "wait", "old ends at 2027-01-16T08:00:00Z"),
        ([old(not_after=NOW - 1), new()], "remove", "remove the section of old"),
        ([new()], "add", "add the new key"),
    ],
)
def test_each_step_follows_from_the_last(keys: list[Standing], step: str, told: str) -> None:
    """Add, switch, watch, end, remove: by validity and by which key signed what (issue 4)."""
    found = next_step("acme", keys, NOW, HORIZON, since=0)

    assert found.name == step
    assert told in found.do


def test_without_a_server_nothing_is_ended() -> None:
    """Where use is not known, an old key is never called silent."""
    keys = [old(events=None, last_event_at=None), new(events=None, last_event_at=None)]

    assert next_step("acme", keys, NOW, HORIZON, since=None).name == "switch"


def test_silence_is_no_longer_than_what_was_counted() -> None:
    """Of a busy source the newest events may span a minute; that is no silence of the old key."""
    keys = [old(events=0, last_event_at=None), new()]

    assert next_step("acme", keys, NOW, HORIZON, since=NOW - 60).name == "watch"
    assert next_step("acme", keys, NOW, HORIZON, since=NOW - HORIZON).name == "end"


def test_what_is_to_be_written_is_shown() -> None:
    """The first step shows the section of the new key, the last but one the end of the old."""
    assert next_step("acme", [old()], NOW, HORIZON, since=0).write == (
        '[[sources.acme.keys]]\nid = "2027-01"\n'
        'secret = "file:/etc/vouchback/acme-2027-01.secret"\nnot_before = 2027-01-15T08:00:00Z'
    )
    ending = next_step("acme", [old(), new()], NOW, HORIZON, since=0)
    assert ending.write == "not_after = 2027-01-15T08:00:00Z"


def test_events_are_counted_by_key() -> None:
    """The last instant of each key counts, in whatever order events are listed."""
    events = [
        {"key_id": "a", "received_at": "2027-01-15T08:00:00.5Z"},
        {"key_id": "a", "received_at": "2027-01-14T08:00:00Z"},
        {"key_id": "b", "received_at": "2027-01-15T07:59:59Z"},
    ]

    assert count_by_key(events) == {"a": (2, NOW), "b": (1, NOW - 1)}


def _configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_OLD", "whsec_" + "QUFB" * 8)
    monkeypatch.setenv("ACME_NEW", "whsec_" + "QkJC" * 8)
    Path("vouchback.toml").write_text(
        '[sources.acme]\npreset = "stripe"\n'
        '[[sources.acme.keys]]\nid = "old"\nsecret = "env:ACME_OLD"\n'
        '[[sources.acme.keys]]\nid = "new"\nsecret = "env:ACME_NEW"\n'
    )


def test_the_command_reads_configuration_and_events(
    ask: Run, api: CannedApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both pages of events are counted, and the configuration is left as it is."""
    _configured(monkeypatch)
    before = Path("vouchback.toml").read_bytes()
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    first = {"items": [{"key_id": "old", "received_at": at}], "next": "7"}
    rest = {"items": [{"key_id": "new", "received_at": at}], "next": None}
    api.put("GET /v1/events?source=acme&limit=200", first)
    api.put("GET /v1/events?source=acme&limit=200&before=7", rest)
    result = ask("source", "rotate", "acme", "--format", "json")

    told = json.loads(result.stdout)
    assert told["step"] == "watch"
    assert [(key["id"], key["events"]) for key in told["keys"]] == [("old", 1), ("new", 1)]
    assert Path("vouchback.toml").read_bytes() == before


def test_the_command_works_without_a_server(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that use is not known, and still says what comes next, without any secret."""
    _configured(monkeypatch)
    monkeypatch.setenv("VOUCHBACK_URL", "http://127.0.0.1:9")
    result = run("source", "rotate", "acme")

    assert result.exit_code == 0
    assert "which key is in use is not known" in result.stderr
    assert "next: let the provider sign with new" in result.stdout
    assert "QkJC" not in result.output


def test_an_unknown_source_is_answered_with_the_nearest(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt source ends with 3 and a suggestion."""
    _configured(monkeypatch)
    result = run("source", "rotate", "acne")

    assert result.exit_code == 3
    assert "acme" in result.stderr
