"""What the guarded HTTP front costs over uvicorn's own httptools protocol.

The same bytes are fed to both protocol objects in this process, over a transport that throws the
answers away; an ASGI callable reads the body and answers 204. Arms take turns in short blocks, and
uvicorn's protocol runs twice (A, B), so that B/A shows what the machine itself adds. Prints the
median of µs of CPU a request for each arm and the ratios.

    python bench/http_front.py [--blocks 60] [--requests 2000]
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from typing import Any

import uvloop
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from gateway.http.front import Front
from gateway.http.limits import HttpLimits
from gateway.http.protocol import GuardedProtocol

BODY = b"x" * 1024
REQUEST = (
    b"POST /in/stripe HTTP/1.1\r\n"
    b"Host: hooks.example.test\r\n"
    b"User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n"
    b"Content-Type: application/json; charset=utf-8\r\n"
    b"Accept: */*; q=0.5, application/xml\r\n"
    b"Cache-Control: no-cache\r\n"
    b"Stripe-Signature: t=1492774577,"
    b"v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd\r\n"
    b"X-Forwarded-For: 198.51.100.7\r\n"
    b"X-Forwarded-Proto: https\r\n"
    b"Connection: keep-alive\r\n"
    b"Content-Length: 1024\r\n"
    b"\r\n"
) + BODY


class NowhereTransport(asyncio.Transport):
    """Takes answers and forgets them."""

    def write(self, data: Any) -> None:
        """Forget the data."""

    def is_closing(self) -> bool:
        """Never."""
        return False

    def pause_reading(self) -> None:
        """Nothing is read here."""

    def resume_reading(self) -> None:
        """Nothing is read here."""


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Read the body, answer 204."""
    assert scope["type"] == "http"
    while (await receive())["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def connect(protocol_class: Callable[..., Any], state: ServerState) -> Any:
    """Return a protocol object on a connection that goes nowhere."""
    config = Config(
        app, http="httptools", ws="none", lifespan="off", interface="asgi3",
        proxy_headers=False, access_log=False, log_config=None,
    )  # fmt: skip
    config.load()
    protocol = protocol_class(config, state, {}, asyncio.get_running_loop())
    protocol.connection_made(NowhereTransport())
    return protocol


async def block(protocol: Any, state: ServerState, requests: int) -> float:
    """Return µs of CPU a request."""
    before = state.total_requests
    started = time.process_time_ns()
    for _ in range(requests):
        protocol.data_received(REQUEST)
        await asyncio.sleep(0)
    spent = time.process_time_ns() - started
    assert state.total_requests - before == requests
    return spent / requests / 1000


async def main(blocks: int, requests: int) -> None:
    """Let the arms take turns and print the medians."""
    states = {"A": ServerState(), "B": ServerState(), "guarded": Front(HttpLimits())}
    arms = {
        name: connect(GuardedProtocol if name == "guarded" else HttpToolsProtocol, state)
        for name, state in states.items()
    }
    figures: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(blocks):
        order = list(arms)[turn % 3 :] + list(arms)[: turn % 3]
        for name in order:
            figures[name].append(await block(arms[name], states[name], requests))
    medians = {name: statistics.median(values) for name, values in figures.items()}
    pairs = statistics.median(g / a for g, a in zip(figures["guarded"], figures["A"], strict=True))
    control = statistics.median(b / a for b, a in zip(figures["B"], figures["A"], strict=True))
    print(f"uvicorn   {medians['A']:6.2f} µs a request (again: {medians['B']:.2f})")
    print(f"guarded   {medians['guarded']:6.2f} µs a request")
    print(f"ratio     {pairs:6.3f} (median of pairs; control {control:.3f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--requests", type=int, default=2000)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(arguments.blocks, arguments.requests))
