"""A client of short deadlines, and one authorised call of what a test serves on loopback."""

from collections.abc import Sequence

import httpx
import pytest

from reconciler.providers.answer import Answer
from reconciler.providers.client import Limits, ProviderClient
from reconciler.providers.egress import Allowed, Policy, Resolver
from reconciler.providers.errors import ProviderUnavailableError
from reconciler.providers.request import Outbound
from tests.support.loopback import Script, serving

LIMITS = Limits(total_s=0.5, connect_s=0.3, body_bytes_max=64 * 1024)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
PUBLIC = "93.184.216.34"
SECRET = "Bearer hunter2-hunter2"


def policy_for(*ports: int, scheme: str = "http") -> Policy:
    """Allow loopback at these ports."""
    return Policy(allowed=tuple(Allowed.parse(f"{scheme}://127.0.0.0/8:{port}") for port in ports))


def resolver_of(*answers: str) -> Resolver:
    """Make a resolver that always gives these answers."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return answers

    return resolve


async def call(script: Script, limits: Limits = LIMITS, path: str = "/jobs/1") -> Answer:
    """Serve `script` on loopback and send it one authorised GET."""
    async with serving(script) as server:
        client = ProviderClient(policy_for(server.port), limits=limits)
        try:
            headers = (("Authorization", SECRET),)
            return await client.send(Outbound("GET", server.url + path, headers))
        finally:
            await client.aclose()


async def failing(script: Script) -> tuple[str, bool]:
    """Call a script that yields no answer; return slug and ambiguity."""
    with pytest.raises(ProviderUnavailableError) as caught:
        await call(script)
    return caught.value.slug, caught.value.ambiguous


Dialled = list[httpx.Request]


class Recorder(httpx.AsyncBaseTransport):
    """A dialler that dials nothing and remembers what it was told to dial."""

    def __init__(self, dialled: list[httpx.Request]) -> None:
        self._dialled = dialled

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer every request with an empty object."""
        self._dialled.append(request)
        return httpx.Response(200, headers={"Content-Length": "2"}, stream=httpx.ByteStream(b"{}"))
