"""The client against servers that misbehave, over real sockets on loopback, with short deadlines."""

import asyncio
import gzip
import logging
import socket
import struct
from collections.abc import Sequence

import pytest

from reconciler.providers.client import Limits, ProviderClient
from reconciler.providers.egress import Policy
from reconciler.providers.errors import (
    EgressDeniedError,
    ProviderError,
    ProviderUnavailableError,
)
from reconciler.providers.request import Outbound
from tests.support.calls import (
    LIMITS,
    OK,
    PUBLIC,
    SECRET,
    Dialled,
    Recorder,
    call,
    failing,
    policy_for,
    resolver_of,
)
from tests.support.loopback import Script, answering, serving, trickling

pytestmark = pytest.mark.anyio


_BOMB = gzip.compress(bytes(64 << 20))


# ---------------------------------------------------------------- the good case


async def test_answer_is_raw() -> None:
    """Status, headers in order with repeats, the body's bytes and the dialled address come back."""
    raw = b"HTTP/1.1 201 Created\r\nX-A: 1\r\nx-a: 2\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\xff\x00a\r\n0\r\n\r\n"

    answer = await call(answering(raw))

    assert (
        answer.status,
        answer.body,
        answer.address,
        answer.body_fault,
    ) == (201, b"\xff\x00a", "127.0.0.1", None)
    assert answer.values("X-A") == [b"1", b"2"]


async def test_request_is_what_was_asked_for() -> None:
    """One request goes out: Host of the URL, identity encoding, our headers, the path as written."""
    async with serving(answering(OK)) as server:
        client = ProviderClient(policy_for(server.port), limits=LIMITS)
        await client.send(Outbound("GET", f"{server.url}/jobs/a%2Fb%3F?x='1'", (("A", "b"),)))
        await client.aclose()
        head = server.heads[0].decode().splitlines()

    assert head[0] == "GET /jobs/a%2Fb%3F?x='1' HTTP/1.1"
    assert {f"Host: 127.0.0.1:{server.port}", "Accept-Encoding: identity", "A: b"} <= set(head)


async def test_connections_are_kept_for_the_same_origin() -> None:
    """Calls to one origin share a connection; cookies that it sets are not sent back."""
    raw = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}"
    async with serving(answering(raw)) as server:
        client = ProviderClient(policy_for(server.port), limits=LIMITS)
        for _ in range(3):
            await client.send(Outbound("GET", server.url + "/"))
        await client.aclose()

    assert (server.connections, len(server.heads)) == (1, 3)
    assert not any(b"ookie" in head for head in server.heads)


# ---------------------------------------------------------------- bodies that are none


async def gzip_bomb(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send 64 KiB that would decode to 64 MiB."""
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(_BOMB)}\r\n\r\n"
    writer.write(head.encode() + _BOMB)


async def reset_in_body(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send half a body and a RST."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    await writer.drain()
    await asyncio.sleep(0.05)
    reset(writer)


def reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the kernel sends RST."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    raise ConnectionAbortedError


_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        pytest.param(trickling(_HEAD, b"x", pause_s=0.05), "timeout", id="drip"),
        pytest.param(trickling(_CHUNKED, b"1\r\nx\r\n", pause_s=0.05), "timeout", id="drip-chunks"),
        pytest.param(
            trickling(_CHUNKED, b"1000\r\n" + b"x" * 4096 + b"\r\n", pause_s=0),
            "too_large",
            id="endless-body",
        ),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n" + b"x" * 65537),
            "too_large",
            id="one-byte-too-many",
        ),
        pytest.param(gzip_bomb, "content_encoding", id="gzip-bomb"),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nContent-Encoding: x\r\nContent-Length: 2\r\n\r\n{}"),
            "content_encoding",
            id="unknown-encoding",
        ),
        pytest.param(answering(_HEAD + b"half", close=True), "truncated", id="truncated"),
        pytest.param(answering(_CHUNKED + b"5\r\nhalf", close=True), "truncated", id="cut-chunk"),
        pytest.param(reset_in_body, "reset", id="reset"),
        pytest.param(
            answering(b"HTTP/1.0 200 OK\r\n\r\n{}", close=True), "unframed", id="close-delimited"
        ),
    ],
)
async def test_bodies_that_cannot_be_trusted(script: Script, fault: str) -> None:
    """SC-71: a body that trickles, floods, is packed, cut or unframed is none; the status stands."""
    answer = await call(script)

    assert (200, b"", fault) == (answer.status, answer.body, answer.body_fault)
    assert answer.elapsed_ms < 1500


async def test_body_at_the_cap_is_whole() -> None:
    """A body of exactly the cap is read."""
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + b"x" * 65536

    assert len((await call(answering(raw))).body) == 65536


@pytest.mark.parametrize(
    "raw", [b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\n\r\n"]
)
async def test_answers_without_a_body(raw: bytes) -> None:
    """204 and 304 have no body by definition, and that is no fault."""
    assert (await call(answering(raw))).body_fault is None


# ---------------------------------------------------------------- heads that never come


async def hang(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Say nothing."""
    await asyncio.sleep(10)


async def reset_at_once(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send RST instead of an answer."""
    reset(writer)


@pytest.mark.parametrize(
    ("script", "slug"),
    [
        pytest.param(hang, "timeout", id="hang"),
        pytest.param(trickling(b"HTTP/1.1 200 OK\r\n", b"X", pause_s=0.05), "timeout", id="drip"),
        pytest.param(
            trickling(b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"y" * 4000 + b"\r\n", pause_s=0),
            "bad_http",
            id="endless-headers",
        ),
        pytest.param(
            trickling(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", pause_s=0.01),
            "timeout",
            id="endless-1xx",
        ),
        pytest.param(
            trickling(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100, pause_s=0),
            "timeout",
            id="flood-of-1xx",
        ),
        pytest.param(answering(b"", close=True), "no_answer", id="fin"),
        pytest.param(reset_at_once, "reset", id="rst"),
        pytest.param(answering(b"SSH-2.0-OpenSSH_9\r\n\r\n"), "bad_http", id="other-protocol"),
        pytest.param(
            answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
            "bad_http",
            id="101",
        ),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\nContent-Length: 0\r\n\r\n"),
            "bad_http",
            id="fat-head",
        ),
    ],
)
async def test_no_response_head(script: Script, slug: str) -> None:
    """SC-71: no head, or none that ends, is an error within the deadline; the request may have come."""
    assert (slug, True) == await asyncio.wait_for(failing(script), 2)


async def test_refused_connections_leave_no_doubt() -> None:
    """A refused connection means that nothing was sent."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        client = ProviderClient(policy_for(port), limits=LIMITS)
        with pytest.raises(ProviderUnavailableError) as caught:
            await client.send(Outbound("GET", f"http://127.0.0.1:{port}/"))
        await client.aclose()

    assert (caught.value.slug, caught.value.ambiguous) == ("connect_failed", False)


async def test_slow_lookups_end_at_the_deadline() -> None:
    """A resolver that hangs ends in a timeout that leaves no doubt."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        await asyncio.sleep(10)
        return ()

    client = ProviderClient(Policy(), resolver=resolve, limits=LIMITS)
    with pytest.raises(ProviderUnavailableError) as caught:
        await client.send(Outbound("GET", "https://example.com/"))

    assert (caught.value.slug, caught.value.ambiguous) == ("timeout", False)


async def test_cancellation_is_not_swallowed() -> None:
    """Whoever cancels a call gets his cancellation, not a timeout."""
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(hang, Limits(total_s=30)), 0.2)


# ---------------------------------------------------------------- secrets and headers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer hunter2\r\nX-Evil: 1"),
        ("Authorization", "Bearer hunter2\n"),
        ("Authorization", "Bearer hunter2é"),
        ("Authorization", ""),
        ("Bad Name", "hunter2"),
        ("X\r\nY", "hunter2"),
        ("Host", "hunter2"),
        ("Content-Length", "5"),
        ("transfer-encoding", "chunked"),
        ("Accept-Encoding", "gzip"),
    ],
)
async def test_headers_that_may_not_be_sent(name: str, value: str) -> None:
    """SC-74: a header that would break out of its line or frame is refused without being quoted."""
    dialled = Dialled()
    client = ProviderClient(
        Policy(), resolver=resolver_of(PUBLIC), transport_factory=lambda: Recorder(dialled)
    )
    with pytest.raises(EgressDeniedError) as caught:
        await client.send(Outbound("GET", "https://example.com/", ((name, value),)))

    assert (caught.value.slug, dialled) == ("bad_header", [])
    assert "hunter2" not in str(caught.value)


async def test_credentials_are_in_no_message(caplog: pytest.LogCaptureFixture) -> None:
    """Neither logs at their loudest, nor reprs, nor errors hold the credential."""
    caplog.set_level(logging.DEBUG)
    request = Outbound("GET", "http://127.0.0.1:1/", (("Authorization", SECRET),), SECRET.encode())
    texts = [repr(request), repr(await call(answering(OK)))]
    for script in (answering(b"", close=True), answering(b"nonsense\r\n\r\n"), hang):
        with pytest.raises(ProviderError) as caught:
            await call(script)
        error: BaseException | None = caught.value
        texts += [str(error), repr(error), repr(caught.value.__cause__)]
    texts += [record.getMessage() for record in caplog.records]

    assert not any("hunter2" in text for text in texts)
