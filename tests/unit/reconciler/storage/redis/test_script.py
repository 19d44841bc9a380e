"""The scripts' files."""

import re
from importlib import resources

import pytest

from reconciler.storage.redis.script import load
from tests.support import valkey

FOLDER = resources.files("reconciler.storage.redis") / "scripts"
NAMES = sorted(
    entry.name.removesuffix(".lua") for entry in FOLDER.iterdir() if entry.name != "prelude.lua"
)
WRITES = re.compile(r"'(X|H|Z|R|L)?(ADD|SET|SETNX|INCRBY|DEL|REM|PUSH|INCR|PUBLISH)'")


@pytest.mark.parametrize("name", NAMES)
def test_header(name: str) -> None:
    """A script begins with what it takes and answers."""
    text = (FOLDER / f"{name}.lua").read_text("utf-8")
    shebang, _, rest = text.partition("\n")

    assert shebang in {"#!lua", "#!lua flags=no-writes", "#!lua flags=allow-oom"}
    assert re.match(r"-- .+\n-- ARGV: .+\n(--.+\n)*-- Answer: .+\n", rest), name


@pytest.mark.parametrize("name", NAMES)
def test_flags(name: str) -> None:
    """A script that writes is refused as a whole where writing is: no half of it is kept."""
    text = (FOLDER / f"{name}.lua").read_text("utf-8")
    writes = bool(WRITES.search(text)) or "hint(" in text or "write_keys(" in text

    assert writes != ("no-writes" in text.partition("\n")[0])


@pytest.mark.parametrize("name", NAMES)
def test_sha(name: str) -> None:
    """A script's name is the one that the server gives it, and the server can read it."""
    script = load(name)

    assert script.sha == valkey.shared().ask("SCRIPT", "LOAD", script.text)


@pytest.mark.parametrize("name", ["record", "register", "claim", "commit", "release", "renew"])
def test_wrong_arguments_write_nothing(name: str) -> None:
    """A call with wrong arguments is refused before anything is written."""
    server = valkey.shared()
    base = f"{{vouchback:wrong-{name}}}"
    for arguments in ([], ["x"], ["x"] * 19, ["1"]):
        server.ask("EVAL", load(name).text, 1, base, *arguments)

    assert server.ask("KEYS", f"{base}*") == []
