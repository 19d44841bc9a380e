"""A provider that publishes the keys it signs with, on loopback, and a sender that signs with them.

What it answers is the test's to say: `pages` maps a path to whole responses, `slow_s` delays them.
Every request is kept with its time.
"""

import base64
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.wire import request

SCHEME = """
[sources.{name}]
keys_url = "{url}"
[sources.{name}.scheme]
name = "{name}"
signed = "{{header:x-id}}.{{body}}"
retry_horizon_s = 86400
[sources.{name}.scheme.signature]
from = "header:x-signature"
encoding = "hex"
key_name = "header:x-key"
[sources.{name}.scheme.secret]
algorithm = "ed25519"
form = "public-key"
[sources.{name}.scheme.keys]
format = "jwks"
url = "https://keys.acme.test/jwks"
[sources.{name}.scheme.event]
id = "header:x-id"
"""


@dataclass(slots=True)
class SigningKey:
    """A key pair with a name."""

    kid: str
    private: Ed25519PrivateKey = field(default_factory=Ed25519PrivateKey.generate)

    def jwk(self) -> dict[str, str]:
        """Return the public half (RFC 8037)."""
        raw = self.private.public_key().public_bytes_raw()
        x = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
        return {"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": x}

    def headers(self, body: bytes, event_id: str) -> list[tuple[str, str]]:
        """Return the headers of a signed request."""
        signature = self.private.sign(f"{event_id}.".encode() + body).hex()
        return [("X-Id", event_id), ("X-Key", self.kid), ("X-Signature", signature)]

    def raw(self, source: str, event_id: str, body: bytes = b"{}") -> bytes:
        """Return a signed request as bytes."""
        return request("POST", f"/in/{source}", self.headers(body, event_id), body)


def jwks(*keys: SigningKey) -> bytes:
    """Return the set of the keys' public halves."""
    return json.dumps({"keys": [key.jwk() for key in keys]}).encode()


@dataclass(frozen=True, slots=True)
class Page:
    """One response."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class KeyServer:
    """The key server. Use it as a context manager; `down` and `up` as often as needed."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.slow_s = 0.0
        self.asked: list[tuple[float, str, dict[str, str]]] = []
        self.port = 0
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.down()

    @property
    def url(self) -> str:
        """Where the keys are."""
        return f"http://127.0.0.1:{self.port}/jwks"

    def publish(self, *keys: SigningKey, **headers: str) -> None:
        """Publish these keys and no others."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages["/jwks"] = Page(jwks(*keys), 200, named)

    def up(self) -> None:
        """Start to listen, on the same port as before."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_told: Any) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.asked.append((time.monotonic(), handler.path, dict(handler.headers.items())))
        page = self.pages.get(handler.path, Page(b"not here", 404))
        time.sleep(self.slow_s)
        try:
            handler.send_response(page.status)
            for name, value in page.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(page.body)))
            handler.send_header("Connection", "close")
            handler.end_headers()
            handler.wfile.write(page.body)
        except OSError:
            return
        handler.close_connection = True
