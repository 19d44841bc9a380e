"""The top of the command line: what it imports, what it refuses, how it ends."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import root
from tests.support.canned_api import CannedApi, Run

COMMAND = (str(Path(sys.executable).with_name("vouchback")),)
HEAVY = ("pydantic", "httpx", "apsw", "starlette", "uvicorn", "cryptography", "structlog")


def imported(*words: str) -> set[str]:
    """Return which of our heavy libraries a command line loads."""
    code = (
        "import sys, json\n"
        "from gateway.cli import root\n"
        f"root.main({list(words)!r}, standalone_mode=False)\n"
        f"print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", [("--help",), ("version",), ("events", "--help")])
def test_help_and_version_load_nothing_heavy(words: tuple[str, ...]) -> None:
    """Help, the version and shell completion are instant: no library of the server is loaded."""
    assert set() == imported(*words)


@pytest.mark.parametrize("name", list(root.entries))
def test_every_command_of_the_table_is_there(run: Run, name: str) -> None:
    """Each name in the table leads to a command that explains itself."""
    result = run(name, "--help")

    assert (result.exit_code, result.stderr) == (0, "")
    assert "Usage: " in result.stdout


def test_an_unknown_command_names_the_nearest(run: Run) -> None:
    """A mistyped command is a usage error with a suggestion."""
    result = run("evnts")

    assert result.exit_code == 2
    assert "Did you mean 'events'?" in result.stderr


def test_an_unknown_variable_is_a_mistake_of_the_configuration(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `VOUCHBACK_*` variable that nothing reads ends the command with the nearest known one."""
    monkeypatch.setenv("VOUCHBACK_TOKEM", "x")
    result = run("version")

    assert result.exit_code == 78
    assert "VOUCHBACK_TOKEM" in result.stderr
    assert "VOUCHBACK_TOKEN?" in result.stderr


def test_an_unknown_override_is_a_mistake_where_it_applies(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `VOUCHBACK_SECTION__KEY` that names no setting is refused with a suggestion."""
    monkeypatch.setenv("VOUCHBACK_PUBLIC__LISTN", "127.0.0.1:1")
    result = run("config", "show")

    assert result.exit_code == 78
    assert "did you mean VOUCHBACK_PUBLIC__LISTEN?" in result.stderr


def test_options_stand_before_or_after_the_command(ask: Run, api: CannedApi) -> None:
    """`--format` means the same at either place."""
    api.put("GET /v1/tokens", {"items": [], "next": None})

    assert (
        ask("--format", "json", "token", "list").stdout
        == ask("token", "list", "--format", "json").stdout
        != ""
    )


def test_a_bug_is_one_line_without_traceback(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw says where it happened, in one line, and ends with a code of its own."""
    monkeypatch.setattr("importlib.metadata.version", lambda _name: 1 / 0)
    result = run("version")

    assert result.exit_code == 70
    assert "Traceback" not in result.output
    assert "unexpected ZeroDivisionError at test_start.py:" in result.stderr


def test_a_broken_configuration_names_file_and_key(run: Run, tmp_path: Path) -> None:
    """A mistake in the configuration ends any command that reads it with code 78."""
    (tmp_path / "vouchback.toml").write_text("[public]\nlisten = 'x'\nurll = 'y'\n")
    result = run("config", "check")

    assert result.exit_code == 78
    assert "vouchback.toml: unknown key public.urll (did you mean url?)" in result.stderr


def test_a_port_that_is_taken_ends_the_start_with_its_setting(tmp_path: Path) -> None:
    """`serve` names the address and the setting, and ends with code 78."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "vouchback.toml").write_text(f'[public]\nlisten = "127.0.0.1:{port}"\n')
        words = (*COMMAND, "serve")
        done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == 78
    assert f"port {port} (setting public.listen)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk_under_stdout_is_told() -> None:
    """Output that cannot be written is a failure of the command, not a mistake of ours."""
    words = (*COMMAND, "version")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert done.returncode == 1
    assert "no space is left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[egress]\nallow = ["everything"]\n', "everything"),
        ("[profiles.nope]\n", "nope"),
        ('[sources.acme]\npreset = "strip"\n', "strip"),
        ('[sources.acme]\npreset = "stripe"\nkeys = [{id = "k", secret = "env:NO"}]\n', "env:NO"),
    ],
)
def test_config_check_finds_what_a_start_would(
    run: Run, tmp_path: Path, text: str, named: str
) -> None:
    """Sources with their secrets, profiles and egress rules are compiled, not only parsed."""
    (tmp_path / "vouchback.toml").write_text(text)
    result = run("config", "check")

    assert result.exit_code == 78
    assert named in result.stderr
