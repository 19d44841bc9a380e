"""HTTP by hand: requests as bytes, answers as what stood on the wire."""

import json
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

Headers = Iterable[tuple[str, str]]

#: Longer than anything that a test waits for on purpose.
PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; header names are in lower case, in the order in which they came."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """Return the one header of that name, or `None`."""
        values = [value for found, value in self.headers if found == name]
        assert len(values) <= 1, values
        return values[0] if values else None

    def without_date(self) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        """Return all that a caller could compare."""
        kept = tuple(pair for pair in self.headers if pair[0] != "date")
        return self.status, kept, self.body


class Closed(Exception):  # noqa: N818  # an outcome that tests expect
    """The peer closed the connection without a whole answer."""


def request(method: str, path: str, headers: Headers = (), body: bytes = b"") -> bytes:
    """Return a request with Host and, where there is a body, Content-Length."""
    lines = [f"{method} {path} HTTP/1.1", "Host: gateway.test"]
    lines += [f"{name}: {value}" for name, value in headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Connection:
    """One connection to a listener on loopback."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def exchange(self, data: bytes) -> Answer:
        """Send a request and return its answer."""
        self.send(data)
        return self.answer()

    def answer(self) -> Answer:
        """Return the next answer; raises `Closed` if there is none."""
        head = self._until(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        pairs = (line.partition(":") for line in lines)
        headers = tuple((name.lower(), value.strip()) for name, _, value in pairs)
        length = int(dict(headers).get("content-length", "0"))
        return Answer(int(first.split(" ")[1]), headers, self._exactly(length))

    def is_closed(self) -> bool:
        """Wait for the peer to close; false if it sends something instead."""
        try:
            return not self._read and self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def _until(self, end: bytes) -> bytes:
        while end not in self._read:
            self._more()
        found, _, self._read = self._read.partition(end)
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self._read) < count:
            self._more()
        found, self._read = self._read[:count], self._read[count:]
        return found

    def _more(self) -> None:
        try:
            data = self._socket.recv(65_536)
        except ConnectionError as error:
            raise Closed from error
        if not data:
            raise Closed
        self._read += data


def exchange(port: int, data: bytes) -> Answer:
    """Send a request on a connection of its own and return the answer."""
    with Connection(port) as connection:
        return connection.exchange(data)
