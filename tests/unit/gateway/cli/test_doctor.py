"""`vouchback doctor`: each thing that can be wrong is told in one line, with what mends it."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from reconciler.storage.sqlite import examine
from reconciler.storage.sqlite import file as ledger_file
from reconciler.storage.sqlite.file import Lock
from reconciler.storage.sqlite.store import open_store
from tests.support import valkey
from tests.support.builders import NOW
from tests.support.canned_api import CannedApi, Run

GUIDE = Path(__file__).parents[4] / "docs/how-to/run-on-several-nodes.md"
SECRET = "whsec_that_nobody_may_see"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Write a configuration with which nothing is wrong."""
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "secret").write_text(SECRET)
    file = tmp_path / "vouchback.toml"
    file.write_text(f"""
[storage]
url = "sqlite:data/ledger.db"
[public]
listen = "127.0.0.1:{_free_port()}"
url = "https://hooks.example"
[internal]
listen = "127.0.0.1:{_free_port()}"
[limits]
keep_alive_s = 75.0
[sources.acme]
preset = "stripe"
[[sources.acme.keys]]
id = "one"
secret = "file:secret"
""")
    return file


def _made(path: Path) -> None:
    """Leave a ledger that nobody owns."""

    async def open_and_close() -> None:
        await open_store(path, now=lambda: NOW).close()

    asyncio.run(open_and_close())


def _change(config: Path, old: str, new: str) -> None:
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))


def _checks(run: Run, level: str) -> tuple[int, dict[str, str]]:
    """Run it; return the exit code and, of the checks of a level, text and what mends."""
    result = run("doctor", "--format", "json")
    told: dict[str, Any] = json.loads(result.stdout)
    assert SECRET not in result.output
    assert (result.exit_code == 1) == (told["status"] == "failed")
    found = [check for check in told["checks"] if check["level"] == level]
    return result.exit_code, {
        check["check"]: f"{check['text']}; {check['mend']}" for check in found
    }


def test_nothing_is_wrong(run: Run, config: Path) -> None:
    """A right configuration is all ok, line by line, before the first start and after it."""
    first = run("doctor", "--config", str(config))
    _made(config.parent / "data/ledger.db")
    second = run("doctor", "--config", str(config))

    assert (first.exit_code, second.exit_code) == (0, 0)
    lines = second.stdout.splitlines()
    assert {line.split()[0] for line in lines} == {"ok"}
    assert [line.split()[1] for line in lines if "durable write" in line] == ["write"]


@pytest.mark.parametrize(
    ("old", "new", "level", "check", "told"),
    [
        ('preset = "stripe"', 'preset = "strip"', "failed", "configuration", "stripe"),
        ("[limits]", "[limit]", "failed", "configuration", "did you mean limits"),
        ("file:secret", "file:gone", "failed", "configuration", "cannot read"),
        ("keep_alive_s = 75.0", "keep_alive_s = 5.0", "warning", "keep-alive", "set it to 75"),
        ("https://hooks.example", "http://hooks.example", "warning", "public.url", "TLS proxy"),
        ("https://hooks.example", "http://127.0.0.1", "warning", "public.url", "no provider"),
        ("https://hooks.example", "https://10.0.0.1", "warning", "public.url", "no provider"),
        ("data/ledger.db", "no/where/ledger.db", "failed", "ledger", "storage.url"),
    ],
)
def test_mistakes(
    run: Run, config: Path, *, old: str, new: str, level: str, check: str, told: str
) -> None:
    """What is wrong in the configuration is named by its check; a warning alone is no failure."""
    _change(config, old, new)

    code, found = _checks(run, level)

    assert told in found[check]
    assert code == (1 if level == "failed" else 0)


def test_an_open_internal_listener(run: Run, config: Path) -> None:
    """An internal listener on every address is told, because tokens would travel readable."""
    _change(config, '[internal]\nlisten = "127.0.0.1', '[internal]\nlisten = "0.0.0.0')

    assert "internal.listen" in _checks(run, "warning")[1]


@pytest.fixture
def taken(config: Path) -> Iterator[None]:
    """Let a stranger listen at the public address."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        _change(config, "[public]\nlisten =", "[public]\n#")
        _change(
            config, "[public]\n", f'[public]\nlisten = "127.0.0.1:{stranger.getsockname()[1]}"\n'
        )
        yield


@pytest.mark.usefixtures("taken")
def test_a_port_that_somebody_else_has(run: Run) -> None:
    """A port that is neither free nor ours fails, with the setting to change."""
    code, found = _checks(run, "failed")

    assert code == 1
    assert "or change public.listen" in found["public.listen"]


@pytest.mark.parametrize(
    ("ready", "status", "code"),
    [
        ({"status": "ok"}, 200, 0),
        ({"status": "unready", "reasons": ["storage", "worker"]}, 503, 1),
    ],
)
def test_a_node_that_runs_is_asked(
    run: Run, config: Path, api: CannedApi, *, ready: object, status: int, code: int
) -> None:
    """Where a node serves, its own word counts, reasons included."""
    internal = config.read_text().split('[internal]\nlisten = "')[1].split('"')[0]
    _change(config, internal, api.url.removeprefix("http://"))
    api.put("GET /livez", {"status": "ok"})
    api.put("GET /readyz", ready, status)

    told = _checks(run, "ok" if code == 0 else "failed")

    assert told[0] == code
    assert ('["storage", "worker"]' in told[1]["readyz"]) == (code == 1)
    assert ("internal.listen" in told[1]) == (code == 0)


def test_a_ledger_that_runs_is_left_alone(run: Run, config: Path) -> None:
    """A ledger that a process owns is not written to by anybody else."""
    path = config.parent / "data/ledger.db"
    _made(path)
    owner = Lock(path)

    found = _checks(run, "ok")[1]

    owner.release()
    assert "owned by a running process" in found["ledger"]
    assert "write" not in found


def test_what_others_can_read(run: Run, config: Path) -> None:
    """A token or ledger that others can read fails, with the command that mends it."""
    folder = config.parent / "data"
    _made(folder / "ledger.db")
    (folder / "ledger.db").chmod(0o644)
    (folder / "admin.token").write_text("x")
    (folder / "admin.token").chmod(0o644)
    folder.chmod(0o755)

    found = _checks(run, "failed")[1]

    assert f"chmod 600 {folder}/ledger.db" in found["ledger"]
    assert f"chmod 600 {folder}/admin.token" in found["folder"]
    assert f"chmod 700 {folder}" in _checks(run, "warning")[1]["folder"]


@pytest.mark.parametrize(("content", "code"), [(b"no database at all, but long" * 40, 1), (b"", 0)])
def test_a_file_that_is_no_ledger(run: Run, config: Path, content: bytes, code: int) -> None:
    """A file that is no ledger fails, an empty one will be one, and neither is written into."""
    file = config.parent / "data/ledger.db"
    file.write_bytes(content)
    file.chmod(0o600)

    assert _checks(run, "failed")[0] == code
    assert file.read_bytes() == content


@pytest.mark.parametrize(("schema", "level"), [(9_999, "failed"), (1, "warning")])
def test_a_ledger_of_another_version(run: Run, config: Path, schema: int, level: str) -> None:
    """A newer ledger fails and is not written to; an older one is told before it is upgraded."""
    path = config.parent / "data/ledger.db"
    _made(path)
    ledger = apsw.Connection(str(path))
    ledger.pragma("user_version", schema)
    ledger.close()

    assert f"schema {schema}" in _checks(run, level)[1]["ledger"]
    assert ("write" in _checks(run, "ok")[1]) == (level == "warning")


def test_a_disk_that_fills(run: Run, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full is a warning, then a failure."""
    assert config.exists()
    monkeypatch.setattr(examine, "FREE_BYTES_LOW", 1 << 60)
    assert "make room" in _checks(run, "warning")[1]["disk"]
    monkeypatch.setattr(examine, "FREE_BYTES_MIN", 1 << 60)
    assert "make room" in _checks(run, "failed")[1]["disk"]


def test_a_network_file_system(
    run: Run, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder on a network file system fails: it keeps no commits."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/ {config.parent.resolve()} nfs4 rw 0 0\n")
    monkeypatch.setattr(ledger_file, "MOUNTS", mounts)

    assert "nfs4" in _checks(run, "failed")[1]["file system"]


def test_a_shared_ledger(run: Run, config: Path, tmp_path: Path) -> None:
    """A server that keeps what it acknowledges is ok; one disk and no memory limit are told."""
    url = valkey.shared().url(valkey.ledger_of(tmp_path))
    _change(config, "sqlite:data/ledger.db", url)

    code, warnings = _checks(run, "warning")

    assert code == 0
    assert set(warnings) == {"replicas", "memory"}
    assert {"ledger", "clock", "write"} <= set(_checks(run, "ok")[1])


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("appendfsync", "everysec", "CONFIG SET appendfsync always"),
        ("maxmemory_policy", "allkeys-lru", "CONFIG SET maxmemory-policy noeviction"),
        ("appendonly", "no", "CONFIG SET appendonly yes"),
    ],
)
def test_a_server_that_forgets(
    run: Run, config: Path, tmp_path: Path, *, setting: str, value: str, told: str
) -> None:
    """A server that is set to lose data fails with the exact setting, and nothing is written."""
    with valkey.running(tmp_path / "server", **{setting: value}) as server:
        _change(config, "sqlite:data/ledger.db", server.url())
        code, found = _checks(run, "failed")
        keys = server.ask("DBSIZE")

    assert code == 1
    assert told in found["ledger"]
    assert keys == 0


def test_replicas_that_are_away(run: Run, config: Path, tmp_path: Path) -> None:
    """Replicas that are promised and not there fail twice: as a condition, and as a write."""
    url = valkey.shared().url(valkey.ledger_of(tmp_path), replicas=1, ack_timeout_ms=100)
    _change(config, "sqlite:data/ledger.db", url)

    found = _checks(run, "failed")[1]

    assert "0 of 1 replicas are connected" in found["ledger"]
    assert "within 100 ms" in found["write"] or "replicas" in found["write"]


def test_a_server_that_is_away(run: Run, config: Path) -> None:
    """A server that cannot be reached is one failed line."""
    _change(config, "sqlite:data/ledger.db", f"redis://127.0.0.1:{_free_port()}/?ledger=x")

    assert "cannot be reached" in _checks(run, "failed")[1]["ledger"]


@pytest.mark.parametrize(("without", "failed"), [("", set()), ("+time ", {"clock"})])
def test_the_user_of_the_guide(
    run: Run, config: Path, tmp_path: Path, without: str, failed: set[str]
) -> None:
    """The server's user that the guide makes may do what a node does; a right less is told."""
    (line,) = re.findall(r"(?m)^ACL SETUSER .*$", GUIDE.read_text())
    command = line.replace(">PASSWORD", f">{SECRET}").replace(without, "", bool(without))
    with valkey.running(tmp_path / "server") as server:
        assert server.ask(*command.split()) == b"OK"
        url = f"redis://vouchback@127.0.0.1:{server.port}/?ledger=main"
        _change(config, "sqlite:data/ledger.db", url)
        _change(config, "[public]\n", 'password = "file:secret"\n[public]\n')
        assert set(_checks(run, "failed")[1]) == failed
