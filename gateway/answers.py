"""What the public listener answers: one table, every answer prepared once.

A public caller learns nothing (R6): every failure of authentication is one and the same 401, and a
new event, a duplicate and a conflict are one and the same acknowledgement.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from verifiers.preset import Ack

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

#: What we ask a provider to wait for when the store cannot take an event.
RETRY_AFTER_S = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """Two ASGI messages, ready to be sent as often as needed."""

    start: Mapping[str, Any]
    body: Mapping[str, Any]

    async def send(self, send: Send) -> None:
        """Send the answer."""
        await send(self.start)
        await send(self.body)


def acknowledgement(ack: Ack) -> Answer:
    """Return what the provider of a preset wants to hear when its event is on disk."""
    headers = [] if ack.content_type is None else [(b"content-type", ack.content_type.encode())]
    return _answer(ack.status, ack.body, headers)


def exactly(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> Answer:
    """Return what a handshake is due."""
    return _answer(status, body, list(headers))


def refused(status: int = HTTPStatus.UNAUTHORIZED, *, bare: bool = False) -> Answer:
    """Return a refusal with a status of its own; a `bare` one has no body (Xero wants it so)."""
    if bare:
        return _answer(status, b"", list(_CHALLENGE))
    return _problem(HTTPStatus(status), *_CHALLENGE)


def wrong_method(allowed: Iterable[str]) -> Answer:
    """Return the answer to a method that a source does not take."""
    return _problem(HTTPStatus.METHOD_NOT_ALLOWED, (b"allow", ", ".join(allowed).encode()), _CLOSE)


def _problem(status: HTTPStatus, *headers: tuple[bytes, bytes]) -> Answer:
    body = b'{"type":"about:blank","title":"%s","status":%d}' % (status.phrase.encode(), status)
    return _answer(status, body, [(b"content-type", b"application/problem+json"), *headers])


def _answer(status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> Answer:
    length = [(b"content-length", str(len(body)).encode())]
    no_content = status == HTTPStatus.NO_CONTENT
    return Answer(
        {
            "type": "http.response.start",
            "status": status,
            "headers": headers + ([] if no_content else length),
        },
        {"type": "http.response.body", "body": b"" if no_content else body},
    )


_CLOSE = (b"connection", b"close")
_RETRY = (b"retry-after", str(RETRY_AFTER_S).encode())

#: RFC 9110 wants a challenge beside 401; this one names no scheme that a caller could try.
_CHALLENGE = ((b"www-authenticate", b"Signature"),)
REFUSED = refused()
UNKNOWN_SOURCE = _problem(HTTPStatus.NOT_FOUND)
WRONG_METHOD = wrong_method(("POST",))
TOO_LARGE = _problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _CLOSE)
UNSUPPORTED = _problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, _CLOSE)
UNAVAILABLE = _problem(HTTPStatus.SERVICE_UNAVAILABLE, _RETRY)
NO_ROOM = _problem(HTTPStatus.SERVICE_UNAVAILABLE, _RETRY, _CLOSE)
