"""Where a ledger is: one URL says server, ledger and what an acknowledgement must have reached.

    redis://[USER@]HOST[:PORT]/?ledger=NAME&replicas=N&ack_timeout_ms=T     rediss:// with TLS
    unix:///PATH?ledger=NAME

The password is never a part of the URL: it is a secret, and the configuration names secrets.
"""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from reconciler.storage.errors import LedgerError

_PORT = 6379
_SCHEMES = ("redis", "rediss", "unix")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
#: What an answer may wait for the replicas; the sender of a webhook waits as long.
ACK_TIMEOUT_MS = 1_500
_ACK_TIMEOUT_MS_MAX = 60_000


@dataclass(frozen=True, slots=True)
class Address:
    """A server, and a ledger on it."""

    ledger: str
    host: str = "127.0.0.1"
    port: int = _PORT
    #: A socket's path takes the place of host and port.
    path: str | None = None
    tls: bool = False
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    #: How many replicas must have written to their disk what is acknowledged.
    replicas: int = 0
    ack_timeout_ms: int = ACK_TIMEOUT_MS

    @property
    def base(self) -> bytes:
        """The prefix of all keys: one hash tag, so that a cluster keeps a ledger together."""
        return b"{vouchback:%s}" % self.ledger.encode()

    def parameters(self) -> dict[str, Any]:
        """Return what the library's connections are made with, whatever their kind.

        Protocol 2, in which nothing arrives that was not asked for.
        """
        place = {"host": self.host, "port": self.port} if self.path is None else {"path": self.path}
        who = {"username": self.user, "password": self.password} if self.password else {}
        return {**place, **who, "client_name": "vouchback", "driver_info": None, "protocol": 2}

    def __str__(self) -> str:
        return f"unix:{self.path}" if self.path else f"{self.host}:{self.port}"


def parse(url: str, password: str | None = None) -> Address:
    """Read a URL; `LedgerError` says what is wrong with it, without the URL itself."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORT
        query = (
            dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=True))
            if parts.query
            else {}
        )
    except ValueError as error:
        raise LedgerError(f"storage.url cannot be read: {error}") from None
    if parts.scheme not in _SCHEMES:
        raise LedgerError(f"storage.url must start with one of {', '.join(_SCHEMES)}")
    if parts.password is not None:
        raise LedgerError("storage.url holds a password; name it in storage.password instead")
    unknown = set(query) - {"ledger", "replicas", "ack_timeout_ms"}
    if unknown:
        raise LedgerError(f"storage.url has unknown settings: {', '.join(sorted(unknown))}")
    is_path = parts.scheme == "unix"
    if not is_path and parts.path not in ("", "/"):
        raise LedgerError("storage.url names a database; a ledger has a name: ?ledger=NAME")
    return Address(
        ledger=_ledger(query.get("ledger", "default")),
        host=parts.hostname or "127.0.0.1",
        port=port,
        path=unquote(parts.path) if is_path else None,
        tls=parts.scheme == "rediss",
        user=parts.username,
        password=password,
        replicas=_number(query, "replicas", 0, 0, 16),
        ack_timeout_ms=_number(query, "ack_timeout_ms", ACK_TIMEOUT_MS, 1, _ACK_TIMEOUT_MS_MAX),
    )


def _ledger(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise LedgerError("storage.url: a ledger's name is lower-case letters, digits and hyphens")
    return name


def _number(query: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    text = query.get(name, str(default))
    if not re.fullmatch(r"[0-9]{1,6}", text) or not least <= int(text) <= most:
        raise LedgerError(f"storage.url: {name} must be a number from {least} to {most}")
    return int(text)
