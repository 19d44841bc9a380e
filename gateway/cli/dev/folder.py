"""What `vouchback dev` keeps in the current folder, and where it listens.

Files are written only where none are, readable by their owner alone. Nothing here listens; a port
is tried and given back, so that the file written names ports that were free.
"""

import contextlib
import ipaddress
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import DEV_ADDRESSES, DEV_CONFIG
from gateway.config import Config, load_config, split_listen

SOURCE = PROFILE = "demo"
_FOLDER = Path(".vouchback")
_SIGNING = _FOLDER / "dev/demo-signing.secret"
_TOKEN = _FOLDER / "dev/demo-api.secret"
_LOOPBACK = "127.0.0.1"
_PORT_MAX = 65_535

_TEXT = f"""\
# Written by `vouchback dev`, and never overwritten: change what you like, or delete it.
# Paths are relative to the folder of this file.

[storage]
url = "sqlite:dev/ledger.db"

[public]    # what providers reach: /in/SOURCE and nothing else
listen = "127.0.0.1:{{public}}"
url = "http://127.0.0.1:{{public}}"

[internal]  # the API and health
listen = "127.0.0.1:{{internal}}"

[log]
level = "warning"

[egress]    # status reads may call the demo provider
allow = ["http://127.0.0.1/32:{{provider}}"]

[sources.demo]
preset = "timestamp-body"
profile = "demo"
job_id = "body:/data/job_id"
client_reference = "body:/data/reference"

[[sources.demo.keys]]
id = "demo-1"
secret = "file:{_SIGNING.relative_to(_FOLDER)}"

[profiles.demo]
base_url = "http://127.0.0.1:{{provider}}"
secret = "file:{_TOKEN.relative_to(_FOLDER)}"
"""


@dataclass(frozen=True, slots=True)
class Ports:
    """The three ports of `dev`: both listeners and the demo provider."""

    public: int
    internal: int
    provider: int


USUAL = Ports(8080, 8081, 9400)


def prepare(ports: Ports) -> None:
    """Write configuration and secrets where they are missing."""
    _private_folder(_FOLDER)
    _private_folder(_FOLDER / "dev")
    _write_new(_FOLDER / ".gitignore", "*\n")
    for secret in (_SIGNING, _TOKEN):
        _write_new(secret, f"{secrets.token_urlsafe(32)}\n")
    if not DEV_CONFIG.exists():
        free = free_ports(ports)
        text = _TEXT.format(public=free.public, internal=free.internal, provider=free.provider)
        _write_new(DEV_CONFIG, text)


def load(path: Path | None, port: int | None) -> tuple[Config, Ports]:
    """Return the configuration to run, its ports moved to free ones, and the provider's port.

    `port` asks for it and the next two, which must be free. Refuses everything beyond loopback.
    """
    config = load_config(path or DEV_CONFIG)
    settings = config.settings
    wanted = Ports(
        _port_of(settings.public.listen, "public"),
        _port_of(settings.internal.listen, "internal"),
        _provider_port(config),
    )
    if port is not None:
        wanted = _exactly(Ports(port, port + 1, port + 2))
    ports = wanted if port is not None else free_ports(wanted)
    return _moved(config, ports), ports


def _port_of(listen: str, name: str) -> int:
    host, port = split_listen(listen)
    with contextlib.suppress(ValueError):
        if host == "localhost" or ipaddress.ip_address(host).is_loopback:
            return port
    raise CommandError(
        f"{name}.listen = {listen}: dev listens on loopback only, it runs with demo keys",
        Exit.CONFIGURATION,
        "`vouchback serve` for listeners that others reach",
    )


def _provider_port(config: Config) -> int:
    source = config.settings.sources.get(SOURCE)
    profile = config.settings.profiles.get(PROFILE)
    if source is None or profile is None or not source.keys or profile.secret is None:
        raise CommandError(
            f"{config.where()}: dev needs [sources.demo] with a key and [profiles.demo]"
            " with a secret",
            Exit.CONFIGURATION,
            f"delete {DEV_CONFIG}; it is written again",
        )
    _, _, port = (profile.base_url or "").rpartition(":")
    return int(port) if port.isascii() and port.isdigit() else USUAL.provider


def _moved(config: Config, ports: Ports) -> Config:
    """Return the configuration with these ports, whatever the file says."""
    old = config.settings
    provider = f"http://{_LOOPBACK}:{ports.provider}"
    public = f"{_LOOPBACK}:{ports.public}"
    allow = [*old.egress.allow, f"http://{_LOOPBACK}/32:{ports.provider}"]
    profile = old.profiles[PROFILE].model_copy(update={"base_url": provider})
    settings = old.model_copy(
        update={
            "public": old.public.model_copy(update={"listen": public, "url": f"http://{public}"}),
            "internal": old.internal.model_copy(update={"listen": f"{_LOOPBACK}:{ports.internal}"}),
            "egress": old.egress.model_copy(update={"allow": allow}),
            "profiles": {**old.profiles, PROFILE: profile},
        }
    )
    return Config(settings, config.file, config.folder)


# ---------------------------------------------------------------- ports


def free_ports(wanted: Ports) -> Ports:
    """Return the wanted ports, a free one in place of each that is taken."""
    with contextlib.ExitStack() as held:
        found = [
            _hold(held, port) or _hold(held, 0)
            for port in (wanted.public, wanted.internal, wanted.provider)
        ]
    return Ports(*found)


def _exactly(ports: Ports) -> Ports:
    numbers = (ports.public, ports.internal, ports.provider)
    with contextlib.ExitStack() as held:
        taken = [port for port in numbers if port > _PORT_MAX or not _hold(held, port)]
    if taken:
        raise CommandError(
            f"port {taken[0]} is taken; --port {ports.public} needs {numbers[0]} to {numbers[2]}",
            Exit.CONFIGURATION,
            "another --port, or none: then free ones are found",
        )
    return ports


def _hold(held: contextlib.ExitStack, port: int) -> int:
    """Take a port while the stack is open; return its number, 0 where it is taken."""
    sock = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((_LOOPBACK, port))
        sock.listen(1)
    except OSError:
        return 0
    number: int = sock.getsockname()[1]
    return number


@contextlib.contextmanager
def told_addresses(config: Config) -> Iterator[None]:
    """Let other commands in this folder find the ports while `dev` runs."""
    file = config.data_folder() / DEV_ADDRESSES
    found = {
        "public": f"http://{config.settings.public.listen}",
        "internal": f"http://{config.settings.internal.listen}",
    }
    file.write_text(json.dumps(found) + "\n", "utf-8")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


# ---------------------------------------------------------------- files


def _private_folder(path: Path) -> None:
    path.mkdir(mode=0o700, exist_ok=True)


def _write_new(path: Path, text: str) -> None:
    """Write a file for its owner alone; one that is there stays as it is."""
    with contextlib.suppress(FileExistsError):
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
