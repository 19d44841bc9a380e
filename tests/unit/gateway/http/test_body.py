"""The body reader, over scripted ASGI messages."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.http.body import BodyTooLarge, Disconnected, Room, read_body

pytestmark = pytest.mark.anyio


def script(*messages: dict[str, Any]) -> tuple[Callable[[], Awaitable[Any]], list[dict[str, Any]]]:
    """Return a `receive` that plays the messages, and the list of those not yet asked for."""
    left = list(messages)

    async def receive() -> dict[str, Any]:
        return left.pop(0)

    return receive, left


def part(body: bytes, *, more: bool) -> dict[str, Any]:
    """Return one ASGI message with a piece of body."""
    return {"type": "http.request", "body": body, "more_body": more}


async def test_body_in_one_piece() -> None:
    """The piece itself is returned."""
    receive, _ = script(part(b"hello", more=False))

    assert (
        await read_body({"headers": [(b"content-length", b"5")]}, receive, 5, Room(1 << 30))
        == b"hello"
    )


async def test_body_in_pieces() -> None:
    """Pieces are joined in order."""
    receive, _ = script(part(b"he", more=True), part(b"", more=True), part(b"llo", more=False))

    assert await read_body({"headers": []}, receive, 5, Room(1 << 30)) == b"hello"


async def test_announced_length_is_refused_unread() -> None:
    """SC-47, F42: not one message is asked for when the announced length is too large."""
    receive, left = script(part(b"x", more=False))

    outcome = await read_body({"headers": [(b"content-length", b"6")]}, receive, 5, Room(1 << 30))

    assert (BodyTooLarge(5), 1) == (outcome, len(left))


async def test_announced_length_may_have_zeros_before_it() -> None:
    """A length behind more digits than int() takes is read, so it never ends in a 500."""
    receive, _ = script(part(b"hello", more=False))
    scope = {"headers": [(b"content-length", b"0" * 5000 + b"5")]}

    assert await read_body(scope, receive, 5, Room(1 << 30)) == b"hello"


async def test_unannounced_length_is_refused_at_the_cap() -> None:
    """A chunked body is read to the cap and not beyond."""
    receive, left = script(*[part(b"xxx", more=True)] * 4)

    outcome = await read_body({"headers": []}, receive, 5, Room(1 << 30))

    assert (BodyTooLarge(5), 2) == (outcome, len(left))


async def test_sender_that_goes_away() -> None:
    """A truncated body is an outcome, never half a body."""
    receive, _ = script(part(b"he", more=True), {"type": "http.disconnect"})

    assert await read_body({"headers": []}, receive, 5, Room(1 << 30)) == Disconnected()
