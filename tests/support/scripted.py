"""A provider that answers what a test says, without a socket, and the means of a worker around it."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from time import monotonic
from typing import Any

from reconciler.domain.pace import Pace, Taken
from reconciler.domain.retry import Poll
from reconciler.effects.means import Means
from reconciler.effects.turns import Turns
from reconciler.providers.answer import Answer
from reconciler.providers.profile import load_profile
from reconciler.providers.provider import Provider
from reconciler.providers.request import Outbound
from reconciler.storage.contract import Limits
from tests.support.builders import NOW, SCOPE

Reply = Callable[[Outbound], Answer | Awaitable[Answer]]


def says(
    status: str, code: int = 200, headers: Mapping[str, str] | None = None, **fields: Any
) -> Answer:
    """Return an answer of the demo profile's provider."""
    pairs = tuple((k.encode(), v.encode()) for k, v in (headers or {}).items())
    return Answer(code, pairs, json.dumps({"id": "job_1", "status": status, **fields}).encode())


def asked_for(request: Outbound) -> str:
    """Return the job id or reference in the request's URL."""
    return request.url.rsplit("/", 1)[1]


def about(request: Outbound, status: str) -> Answer:
    """Return an answer about the job that was asked for."""
    return says(status, id=asked_for(request))


@dataclass
class ScriptedClient:
    """Implements `effects.means.Client`; `reply` may wait."""

    reply: Reply
    requests: list[Outbound] = field(default_factory=list)
    under_way: int = 0
    most_under_way: int = 0

    async def send(self, request: Outbound) -> Answer:
        """Answer as the script says."""
        self.requests.append(request)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            answer = self.reply(request)
            return answer if isinstance(answer, Answer) else await answer
        finally:
            self.under_way -= 1


@dataclass
class Clock:
    """Runs like a real one and can be put forward."""

    ahead_ms: int = 0
    _start: float = field(default_factory=monotonic)

    def __call__(self) -> int:
        """Return the time in milliseconds."""
        return NOW + self.ahead_ms + int((monotonic() - self._start) * 1000)


#: The next poll is far away, so that a test sees which read a hint caused.
POLL = Poll(min_interval_ms=200, base_ms=200_000, cap_ms=600_000)


def provider(name: str = "acme", **profile: Any) -> Provider:
    """Return a provider with the demo profile's API."""
    made = load_profile("demo").with_base_url("http://127.0.0.1:9")
    return Provider(name, SCOPE, replace(made, **{"poll": POLL, **profile}), "s3cret")


@dataclass
class OwnLimits:
    """The rule without a ledger, for effects that a test runs alone."""

    taken: Taken = field(default_factory=Taken)

    async def take(self, name: str, pace: Pace | None, now: int) -> int:  # noqa: ARG002  one only
        """Take a turn."""
        self.taken, wait_us = self.taken.take(pace, now * 1000)
        return -(-wait_us // 1000)

    async def pause(self, name: str, wait_ms: int, now: int) -> None:  # noqa: ARG002  one only
        """Pause."""
        self.taken = self.taken.pause(wait_ms, now * 1000)


def means(
    client: ScriptedClient,
    clock: Callable[[], int],
    actor: str = "worker:1",
    *names: str,
    limits: Limits | None = None,
    **profile: Any,
) -> Means:
    """Return means with predictable ids and jitter, and providers of these names."""
    numbers = count(1)
    return Means(
        providers={name: provider(name, **profile) for name in names or ("acme",)},
        client=client,
        turns=Turns(limits or OwnLimits(), clock),
        clock=clock,
        new_id=lambda kind: f"{kind}_{actor}_{next(numbers)}",
        jitter=lambda: 0.5,
        actor=actor,
    )


async def eventually(look: Callable[[], Any], within_s: float = 20.0) -> Any:
    """Return the first true value of `look`, which may be something to await."""
    async with asyncio.timeout(within_s):
        while True:
            found = look()
            if found := await found if isinstance(found, Awaitable) else found:
                return found
            await asyncio.sleep(0.005)
