"""The demo provider over real sockets on loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from gateway.cli.client import Answer, exchange
from gateway.demo.app import build_app
from gateway.demo.provider import DemoProvider
from gateway.http.limits import HttpLimits
from gateway.http.server import Listener, bind, serve

pytestmark = pytest.mark.anyio
START = 1_796_000_000_000
TOKEN = ("Authorization", "Bearer the-token")


@dataclass
class Served:
    """A provider that listens."""

    provider: DemoProvider
    url: str
    now: int = START

    async def call(
        self, method: str, path: str, body: bytes | None = None, token: tuple[str, str] = TOKEN
    ) -> Answer:
        """Make one call."""
        return await asyncio.to_thread(exchange, self.url, method, path, headers=[token], body=body)


async def _nowhere(_headers: list[tuple[str, str]], _body: bytes) -> int:
    return 200


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """Serve a provider on a free port."""
    sock = bind("127.0.0.1", 0, setting="test")
    provider = DemoProvider(secret=b"s", post=_nowhere, clock=lambda: found.now, random=Random(3))  # noqa: S311
    found = Served(provider, f"http://127.0.0.1:{sock.getsockname()[1]}")
    listener = Listener("demo", build_app(provider, "the-token"), sock, HttpLimits())
    stop, ready = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(
        serve([listener], on_ready=lambda _: ready.set(), stop=stop, grace_s=1)
    )
    await ready.wait()
    yield found
    stop.set()
    await serving


def document(answer: Answer) -> Any:
    """Return the JSON of an answer."""
    return json.loads(answer.body)


async def test_a_job_is_created_and_read_to_its_end(served: Served) -> None:
    """202 with id and Location; the status moves with time; it is found by reference too."""
    made = await served.call("POST", "/jobs", b'{"reference": "order-1"}')
    job = served.provider.jobs[document(made)["id"]]
    path = made.headers["location"]
    states = []
    for at in (job.queued.at, job.running.at, job.ended.at):
        served.now = at
        states.append(document(await served.call("GET", path))["status"])
    found = document(await served.call("GET", "/jobs/by-reference/order-1"))

    assert (made.status, path) == (202, f"/jobs/{job.job_id}")
    assert states == ["queued", "running", job.ended.status]
    assert (found["id"], found["reference"]) == (job.job_id, "order-1")
    assert found["updated_at"].endswith("Z")


@pytest.mark.parametrize("path", ["/jobs/none", "/jobs/by-reference/none"])
async def test_an_unknown_job_is_404(served: Served, path: str) -> None:
    """The provider says clearly that it knows no such job."""
    assert (await served.call("GET", path)).status == 404


@pytest.mark.parametrize("value", ["Bearer wrong", "the-token", "Bearer \xe9", ""])
@pytest.mark.parametrize(("method", "path"), [("POST", "/jobs"), ("GET", "/jobs/x")])
async def test_every_route_wants_the_token(
    served: Served, method: str, path: str, value: str
) -> None:
    """Without the exact token nothing is created or told."""
    answer = await served.call(method, path, b"{}", ("Authorization", value))

    assert (answer.status, served.provider.jobs) == (401, {})


@pytest.mark.parametrize("body", [b"nonsense", b"[]", b'{"reference": 1}', b" " * 5000])
async def test_a_wrong_request_is_400(served: Served, body: bytes) -> None:
    """A body that is no request creates nothing."""
    assert (await served.call("POST", "/jobs", body)).status == 400
    assert served.provider.jobs == {}


async def test_every_answer_carries_a_request_id(served: Served) -> None:
    """A provider's support can be given the id of a request."""
    answers = [await served.call("GET", "/jobs/x") for _ in range(2)]

    assert [answer.headers["x-request-id"] for answer in answers] == ["req_1", "req_2"]
