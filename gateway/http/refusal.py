"""What the HTTP front refuses before any route is asked, and the fixed answer to it.

The answers are constants: nothing of the request is in them, and all reasons with one status give
the same bytes. The reason goes into a counter (`Front.refusals`) under its slug.
"""

from enum import Enum
from http import HTTPStatus


def _answer(status: int) -> bytes:
    phrase = HTTPStatus(status).phrase
    retry = "retry-after: 1\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    return (
        f"HTTP/1.1 {status} {phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        f"content-length: {len(phrase) + 1}\r\n"
        f"{retry}"
        "connection: close\r\n"
        "\r\n"
        f"{phrase}\n"
    ).encode("ascii")


class Refusal(Enum):
    """Slug for counters and logs, status for the wire."""

    MALFORMED = ("http_malformed", 400)
    VERSION = ("http_version", 400)
    HOST = ("http_host", 400)
    TARGET = ("http_target", 400)
    TRANSFER_ENCODING = ("http_transfer_encoding", 400)
    UPGRADE = ("http_upgrade", 400)
    HEAD_TOO_SLOW = ("http_head_too_slow", 408)
    BODY_TOO_SLOW = ("http_body_too_slow", 408)
    BODY_TOO_LARGE = ("http_body_too_large", 413)
    FRAMING_TOO_LARGE = ("http_framing_too_large", 413)
    HEAD_TOO_LARGE = ("http_head_too_large", 431)
    TOO_MANY_PIPELINED = ("http_too_many_pipelined", 503)
    TOO_MANY_CONNECTIONS = ("http_too_many_connections", 503)

    def __init__(self, slug: str, status: int) -> None:
        self.slug = slug
        self.status = status
        self.answer = _answer(status)


class RefusedError(Exception):
    """Raised inside a parser callback, the only way to stop the parser; caught by the protocol."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.slug)
        self.refusal = refusal
