"""The protocol object over a transport in memory: any bytes, any segments, any wait."""

import asyncio
import itertools
import logging
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.config import Config

from gateway.http.body import Disconnected, Room, read_body
from gateway.http.front import Front
from gateway.http.limits import HttpLimits
from gateway.http.protocol import GuardedProtocol

TABLE = Path(__file__).parents[3] / "conformance" / "raw_http" / "cases.toml"
RAW = sorted(
    {
        "".join(case["send"]).encode("latin-1")
        for case in tomllib.loads(TABLE.read_text(encoding="utf-8"))["case"]
        if case["send"] and all(isinstance(step, str) for step in case["send"])
    }
)
NO_BODY = [(b"content-length", b"0")]
HEAD = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n"


class MemoryTransport(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.ended = False
        self.closed = False
        self.aborted = False
        self.paused = False

    def write(self, data: Any) -> None:
        """Keep the data."""
        assert not self.ended
        self.written += data

    def write_eof(self) -> None:
        """Nothing is written after this."""
        self.ended = True

    def close(self) -> None:
        """End the connection."""
        self.ended = self.closed = True

    def abort(self) -> None:
        """End the connection at once."""
        self.ended = self.closed = self.aborted = True

    def is_closing(self) -> bool:
        """Tell whether `close` was called."""
        return self.closed

    def pause_reading(self) -> None:
        """Note it."""
        self.paused = True

    def resume_reading(self) -> None:
        """Note it."""
        self.paused = False

    def get_write_buffer_size(self) -> int:
        """Nothing is ever taken."""
        return 1


class Wire:
    """One connection to an application that echoes what it saw into `seen`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, reads: bool = True) -> None:
        self._loop = loop
        self._reads = reads
        self.seen: list[tuple[str, bytes, Any]] = []
        config = Config(self.app, interface="asgi3", lifespan="off", ws="none", log_config=None)
        config.load()
        self.front = Front(HttpLimits())
        self.transport = MemoryTransport()
        self.protocol = GuardedProtocol(config, self.front, {}, loop)
        self.protocol.connection_made(self.transport)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body, answer 200."""
        if not self._reads:
            await asyncio.sleep(3600)
        body = await read_body(scope, receive, 1 << 20, Room(1 << 30))
        self.seen.append((scope["method"], scope["raw_path"], body))
        await send({"type": "http.response.start", "status": 200, "headers": NO_BODY})
        await send({"type": "http.response.body", "body": b""})

    def feed(self, *segments: bytes) -> "Wire":
        """Hand over the segments, and let the application run after each."""
        for segment in segments:
            self.protocol.data_received(segment)
            self._loop.run_until_complete(asyncio.sleep(0))
        return self.settle()

    def settle(self) -> "Wire":
        """Let the application come to rest."""
        for _ in range(40):
            self._loop.run_until_complete(asyncio.sleep(0))
        return self

    def wait(self, seconds: float) -> "Wire":
        """Let the sweep come by after so long a silence."""
        self.protocol.check_deadlines(self._loop.time() + seconds)
        return self.settle()

    def outcome(self) -> tuple[bytes, bool, list[tuple[str, bytes, Any]]]:
        """Return answers, whether we ended the connection, and the requests seen with a body.

        A request whose body is refused may have been started before, or not: it sees no body.
        """
        ended = self.transport.ended
        self.protocol.connection_lost(None)
        self.settle()
        seen = [each for each in self.seen if not isinstance(each[2], Disconnected)]
        return self.transport.written, ended, seen


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Return a loop that runs only when it is asked to."""
    loop = asyncio.new_event_loop()
    yield loop
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def cut(raw: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return the bytes in segments."""
    places = [0, *sorted({place % (len(raw) + 1) for place in cuts}), len(raw)]
    return [raw[a:b] for a, b in itertools.pairwise(places) if a != b]


@settings(deadline=None)
@given(
    raw=st.sampled_from(RAW),
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    cuts=st.lists(st.integers(0, 400), max_size=4),
)
def test_segments_carry_no_meaning(
    loop: asyncio.AbstractEventLoop,
    raw: bytes,
    edits: list[tuple[int, int]],
    cuts: list[int],
) -> None:
    """Any bytes in any segments are judged alike, raise nothing and log no error of ours."""
    broken = bytearray(raw)
    for place, byte in edits:
        broken[place % len(broken)] = byte
    errors: list[logging.LogRecord] = []
    watch = logging.Handler(logging.ERROR)
    watch.emit = errors.append  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(watch)
    try:
        whole = Wire(loop).feed(bytes(broken)).outcome()
        pieces = Wire(loop).feed(*cut(bytes(broken), cuts)).outcome()
    finally:
        logging.getLogger("uvicorn.error").removeHandler(watch)

    assert whole == pieces
    assert errors == []


@pytest.mark.parametrize(
    ("segments", "patience_s", "expected"),
    [
        ([], 10, b""),
        ([b"POST"], 10, b"408"),
        ([HEAD], 20, b"408"),
        ([b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"], 75, b"200"),
        ([b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"GET"], 10, b"200"),
    ],
    ids=["silence", "head", "body", "idle", "second head"],
)
def test_deadlines_as_shipped(
    loop: asyncio.AbstractEventLoop, segments: list[bytes], patience_s: float, expected: bytes
) -> None:
    """F40, F44: 10 s for a head or for the first byte, 20 s for a body, 75 s of idleness."""
    patient = Wire(loop).feed(*segments).wait(patience_s - 0.5)
    impatient = Wire(loop).feed(*segments).wait(patience_s + 0.1)

    assert (patient.transport.ended, impatient.transport.ended) == (False, True)
    assert expected == impatient.transport.written[9:12]


def test_body_before_a_head_is_not_counted_to_it(loop: asyncio.AbstractEventLoop) -> None:
    """A segment with 50,000 bytes of one body and the start of the next head is lawful."""
    wire = Wire(loop).feed(HEAD, b"x" * 50_000, b"x" * 50_000 + b"GET /y HTTP/1.1\r\nHo")

    wire.feed(b"st: h\r\n\r\n")

    assert [path for _, path, _ in wire.seen] == [b"/x", b"/y"]


def test_peer_is_not_blamed_for_our_pause(loop: asyncio.AbstractEventLoop) -> None:
    """While we do not read, because the application does not, no deadline of the peer runs."""
    wire = Wire(loop, reads=False).feed(HEAD, b"x" * 70_000)
    paused = wire.transport.paused
    wire.wait(100)

    wire.protocol.flow.resume_reading()
    wire.wait(105)

    assert (paused, wire.transport.ended) == (True, False)


def test_body_must_go_on_at_the_rate(loop: asyncio.AbstractEventLoop) -> None:
    """Bytes of the first stretch do not buy silence in the second."""
    wire = Wire(loop, reads=False).feed(HEAD, b"x" * 60_000)
    first = wire.wait(21).transport.ended

    second = wire.wait(42).transport.ended

    assert (first, second) == (False, True)


def test_reader_is_measured_afresh_after_each_pause(loop: asyncio.AbstractEventLoop) -> None:
    """Two pauses at the same fill are not one stall; one pause of 30 s is."""
    wire = Wire(loop)
    wire.protocol.pause_writing()
    wire.wait(1)
    wire.protocol.resume_writing()
    wire.protocol.pause_writing()
    wire.wait(60)
    second_pause = wire.transport.aborted

    stalled = wire.wait(91).transport.aborted

    assert (second_pause, stalled) == (False, True)


@pytest.mark.parametrize(
    "raw", [b"NONSENSE\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", HEAD + b"x" * 200_000]
)
def test_refused_peer_is_read_on(loop: asyncio.AbstractEventLoop, raw: bytes) -> None:
    """Closing on unread input would reset the connection, and the answer with it."""
    wire = Wire(loop).feed(raw)

    assert (wire.transport.ended, wire.transport.closed) == (True, False)


def test_application_learns_of_a_broken_body_at_once(loop: asyncio.AbstractEventLoop) -> None:
    """A handler does not wait for a body that will never be complete."""
    chunked = b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

    assert Wire(loop).feed(chunked, b"ZZ\r\n").seen == [("POST", b"/x", Disconnected())]


def test_farewell_is_bounded(loop: asyncio.AbstractEventLoop) -> None:
    """Who goes on sending after a refusal is read for two seconds, then cut off."""
    wire = Wire(loop).feed(b"NONSENSE\r\n\r\n", b"more")
    lingering = wire.wait(1.5).transport.aborted

    cut_off = wire.wait(2.1).transport.aborted

    assert (lingering, cut_off) == (False, True)


def test_refusals_are_counted_by_slug(loop: asyncio.AbstractEventLoop) -> None:
    """The operator sees why senders are refused; the senders do not."""
    wire = Wire(loop).feed(b"GET /x HTTP/1.1\r\n\r\n")

    assert dict(wire.front.refusals) == {"http_host": 1}


def test_pause_of_reading_ends_with_a_refusal(loop: asyncio.AbstractEventLoop) -> None:
    """A refused peer is read again, or it would never learn of its refusal."""
    wire = Wire(loop, reads=False).feed(
        b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"11170\r\n" + b"x" * 70_000 + b"\r\nZZ"
    )

    assert (wire.transport.paused, wire.transport.written[9:12]) == (False, b"400")
