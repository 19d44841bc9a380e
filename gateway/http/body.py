"""Read the whole body of a request, or say why there is none.

Outcomes are values: too large and gone are things that happen, not errors. Nothing is read when
the announced length is already too large, so a refused sender costs no memory.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

Receive = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class BodyTooLarge:
    """More than `body_bytes_max`, announced or received. Answer 413 with `connection: close`."""

    body_bytes_max: int


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The sender went away, or was refused, before the body was complete. Nobody to answer."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """All connections together hold as many bytes as they may. Answer 503; the sender retries."""


@dataclass(slots=True)
class Room:
    """How many more bytes of bodies this process may hold, over all connections.

    A cap for each body and one for the connections bound memory only by their product.
    """

    left: int


async def read_body(
    scope: Mapping[str, Any], receive: Receive, body_bytes_max: int, room: Room
) -> bytes | BodyTooLarge | Disconnected | NoRoom:
    """Return the body, at most `body_bytes_max` bytes, joined once.

    Its bytes are taken from `room`; whoever got a body gives them back when it lets go of it.
    `scope` and `receive` are those of an ASGI HTTP request behind `GuardedProtocol`, which lets
    at most one Content-Length through, and only digits.
    """
    if _announced_bytes(scope["headers"]) > body_bytes_max:
        return BodyTooLarge(body_bytes_max)
    body: bytes | BodyTooLarge | Disconnected | NoRoom | None = None
    parts: list[bytes] = []
    received = 0
    try:
        while body is None:
            message = await receive()
            part: bytes = message.get("body", b"")
            received += len(part)
            room.left -= len(part)
            parts.append(part)
            if message["type"] == "http.disconnect":
                body = Disconnected()
            elif received > body_bytes_max:
                body = BodyTooLarge(body_bytes_max)
            elif room.left < 0:
                body = NoRoom()
            elif not message.get("more_body", False):
                body = parts[0] if len(parts) == 1 else b"".join(parts)
        return body
    finally:
        if not isinstance(body, bytes):
            room.left += received


def _announced_bytes(headers: list[tuple[bytes, bytes]]) -> int:
    """Return what Content-Length says, 0 without one (a chunked body announces nothing)."""
    for name, value in headers:
        if name == b"content-length":
            # Any number of zeros may stand before it (RFC 9110, 8.6), but int() takes 4,300 digits.
            return int(value.lstrip(b"0") or b"0")
    return 0
