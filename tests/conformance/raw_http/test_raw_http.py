"""The golden table of raw HTTP requests, `cases.toml`, against a real server on loopback.

Covers F37 to F42, F44, SC-47 to SC-50 and SC-57 to SC-65 of the case lists; each case names its
own. The application behind the front notes what it sees, by the port of the sender.
"""

import asyncio
import json
import socket
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from gateway.http.body import BodyTooLarge, Disconnected, Room, read_body
from gateway.http.limits import HttpLimits
from gateway.http.server import Listener, bind, serve

CASES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("cases.toml").read_text(encoding="utf-8")
)["case"]

DEFAULT = HttpLimits(body_bytes_max=2 * 1024 * 1024)
SHORT = replace(
    DEFAULT,
    head_s=0.5,
    keep_alive_s=1.0,
    body_stretch_s=0.5,
    body_bytes_per_s_min=1024,
    linger_s=0.5,
)
ROUTE_BODY_BYTES_MAX = 1024 * 1024
FRAMING = {"host", "content-length", "transfer-encoding", "connection"}
PATIENCE_S = 10.0


class NotingApp:
    """Answers 200 with nothing, and notes each request under the port of its sender."""

    def __init__(self) -> None:
        self.seen: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Note the request when its body is read or known not to come."""
        path = scope["path"]
        note = {"request": _line(scope), "body": None, "fields": _fields(scope)}
        self.seen[scope["client"][1]].append(note)
        status = 200
        if path == "/unread":
            note["body"] = "<unread>"
        else:
            cap = 10**12 if path == "/uncapped" else ROUTE_BODY_BYTES_MAX
            body = await read_body(scope, receive, cap, Room(1 << 30))
            note["body"] = _shown(body)
            if isinstance(body, BodyTooLarge):
                status = 413
        if path in {"/slow", "/slower"}:
            await asyncio.sleep(0.1 if path == "/slow" else 1.5)
        headers = [(b"content-length", b"0")]
        if status == 413:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _line(scope: Any) -> str:
    query = scope["query_string"].decode("latin-1")
    line = f"{scope['method']} {scope['raw_path'].decode('latin-1')}{'?' if query else ''}{query}"
    if (scope["client"][0], scope["scheme"]) != ("127.0.0.1", "http"):
        line += f" from {scope['client'][0]} over {scope['scheme']}"
    return line


def _fields(scope: Any) -> list[str]:
    fields = [
        f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in scope["headers"]
    ]
    others = [text for text in fields if text.split(":", 1)[0] not in FRAMING]
    return [f"{len(others)} fields"] if scope["path"] == "/many" else others


def _shown(body: bytes | BodyTooLarge | Disconnected) -> str:
    if isinstance(body, Disconnected):
        return "<disconnected>"
    if isinstance(body, BodyTooLarge):
        return "<too large>"
    return body.decode("latin-1") if len(body) < 100 else f"<{len(body)} bytes>"


@dataclass
class Running:
    """A server in a thread of its own."""

    app: NotingApp
    port: int
    loop: asyncio.AbstractEventLoop | None = None


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Running]]:
    """Both listeners of the table, in one event loop, as in production."""
    running, listeners = {}, []
    for name, limits in (("default", DEFAULT), ("short", SHORT)):
        app = NotingApp()
        listener = Listener(name, app, bind("127.0.0.1", 0, setting="test"), limits)
        listeners.append(listener)
        running[name] = Running(app, listener.address[1])
    ready, stop_soon = threading.Event(), []

    async def run() -> None:
        stop = asyncio.Event()
        stop_soon.append((asyncio.get_running_loop(), stop))
        await serve(listeners, on_ready=lambda _fronts: ready.set(), stop=stop, grace_s=1.0)

    def thread() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())

    worker = threading.Thread(target=thread)
    worker.start()
    assert ready.wait(PATIENCE_S)
    loop, stop = stop_soon[0]
    for server in running.values():
        server.loop = loop
    yield running
    loop.call_soon_threadsafe(stop.set)
    worker.join(PATIENCE_S)
    assert not worker.is_alive()


def _send(sock: socket.socket, steps: list[Any]) -> None:
    """Play the steps; a server that has closed is not an error here."""
    pending = b""
    try:
        for step in steps:
            if isinstance(step, str):
                pending += step.encode("latin-1")
            elif "repeat" in step:
                pending += step["repeat"].encode("latin-1") * step["times"]
            elif "pause_s" in step:
                sock.sendall(pending)
                pending = b""
                time.sleep(step["pause_s"])
            else:
                for byte in (step.get("split") or step["drip"]).encode("latin-1"):
                    sock.sendall(pending + bytes([byte]))
                    pending = b""
                    time.sleep(step.get("every_s", 0.001))
        sock.sendall(pending)
    except OSError:
        return


class Answers:
    """Reads answers off a socket, one after the other."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._data = b""
        self.closed = False

    def next_status(self) -> int | None:
        """Return the status of the next answer; None when the connection is closed instead."""
        while b"\r\n\r\n" not in self._data:
            if not self._more():
                return None
        head, self._data = self._data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next((int(x.split(":")[1]) for x in lines if x.startswith("content-length:")), 0)
        while len(self._data) < length and self._more():
            pass
        self._data = self._data[length:]
        return int(lines[0].split(" ")[1])

    def _more(self) -> bool:
        try:
            part = self._sock.recv(65536)
        except TimeoutError:
            return False
        except ConnectionError:
            part = b""
        self.closed = self.closed or not part
        self._data += part
        return bool(part)


def _play(case: dict[str, Any], server: Running) -> dict[str, Any]:
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(PATIENCE_S)
        sender = threading.Thread(target=_send, args=(sock, case["send"]))
        sender.start()
        answers = Answers(sock)
        statuses = [answers.next_status() for _ in case["status"]]
        if case["open"]:
            sender.join(PATIENCE_S)
            sock.sendall(b"GET /still-open HTTP/1.1\r\nHost: h\r\n\r\n")
            still_open = answers.next_status() == 200
        else:
            surplus = answers.next_status()
            statuses += [] if surplus is None else [surplus]
            still_open = not answers.closed
        sender.join(PATIENCE_S)
        seen = _settled(server, sock.getsockname()[1])
    return {
        "status": statuses,
        "seen": [note for note in seen if note["request"] != "GET /still-open"],
        "open": still_open,
    }


def _settled(server: Running, port: int) -> list[dict[str, Any]]:
    """Return the notes once the application was started and knows what became of each body."""
    assert server.loop is not None
    # Whatever the server had scheduled for this connection runs before this.
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), server.loop).result(PATIENCE_S)
    notes = server.app.seen[port]
    deadline = time.monotonic() + PATIENCE_S
    while any(note["body"] is None for note in notes) and time.monotonic() < deadline:
        time.sleep(0.01)
    return notes


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_raw_request_is_treated_as_the_table_says(
    case: dict[str, Any], servers: dict[str, Running]
) -> None:
    """Status, what the application saw, and whether the connection lives on are as written."""
    expected = {
        "status": case["status"],
        "seen": [{"body": "", "fields": [], **note} for note in case.get("seen", [])],
        "open": case["open"],
    }

    actual = _play(case, servers[case.get("server", "default")])

    assert expected == actual, json.dumps({"expected": expected, "actual": actual}, indent=1)


def test_table_has_one_case_a_name() -> None:
    """A case that is replaced by its namesake would be lost silently."""
    names = [case["name"] for case in CASES]

    assert len(names) == len(set(names)) >= 60
