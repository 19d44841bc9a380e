"""Logs: inert lines in one form, and never a reason for anything else to fail."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from reconciler import logs

ROOT = Path(__file__).parents[3]

FORGERY = "boom\n2026-01-01T00:00:00Z [info] all is well\x1b[31m\u202e\x00\ud800"


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave logging as it was for whoever comes next."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    levels = {name: logging.getLogger(name).level for name in ("httpx", "httpcore")}
    yield
    root.handlers[:], root.level = before
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    structlog.reset_defaults()


def lines(capfd: pytest.CaptureFixture[str]) -> list[Any]:
    """Return the JSON lines that were written to stderr; stdout must be empty."""
    out, err = capfd.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


def _fail(text: str, *, secret: str = "") -> None:
    """Log an exception with that text, raised where a secret stands in a variable."""
    assert secret is not None
    try:
        raise ValueError(text)  # noqa: TRY301
    except ValueError:
        logs.get("worker").exception("effect_failed")


def test_a_line_is_one_json_object(capfd: pytest.CaptureFixture[str]) -> None:
    """One occurrence is one line: what, where, when, how bad, and its values."""
    logs.setup("json", "info")
    logs.get("intake").warning("event_conflict", source="acme", count=3, ok=True, none=None)
    (line,) = lines(capfd)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "event_conflict",
        "part": "intake",
        "level": "warning",
        "source": "acme",
        "count": 3,
        "ok": True,
        "none": None,
    }


@pytest.mark.parametrize(
    "wrap", [lambda x: x, lambda x: [x], lambda x: {"k": {x: (x,)}}, ValueError]
)
def test_no_value_can_act_on_a_reader(wrap: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Control, bidirectional and lone surrogate characters are escaped at any depth."""
    logs.setup("console", "info")
    logs.get("worker").info("said", value=wrap(FORGERY))
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert not any(character in err for character in "\x1b\u202e\x00\ud800\r")


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"k": {x: (x,)}}])
def test_a_value_stays_inert_when_json_is_read(
    wrap: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever decodes a line and prints a value of it is as safe as who reads the line."""
    logs.setup("json", "info")
    logs.get("worker").info("said", value=wrap(FORGERY))
    (line,) = lines(capfd)
    assert not any(character in _texts(line) for character in "\n\x1b\u202e\x00\ud800")


def _texts(value: Any) -> str:
    """Return all texts within a value, keys too, joined."""
    if isinstance(value, dict):
        return "".join(_texts(part) for pair in value.items() for part in pair)
    return "".join(map(_texts, value)) if isinstance(value, list) else str(value)


@pytest.mark.parametrize("form", ["console", "json"])
def test_an_exception_cannot_forge_a_line(
    form: logs.Format, capfd: pytest.CaptureFixture[str]
) -> None:
    """The text of an error may be a stranger's: its lines are indented and inert."""
    logs.setup(form, "info")
    _fail(FORGERY)
    err = capfd.readouterr().err
    assert "Traceback" in err
    assert not any(line.startswith("2026-01-01") for line in err.splitlines())
    assert not any(character in err for character in "\x1b\u202e\x00")


def test_an_exceptions_locals_are_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    """A trace shows code, never the values of variables: one of them may be a secret."""
    logs.setup("console", "info")
    _fail("a trace", secret="S" * 20)
    assert "S" * 20 not in capfd.readouterr().err


def test_the_level_is_held(capfd: pytest.CaptureFixture[str]) -> None:
    """What is below the level is not written, ours or a library's."""
    logs.setup("json", "warning")
    logs.get("worker").info("quiet")
    logging.getLogger("library").info("quiet")
    assert lines(capfd) == []


def test_libraries_speak_in_our_form(capfd: pytest.CaptureFixture[str]) -> None:
    """A library's line names its logger, its level and its message, inert like ours."""
    logs.setup("json", "info")
    logging.getLogger("some.library").error("bad %s", "x\ny")
    logging.getLogger("some.library").log(25, "between two levels")
    logging.getLogger("some.library").warning("%d is no number", "x")
    found = [(line["level"], line["part"], line["message"]) for line in lines(capfd)]
    assert found == [
        ("error", "some.library", "bad x\\u000ay"),
        ("info", "some.library", "between two levels"),
        ("warning", "some.library", "%d is no number"),
    ]


@pytest.mark.parametrize("name", ["httpx", "httpcore.http11"])
def test_clients_do_not_log_urls_and_headers(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Even at `debug` no call's URL or headers reach the log."""
    logs.setup("json", "debug")
    logging.getLogger(name).info("GET https://provider.example/jobs/1?token=secret")
    logging.getLogger(name).debug("Authorization: Bearer secret")
    assert lines(capfd) == []


@pytest.mark.parametrize("redirect", ["2>/dev/full", "2>&-"])
@pytest.mark.parametrize("form", ["json", "console"])
def test_a_log_that_cannot_be_written_stops_nothing(form: str, redirect: str) -> None:
    """A full disk or a closed stderr loses lines, and neither raises nor changes the exit."""
    program = (
        "import logging\n"
        "from reconciler import logs\n"
        f"logs.setup('{form}', 'info')\n"
        "for _ in range(3000):\n"
        "    logs.get('intake').warning('event_conflict', source='x' * 50)\n"
        "    logging.getLogger('library').warning('hello')\n"
        "print('went on')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PROGRAM": program}
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec {sys.executable} -c "$PROGRAM" {redirect}'],
        env=environment,
        stdout=subprocess.PIPE,
        check=False,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "went on\n")
