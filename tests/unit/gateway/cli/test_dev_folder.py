"""What `dev` writes, where it listens, and what it refuses."""

import contextlib
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.dev.folder import USUAL, Ports, free_ports, load, prepare, told_addresses
from gateway.cli.errors import CommandError
from gateway.cli.invocation import DEV_CONFIG, Invocation
from gateway.cli.runtime import Parts
from gateway.config import load_config

FILES = (
    DEV_CONFIG,
    Path(".vouchback/dev/demo-signing.secret"),
    Path(".vouchback/dev/demo-api.secret"),
)


def test_everything_written_is_private() -> None:
    """Configuration and secrets can be read by their owner alone."""
    prepare(USUAL)
    files = [path for path in Path(".vouchback").rglob("*") if path.is_file()]

    assert set(FILES) <= set(files)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(Path(".vouchback").stat().st_mode) == 0o700


def test_nothing_is_ever_overwritten() -> None:
    """A second start leaves each file as it found it, whatever stands in it."""
    prepare(USUAL)
    for path in FILES:
        path.write_text(f"mine: {path}")
    prepare(USUAL)

    assert [path.read_text() for path in FILES] == [f"mine: {path}" for path in FILES]


def test_secrets_differ_and_stand_in_no_configuration() -> None:
    """The configuration names the secrets and does not hold them."""
    prepare(USUAL)
    signing, api = (path.read_text().strip() for path in FILES[1:])

    assert signing != api
    assert len(signing) >= 32
    assert signing not in DEV_CONFIG.read_text()


def test_what_is_written_is_a_right_configuration() -> None:
    """Sources, profiles and egress of the written file compile as a server would compile them."""
    prepare(USUAL)
    config, ports = load(None, None)
    parts = Parts.build(config)

    assert parts.sources.named("demo") is not None
    assert list(parts.providers) == ["demo"]
    assert config.settings.public.url == f"http://127.0.0.1:{ports.public}"


@pytest.mark.parametrize("section", ["public", "internal"])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "example.com"])  # noqa: S104
def test_dev_refuses_to_listen_beyond_loopback(section: str, host: str) -> None:
    """Demo keys never stand behind a port that others reach, whoever edited the file."""
    prepare(USUAL)
    name = f"[{section}]"
    text = DEV_CONFIG.read_text()
    begin = text.index(name)
    DEV_CONFIG.write_text(
        text[:begin] + text[begin:].replace('listen = "127.0.0.1:', f'listen = "{host}:', 1)
    )
    with pytest.raises(CommandError, match="loopback only") as caught:
        load(None, None)

    assert caught.value.exit_code == 78


@contextlib.contextmanager
def taken() -> Iterator[int]:
    """Hold a port."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock.getsockname()[1]


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    """Without `--port`, whatever is taken is found elsewhere, and the rest stays."""
    free = free_ports(Ports(0, 0, 0))
    with taken() as port:
        found = free_ports(Ports(port, free.internal, free.provider))

    assert (found.internal, found.provider) == (free.internal, free.provider)
    assert found.public not in {port, free.internal, free.provider}


def test_a_port_that_was_asked_for_must_be_free() -> None:
    """With `--port`, a taken one is a clear message instead of a surprise."""
    prepare(USUAL)
    with taken() as port, pytest.raises(CommandError, match=f"port {port} is taken") as caught:
        load(None, port)

    assert caught.value.exit_code == 78


def test_an_edited_configuration_without_the_demo_says_how_to_get_it_back() -> None:
    """Dev needs its own source and profile; a file without them is named."""
    Path(".vouchback").mkdir()
    DEV_CONFIG.write_text("[sources]\n")
    with pytest.raises(CommandError, match=r"dev.toml: dev needs \[sources.demo\]"):
        load(None, None)


def test_addresses_are_told_only_while_it_runs() -> None:
    """Other commands follow a running `dev`, and not one that has ended."""
    prepare(USUAL)
    moved, _ = load(None, None)
    written = load_config(DEV_CONFIG)
    usual = f"http://{written.settings.internal.listen}"
    with told_addresses(moved):
        during = Invocation().internal_url()

    assert during == f"http://{moved.settings.internal.listen}"
    assert Invocation().internal_url() == usual
