"""The first five minutes of somebody who has never seen the product, in an empty folder.

The installed command, real processes, real sockets; nothing is prepared for them.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

pytestmark = pytest.mark.e2e
_COMMAND = Path(sys.executable).with_name("vouchback")
#: From the first command to the first accepted and the first refused event.
_FIRST_S = 60.0


def environment() -> dict[str, str]:
    """Return an environment without any variable of ours."""
    return {k: v for k, v in os.environ.items() if not k.startswith("VOUCHBACK_")}


def vouchback(folder: Path, *words: str, within_s: float = 30) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder to its end."""
    return subprocess.run(
        [_COMMAND, *words],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )


def test_one_command_ends_as_the_provider_says(tmp_path: Path) -> None:
    """`dev --once` accepts, refuses, and ends every operation as the provider's record says."""
    done = vouchback(tmp_path, "dev", "--once", within_s=_FIRST_S)
    steps = {line.split()[1] for line in done.stdout.splitlines() if line[2:3] == ":"}

    assert done.returncode == 0, done.stdout + done.stderr
    assert {"registered", "accepted", "refused", "duplicate", "asked", "moved"} <= steps
    assert "8 of 8 operations ended exactly as the provider's own record says" in done.stdout
    assert "signature_mismatch 1" in done.stdout
    assert "timestamp_too_old 1" in done.stdout
    assert "\x1b" not in done.stdout


def test_a_run_can_be_read_by_a_program(tmp_path: Path) -> None:
    """With `--format json` stdout is one document, and the live lines go to stderr."""
    done = vouchback(tmp_path, "dev", "--once", "--operations", "2", "--format", "json")
    summary = json.loads(done.stdout)

    assert (done.returncode, summary["right"]) == (0, True)
    assert [outcome["same"] for outcome in summary["outcomes"]] == [True, True]
    assert "accepted" in done.stderr


@dataclass
class Dev:
    """A running `vouchback dev`."""

    folder: Path
    process: subprocess.Popen[bytes]
    started_at: float

    def lines(self, what: str) -> list[str]:
        """Return the live lines of one kind."""
        told = (self.folder / "out").read_text()
        return [line for line in told.splitlines() if re.match(rf"\S+  {what}\b", line)]

    def advice(self) -> str:
        """Return what was said on stderr."""
        return (self.folder / "err").read_text()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command in the same folder."""
        return vouchback(self.folder, *words)

    def json(self, *words: str) -> Any:
        """Return the document that another command prints."""
        done = self.run(*words, "--format", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """Run `vouchback dev` in an empty folder until its handful of operations has ended."""
    folder = tmp_path_factory.mktemp("newcomer")
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [_COMMAND, "dev"], cwd=folder, env=environment(), stdout=out, stderr=err
        )
    running = Dev(folder, process, time.monotonic())
    until(lambda: "Ctrl-C ends it" in running.advice(), "the operations end", _FIRST_S)
    yield running
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0, running.advice()
    assert "Traceback" not in running.advice()


def test_events_are_accepted_and_refused_within_a_minute(dev: Dev) -> None:
    """The first accepted and the first refused event are there before anybody has done anything."""
    assert dev.lines("accepted")
    assert dev.lines("refused")
    assert not (dev.folder / "vouchback.toml").exists()


def test_the_advice_works_as_it_stands(dev: Dev) -> None:
    """Each command that `dev` suggests ends with 0 when it is pasted."""
    advised = re.findall(r"^  vouchback (.+?)(?:  +.*)?$", dev.advice(), re.MULTILINE)
    results = {words: dev.run(*words.split()).returncode for words in advised}

    assert len(results) >= 5
    assert set(results.values()) == {0}, results


def test_a_genuine_request_is_accepted_and_listed(dev: Dev) -> None:
    """`send` is answered 200, shown live, and stands first in `events list`."""
    sent = dev.run("send", "demo", "my.event")
    newest = dev.json("events", "list", "--limit", "1")["items"][0]

    assert (sent.returncode, sent.stdout[:4]) == (0, "200:")
    assert newest["event_type"] == "my.event"
    until(lambda: any("my.event" in line for line in dev.lines("accepted")), "it is shown live")


@pytest.mark.parametrize(
    ("twin", "reason"),
    [
        (("--tamper", "body"), "signature_mismatch"),
        (("--tamper", "sig"), "signature_mismatch"),
        (("--tamper", "ts"), "signature_mismatch"),
        (("--tamper", "id"), "signature_mismatch"),
        (("--replay", "10m"), "timestamp_too_old"),
    ],
)
def test_a_wrong_twin_is_refused_for_its_reason(
    dev: Dev, twin: tuple[str, ...], reason: str
) -> None:
    """A forged or replayed request is answered 401, and the live line says why."""
    before = len(dev.lines("refused"))
    sent = dev.run("send", "demo", *twin)
    new = until(lambda: dev.lines("refused")[before:], "it is shown live")

    assert (sent.returncode, sent.stdout[:4]) == (0, "401:")
    assert [line.split()[2] for line in new] == [reason]


def test_reviewers_see_what_was_refused(dev: Dev) -> None:
    """`events refused` lists forged and replayed requests with their reasons."""
    refused = dev.json("events", "refused", "--source", "demo")["items"]

    assert {"signature_mismatch", "timestamp_too_old"} <= {item["reason"] for item in refused}


def test_the_same_twice_is_one_event(dev: Dev) -> None:
    """`send --again` is acknowledged twice and recorded once."""
    sent = dev.run("send", "demo", "twice.event", "--again")
    found = dev.json("events", "list", "--type", "twice.event")["items"]

    assert sent.stdout.count("200:") == 2
    assert [item["seen"] for item in found] == [2]


def test_a_genuine_lie_moves_nothing(dev: Dev) -> None:
    """A signed claim about an ended job is recorded and leaves the operation as it is."""
    operation = dev.json("ops", "list", "--limit", "1")["items"][0]
    lie = "job.failed" if operation["state"] == "succeeded" else "job.succeeded"
    dev.run("send", "demo", lie, "--job", operation["remote_job_id"])
    after = dev.json("ops", "show", operation["operation_id"])

    assert lie in {event["event_type"] for event in after["events"]}
    assert after["operation"]["state"] == operation["state"]


def test_an_operation_tells_its_story(dev: Dev) -> None:
    """`ops show` says who registered it, what was read, and how it moved, in order."""
    operation = dev.json("ops", "list", "--limit", "1")["items"][0]
    story = dev.run("ops", "show", operation["operation_id"]).stdout
    words = re.findall(r"^\d\d:\d\d:\d\d\.\d{3}  (\w+)", story, re.MULTILINE)

    assert words[0] == "registered" or "event" in words[: words.index("registered")]
    assert {"asked", "moved"} <= set(words)
    assert f"ended: {operation['state']}, confirmed by the provider" in story


def test_a_token_of_ones_own_works_until_it_is_revoked(dev: Dev) -> None:
    """`token create > file` gives a token that `--token file:` uses; revoked, it ends with 5."""
    made = dev.run("token", "create", "--role", "viewer")
    (dev.folder / "mine").write_text(made.stdout)
    reading = ("events", "list", "--token", "file:mine")
    before = dev.run(*reading).returncode
    newest = dev.json("token", "list")["items"][0]
    dev.run("token", "revoke", newest["token_id"])

    assert (made.returncode, before, newest["role"]) == (0, 0, "viewer")
    assert dev.run(*reading).returncode == 5


def test_a_role_that_may_not_is_told_so(dev: Dev) -> None:
    """A viewer's token cannot make tokens: code 5, and which way to go."""
    (dev.folder / "viewer").write_text(dev.run("token", "create", "--role", "viewer").stdout)
    tried = dev.run("token", "create", "--role", "admin", "--token", "file:viewer")

    assert (tried.returncode, tried.stdout) == (5, "")
    assert "vouchback token list" in tried.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("source list", 0),
        ("source show demo", 0),
        ("source show nope", 3),
        ("events list --parked", 0),
        ("events show evt_nope", 3),
        ("ops show op_nope", 3),
        ("ops create --profile nope --job x", 3),
        ("token revoke tok_nope", 3),
        ("ops list --state nope", 2),
        ("config check", 0),
    ],
)
def test_exit_codes_tell_the_truth(dev: Dev, words: str, code: int) -> None:
    """Against a real server, each outcome has the exit code that the design gives it."""
    done = dev.run(*words.split())

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_an_event_shows_its_checks_and_its_exact_body(dev: Dev) -> None:
    """`events show` names the checks that it passed; `events raw` is what was sent."""
    (dev.folder / "body").write_bytes(b'{"event_id": "evt_raw",  "n": 1}\n')
    dev.run("send", "demo", "raw.event", "--body", "body")
    event = dev.json("events", "list", "--type", "raw.event")["items"][0]
    shown = dev.run("events", "show", event["event_id"]).stdout
    raw = dev.run("events", "raw", event["event_id"]).stdout

    assert "passed  signature_matches" in shown
    assert "passed  timestamp_fresh" in shown
    assert raw == (dev.folder / "body").read_text()


def test_a_second_dev_says_that_the_ledger_is_in_use(dev: Dev) -> None:
    """One folder, one ledger, one process: another one is told so, without a traceback."""
    other = dev.run("dev", "--once")

    assert other.returncode == 78
    assert "is in use by another process" in other.stderr
    assert "Traceback" not in other.stderr
    assert dev.run("events", "list").returncode == 0


def test_without_a_server_the_way_out_is_told(tmp_path: Path) -> None:
    """Nobody listens: code 69, the address, and what to start."""
    done = vouchback(tmp_path, "ops", "list", "--url", "http://127.0.0.1:9")

    assert done.returncode == 69
    assert "vouchback serve" in done.stderr
