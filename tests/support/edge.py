"""The gateway's two applications on a real ledger, called in process: no socket, no server."""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from gateway.app import internal_app
from gateway.auth import new_token, token_text
from gateway.config import Config, load_config
from gateway.context import Context, KnownProfile
from gateway.http.body import Room
from gateway.intake import Intake
from gateway.refusals import RefusalLog
from gateway.source import Sources, build_sources
from reconciler.domain.event import ANY, Scope
from reconciler.domain.ids import make_id
from reconciler.domain.token import Role
from reconciler.storage.bodies import Bodies
from reconciler.storage.contract import Blobs, Inbox, Store
from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW
from tests.support.signing import Sender

CONFIG = """
[limits]
body_bytes_max = 4096
[sources.acme]
preset = "standard-webhooks"
project = "shop"
keys = [{ id = "k1", secret = "file:acme.key" }]
profile = "acme"
job_id = "body:/data/job_id"
client_reference = "header:x-reference"
[sources.plain]
preset = "github"
mode = "test"
keys = [{ id = "k1", secret = "file:acme.key" }]
[profiles.acme]
uses = "demo"
project = "shop"
"""


def configured(folder: Path, text: str = CONFIG, sender: Sender | None = None) -> Config:
    """Write a configuration and its secret, and return it as it is read."""
    key = folder / "acme.key"
    key.write_text((sender or Sender("acme")).secret)
    file = folder / "vouchback.toml"
    file.write_text(text.replace("file:acme.key", f"file:{key}"))
    return load_config(file)


@dataclass
class Told:
    """What an ASGI application sent."""

    messages: list[Any] = field(default_factory=list)

    async def __call__(self, message: Any) -> None:
        """Take a message."""
        self.messages.append(message)

    @property
    def status(self) -> int | None:
        """The status, or `None` before there is an answer."""
        return self.messages[0]["status"] if self.messages else None

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The answer's headers."""
        return dict(self.messages[0]["headers"])

    @property
    def body(self) -> bytes:
        """The answer's body."""
        return self.messages[1]["body"]


@dataclass
class Edge:
    """An intake and an API over one ledger, at a time that stands still."""

    store: Store
    config: Config
    sender: Sender
    inbox: Inbox
    acknowledge_s: float = 5.0
    now: int = NOW
    blobs: Blobs | None = None

    def __post_init__(self) -> None:
        numbers = count(1)
        self.new_id = lambda kind: make_id(kind, self.now, next(numbers).to_bytes(10))
        self.sources = Sources(build_sources(self.config))
        self.refusals = RefusalLog(self.store.inbox, lambda: self.now)
        self.room = Room(1 << 20)

    async def post(
        self,
        body: bytes | Sequence[Any] = b"{}",
        headers: Sequence[tuple[bytes, bytes]] | None = None,
        *,
        path: bytes = b"/in/acme",
        method: str = "POST",
        event_id: str = "msg_1",
        told: Told | None = None,
        **scope: Any,
    ) -> Told:
        """Send a request to the intake, signed unless its headers are given."""
        if headers is None:
            assert isinstance(body, bytes)
            headers = self.signed(body, event_id)
        chunks = [body] if isinstance(body, bytes) else list(body)
        messages = iter(
            {"type": "http.request", "body": part, "more_body": n < len(chunks)}
            if isinstance(part, bytes)
            else part
            for n, part in enumerate(chunks, 1)
        )

        async def receive() -> Any:
            return next(messages)

        told = told or Told()
        request = {
            "type": "http",
            "raw_path": path,
            "method": method,
            "headers": list(headers),
            "query_string": b"",
            "client": ("192.0.2.7", 4),
            **scope,
        }
        await self.intake()(request, receive, told)
        return told

    def intake(self) -> Intake:
        """Return the public application."""
        return Intake(
            self.sources,
            self.inbox,
            self.refusals,
            lambda: self.now,
            self.new_id,
            self.acknowledge_s,
            self.room,
        )

    def signed(self, body: bytes, event_id: str = "msg_1", at: int | None = None) -> Any:
        """Return the headers of a signed request."""
        signed = self.sender.sign(
            body, event_id=event_id, at=self.now // 1000 if at is None else at
        )
        return [(name.lower().encode(), value.encode()) for name, value in signed.headers()]

    def context(self) -> Context:
        """Return what the API's handlers use."""

        async def nothing() -> None:
            return None

        async def ready() -> list[str]:
            return []

        return Context(
            store=self.store,
            body=Bodies(self.store.events, self.blobs).read,
            sources=self.sources,
            profiles={"acme": KnownProfile(Scope("shop", "live"), 60_000, by_reference=True)},
            clock=lambda: self.now,
            new_id=self.new_id,
            random=lambda size: b"\x01" * size,
            reload=nothing,
            unready=ready,
        )

    async def token(self, role: Role, project: str = ANY, mode: str = ANY, **fields: Any) -> str:
        """Store a token and return its text."""
        text = token_text(f"{role}/{project}/{mode}/{fields}".encode().ljust(32, b".")[:32])
        if await self.store.tokens.find(_digest(text)) is None:
            token = new_token(
                self.new_id("tok"),
                text,
                scope=Scope(project, mode),
                role=role,
                label="",
                created_by="tests",
                **fields,
            )
            await self.store.tokens.create(token, self.now)
        return text

    async def call(
        self,
        method: str,
        path: str,
        *,
        token: str | None = "admin",
        headers: Any = None,
        **request: Any,
    ) -> httpx.Response:
        """Call the API in process; `token` is a text, or "admin" for one that sees everything."""
        if token == "admin":
            token = await self.token(Role.ADMIN)
        given = list(headers or [])
        if token is not None:
            given.append(("authorization", f"Bearer {token}"))
        transport = httpx.ASGITransport(internal_app(self.context()), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://internal") as client:
            return await client.request(method, path, headers=given, **request)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def about(job_id: Any, **fields: Any) -> bytes:
    """Return an event's body about a job."""
    return json.dumps({"type": "job.done", "data": {"job_id": job_id, **fields}}).encode()


@asynccontextmanager
async def opened(folder: Path, text: str = CONFIG) -> AsyncIterator[Edge]:
    """Open a ledger and give the edge over it."""
    sender = Sender("acme")
    config = configured(folder, text, sender)
    store = open_store(folder / "ledger.db", now=lambda: NOW)
    try:
        yield Edge(store, config, sender, store.inbox)
    finally:
        await store.close()
