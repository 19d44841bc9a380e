"""Captured requests as people have them: headers and body apart, raw HTTP, or a HAR.

What was captured is taken byte for byte; nothing is trimmed or decoded beyond the notation itself.
Every mistake in a file is a usage error that says what was expected.
"""

import base64
import binascii
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from verifiers.request import RawRequest

if TYPE_CHECKING:
    from collections.abc import Callable

Headers = tuple[tuple[bytes, bytes], ...]
F = TypeVar("F", bound="Callable[..., Any]")

_INPUT = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_LINE_PARTS = 3
_LENGTH = re.compile(rb"[0-9]{1,10}")


def capture_options(command: F) -> F:
    """Add the options that say where a captured request is."""
    for option in (
        click.option("--entry", type=int, help="Which request of a HAR, counted from 1."),
        click.option(
            "--request", "whole", type=_INPUT, help="A raw HTTP request or a HAR; - is stdin."
        ),
        click.option("--method", help="Default: the captured one, or POST."),
        click.option("--url", default="", help="The URL that the sender used."),
        click.option("--body", type=_INPUT, help="The raw body; - is stdin."),
        click.option(
            "--headers", type=_INPUT, help="JSON pairs, or a `Name: value` a line; - is stdin."
        ),
    ):
        command = option(command)
    return command


def captured(
    *,
    headers: Path | None,
    body: Path | None,
    whole: Path | None,
    entry: int | None,
    url: str,
    method: str | None,
) -> RawRequest:
    """Return the request that the options name."""
    if whole is not None:
        if headers is not None or body is not None:
            raise click.UsageError("--request holds headers and body; leave --headers and --body")
        found = parse_capture(read(whole), entry)
        return RawRequest(method or found.method, url or found.url, found.headers, found.body)
    if headers is None or body is None:
        raise click.UsageError("give --headers and --body, or the whole as --request")
    if str(headers) == str(body) == "-":
        raise click.UsageError("--headers and --body cannot both be stdin")
    return RawRequest(method or "POST", url, parse_headers(read(headers)), read(body))


def read(path: Path) -> bytes:
    """Return a file's bytes, or those of stdin for `-`."""
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def parse_headers(raw: bytes) -> Headers:
    """Return header pairs from JSON pairs or from `Name: value` lines, names in lower case.

    Order and repeats stay. The request line of a raw capture and an empty last line are skipped.
    """
    if raw.lstrip().startswith(b"["):
        try:
            return tuple((_octets(n).lower(), _octets(v)) for n, v in json.loads(raw))
        except (ValueError, TypeError, AttributeError):
            raise click.UsageError("--headers: not a JSON list of [name, value] pairs") from None
    lines = raw.replace(b"\r\n", b"\n").split(b"\n")
    if lines[0].startswith((b"POST ", b"PUT ", b"GET ")):
        lines[0] = b""
    return _pairs(lines, "--headers")


def parse_capture(raw: bytes, entry: int | None = None) -> RawRequest:
    """Return the request of a HAR (which one: `entry`, counted from 1) or of raw HTTP."""
    if raw.lstrip().startswith(b"{"):
        return _from_har(raw, entry)
    if entry is not None:
        raise click.UsageError("--entry counts the requests of a HAR; this is none")
    return _from_http(raw)


def _from_http(raw: bytes) -> RawRequest:
    """Read `METHOD TARGET HTTP/1.1`, header lines, an empty line, and the body as it stands."""
    ends = [(raw.find(mark), mark) for mark in (b"\r\n\r\n", b"\n\n") if mark in raw]
    at, mark = min(ends, default=(len(raw), b""))
    first, *lines = raw[:at].replace(b"\r\n", b"\n").split(b"\n")
    parts = first.split(b" ")
    if len(parts) != _LINE_PARTS or not parts[2].startswith(b"HTTP/"):
        raise click.UsageError("--request: neither a HAR nor `METHOD TARGET HTTP/1.1` and lines")
    headers = _pairs(lines, "--request", 2)
    method, target = parts[0].decode("latin-1"), parts[1].decode("latin-1")
    host = next((v for n, v in headers if n == b"host"), b"").decode("latin-1")
    url = target if "://" in target else f"https://{host}{target}"
    return RawRequest(method, url, headers, _body(headers, raw[at + len(mark) :]))


def _body(headers: Headers, rest: bytes) -> bytes:
    """Return what Content-Length says: an editor may have added a line break behind it."""
    if any(name == b"transfer-encoding" for name, _ in headers):
        raise click.UsageError("--request: a chunked body; give it joined, with --headers --body")
    lengths = [int(v) for n, v in headers if n == b"content-length" and _LENGTH.fullmatch(v)]
    if lengths and lengths[0] > len(rest):
        raise click.UsageError(
            f"--request: the body is cut: {len(rest)} bytes of {lengths[0]} (Content-Length)"
        )
    return rest[: lengths[0]] if lengths else rest


def _from_har(raw: bytes, entry: int | None) -> RawRequest:
    try:
        entries = json.loads(raw)["log"]["entries"]
        count = len(entries)
        if entry is None and count != 1:
            raise click.UsageError(
                f"--request: {count} requests in the HAR; say --entry 1..{count}"
            )
        number = entry or 1
        if not 1 <= number <= count:
            raise click.UsageError(f"--entry: there are {count} requests in the HAR")
        found = entries[number - 1]["request"]
        pairs = [(_octets(h["name"]).lower(), _octets(h["value"])) for h in found["headers"]]
        headers = tuple(pair for pair in pairs if not pair[0].startswith(b":"))
        data = found.get("postData") or {}
        return RawRequest(str(found["method"]), str(found["url"]), headers, _posted(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise click.UsageError(f"--request: not a HAR that can be read ({what})") from None


def _posted(data: dict[str, Any]) -> bytes:
    text = data.get("text") or ""
    if data.get("encoding") != "base64":
        return bytes(text.encode("utf-8", "surrogatepass"))
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError("the body is no base64") from None


def _pairs(lines: list[bytes], option: str, first: int = 1) -> Headers:
    pairs = []
    for number, line in enumerate(lines, first):
        if not line:
            continue
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise click.UsageError(f"{option}: line {number} is not `Name: value`")
        # One space after the colon belongs to the notation; more is part of what came.
        pairs.append((name.lower(), value.removeprefix(b" ")))
    return tuple(pairs)


def _octets(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
