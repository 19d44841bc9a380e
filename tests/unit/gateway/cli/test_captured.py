"""Captured requests: raw HTTP and HAR, byte for byte."""

import base64
import json
from pathlib import Path
from typing import Any

import click
import pytest

from gateway.cli.captured import parse_capture
from tests.support.canned_api import Run
from tests.support.vectors import SECRET


def har(*requests: dict[str, Any]) -> bytes:
    """Return a HAR of these requests."""
    filled = [
        {"method": "POST", "url": "https://a.example/in", "headers": [], **r} for r in requests
    ]
    return json.dumps({"log": {"entries": [{"request": one} for one in filled]}}).encode()


@pytest.mark.parametrize("line", [b"\n", b"\r\n"])
def test_raw_http_is_taken_as_it_stands(line: bytes) -> None:
    """Names become lower case; values, order, repeats and the body's own line ends stay."""
    lines = [b"POST /in/a?b=1 HTTP/1.1", b"Host: a.example", b"X-A: 1 ", b"x-a:2", b"", b"a\r\nb\n"]
    found = parse_capture(line.join(lines))

    assert found.headers == ((b"host", b"a.example"), (b"x-a", b"1 "), (b"x-a", b"2"))
    assert (found.method, found.url) == ("POST", "https://a.example/in/a?b=1")
    assert found.body == b"a\r\nb\n"


def test_a_line_break_of_an_editor_is_not_the_body() -> None:
    """Content-Length says where the body ends."""
    head = b"POST / HTTP/1.1\nContent-Length: 2\n\n"

    assert parse_capture(head + b"{}\n").body == b"{}"


def test_a_har_is_read() -> None:
    """Headers without pseudo headers, the text of the body, or its base64."""
    headers = [{"name": ":method", "value": "POST"}, {"name": "X-A", "value": "é"}]
    text = {"headers": headers, "postData": {"text": "é"}}
    packed = {"postData": {"text": base64.b64encode(b"\xff").decode(), "encoding": "base64"}}
    raw = har(text, packed)

    first, second = parse_capture(raw, 1), parse_capture(raw, 2)
    assert first.headers == ((b"x-a", "é".encode("latin-1")),)
    assert (first.body, second.body) == ("é".encode(), b"\xff")
    assert parse_capture(har({})).body == b""


@pytest.mark.parametrize(
    ("raw", "entry", "told"),
    [
        (har({}, {}), None, "2 requests in the HAR"),
        (har({}), 2, "there are 1 requests"),
        (b"{}", None, "not a HAR"),
        (b'{"log": {"entries": [{}]}}', None, "not a HAR"),
        (b"hello", None, "neither a HAR nor"),
        (b"POST / HTTP/1.1\n\n", 1, "this is none"),
        (b"POST / HTTP/1.1\nno colon\n\n", None, "line 2 is not"),
        (b"POST / HTTP/1.1\ncontent-length: 9\n\n{}", None, "the body is cut"),
        (b"POST / HTTP/1.1\ntransfer-encoding: chunked\n\n2", None, "a chunked body"),
    ],
)
def test_what_cannot_be_read_is_said(raw: bytes, entry: int | None, told: str) -> None:
    """A mistake in a capture is a usage error that names it."""
    with pytest.raises(click.UsageError, match=told):
        parse_capture(raw, entry)


def test_a_request_is_explained_from_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify --explain --request` names the near miss: here a header under another name."""
    monkeypatch.setenv("GOOD", SECRET)
    raw = Path("raw")
    raw.write_bytes(b"POST /in HTTP/1.1\nStripe-Signatur: t=1,v1=00\n\n{}")
    words = ("verify", "--preset", "stripe", "--secret", "env:GOOD", "--explain")
    result = run(*words, "--request", str(raw))

    assert result.exit_code == 1
    assert "there is a header 'stripe-signatur'" in result.stdout
    assert run(*words, "--request", "raw", "--body", "raw").exit_code == 2
    assert run(*words).exit_code == 2
