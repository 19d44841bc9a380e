"""A provider's job API on loopback whose every answer is written by the test.

Each job has a list of replies: the n-th read gets the n-th, later reads get the last. A reply
writes raw bytes, so it may break any rule. Every read is kept with its time and its head.
"""

import json
import socketserver
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

TOKEN = "provider-token-6f1e9a40c2"


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a job: when it came (monotonic seconds), and the request's head."""

    at: float
    head: str


@dataclass(slots=True)
class Talk:
    """One read being answered."""

    job_id: str
    write: Callable[[bytes], object]
    #: Set when the provider is being closed: endless replies end.
    closing: threading.Event
    #: Seconds since the job was made.
    age_s: float


Reply = Callable[[Talk], None]


@dataclass(slots=True)
class _Job:
    replies: Sequence[Reply]
    made_at: float
    reads: list[Read] = field(default_factory=list)


class JobApi:
    """The provider. Use it as a context manager."""

    def __init__(self, port: int = 0) -> None:
        self._jobs: dict[str, _Job] = {}
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._server = _Server(("127.0.0.1", port), self)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def job(self, job_id: str, *replies: Reply | str) -> None:
        """Make a job, or give it other replies; a text is short for `state(text)`."""
        made = [state(reply) if isinstance(reply, str) else reply for reply in replies]
        with self._lock:
            if job_id in self._jobs:
                self._jobs[job_id].replies = made
            else:
                self._jobs[job_id] = _Job(made, time.monotonic())

    def reads(self, job_id: str) -> list[Read]:
        """Return the reads of a job, of one that does not exist too."""
        with self._lock:
            found = self._jobs.get(job_id)
            return [] if found is None else list(found.reads)

    def answer(self, head: str, write: Callable[[bytes], object]) -> None:
        """Answer one request."""
        job_id = head.split(" ", 2)[1].rpartition("/")[2]
        now = time.monotonic()
        with self._lock:
            job = self._jobs.setdefault(job_id, _Job([status(404)], now))
            job.reads.append(Read(now, head))
            reply = job.replies[min(len(job.reads), len(job.replies)) - 1]
        if f"authorization: bearer {TOKEN}\r\n" not in f"{head}\r\n".lower():
            reply = status(401)
        reply(Talk(job_id, write, self._closing, now - job.made_at))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], api: JobApi) -> None:
        super().__init__(address, _Connection)
        self.api = api

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a gateway that was killed leaves broken connections."""


class _Connection(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        """Answer requests until the peer goes."""
        while True:
            lines: list[str] = []
            while (line := self.rfile.readline().decode("latin-1").rstrip("\r\n")) or not lines:
                if not line:
                    return
                lines.append(line)
            try:
                self.server.api.answer("\r\n".join(lines), self.wfile.write)
            except HangUp:
                return


# ---------------------------------------------------------------- replies


def raw(data: bytes) -> Reply:
    """Write these bytes."""
    return lambda talk: _write(talk, data)


def _write(talk: Talk, data: bytes) -> None:
    talk.write(data)


def response(code: int, content_type: str, body: bytes, headers: str = "") -> bytes:
    """Return a whole answer; `headers` are whole lines."""
    head = f"HTTP/1.1 {code} X\r\nContent-Type: {content_type}\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def document(**fields: object) -> Reply:
    """Answer 200 with a JSON object."""
    return raw(response(200, "application/json", json.dumps(fields).encode()))


def state(word: str) -> Reply:
    """Say that the job is in a state."""
    return lambda talk: document(id=talk.job_id, status=word)(talk)


def timeline(*steps: tuple[float, str]) -> Reply:
    """Be in each state from so many seconds after the job was made."""

    def reply(talk: Talk) -> None:
        word = [word for from_s, word in steps if from_s <= talk.age_s][-1]
        state(word)(talk)

    return reply


def status(code: int, headers: str = "", body: bytes = b'{"error":"x"}') -> Reply:
    """Answer another status; `headers` are whole lines."""
    return raw(response(code, "application/json", body, headers))


def html() -> Reply:
    """Answer 200 with a page that wants a login."""
    return raw(response(200, "text/html", b"<!doctype html><title>succeeded</title>"))


def truncated() -> Reply:
    """Answer JSON that ends in the middle, with a length that says it is whole."""
    return raw(response(200, "application/json", b'{"id": "job", "status": "succee'))


def drip(pause_s: float = 0.05) -> Reply:
    """Announce an answer and send it a byte at a time, for ever."""

    def reply(talk: Talk) -> None:
        talk.write(b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n{")
        while not talk.closing.wait(pause_s):
            talk.write(b" ")

    return reply


def endless() -> Reply:
    """Send a body without end as fast as it is read."""

    def reply(talk: Talk) -> None:
        talk.write(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not talk.closing.is_set():
            talk.write(b"10000\r\n" + b" " * 65_536 + b"\r\n")

    return reply


class HangUp(Exception):  # noqa: N818  # it says what happens
    """Raised by a reply: the connection is closed."""


def hang_up() -> Reply:
    """Take the request and close the connection."""

    def reply(_talk: Talk) -> None:
        raise HangUp

    return reply


def half_a_body() -> Reply:
    """Announce a body, send half of it and close."""

    def reply(talk: Talk) -> None:
        talk.write(b'HTTP/1.1 200 X\r\nContent-Length: 80\r\n\r\n{"id":"j","status":"succeeded"')
        raise HangUp

    return reply


def silence() -> Reply:
    """Take the request and never answer."""
    return _silent


def _silent(talk: Talk) -> None:
    talk.closing.wait()
