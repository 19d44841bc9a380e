"""A sender of Standard Webhooks, written from its specification: no code shared with the product.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support.wire import request


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed request, still in parts so that a test can change one after signing."""

    path: str
    event_id: str
    timestamp: str
    signature: str
    body: bytes

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers."""
        return [
            ("Content-Type", "application/json"),
            ("webhook-id", self.event_id),
            ("webhook-timestamp", self.timestamp),
            ("webhook-signature", self.signature),
        ]

    def raw(self) -> bytes:
        """Return the request as bytes."""
        return request("POST", self.path, self.headers(), self.body)


def new_secret() -> str:
    """Return a fresh signing secret as a provider shows it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()


@dataclass(frozen=True, slots=True)
class Sender:
    """One configured sender: its source's name and its secret."""

    source: str
    secret: str = field(default_factory=new_secret, repr=False)

    def sign(self, body: bytes, *, event_id: str | None = None, at: int | None = None) -> Signed:
        """Sign a body; a fresh id and the present time unless told otherwise."""
        event_id = event_id or f"msg_{secrets.token_hex(8)}"
        timestamp = str(int(time.time()) if at is None else at)
        key = base64.b64decode(self.secret.removeprefix("whsec_"))
        content = f"{event_id}.{timestamp}.".encode() + body
        digest = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
        return Signed(f"/in/{self.source}", event_id, timestamp, f"v1,{digest}", body)

    def about(self, job_id: str, status: str, **kwargs: Any) -> Signed:
        """Sign what a provider would say about a job."""
        document = {"type": f"job.{status}", "data": {"job_id": job_id, "status": status}}
        return self.sign(json.dumps(document).encode(), **kwargs)
