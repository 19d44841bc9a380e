"""Steps that come at once are written together and answered in order, on one connection.

While one batch is under way the next one gathers, so a batch is whatever came meanwhile. A batch
that wrote passes the gate as a whole, after the server's settings were looked at, now and then and
on every new connection. What waits on a connection that is lost fails as unknown. Nothing is sent a
second time but what the server says it did not do (NOSCRIPT).
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redis.exceptions import ResponseError

from reconciler.storage.redis import faults
from reconciler.storage.redis.address import Address
from reconciler.storage.redis.connection import LOST, Command, Link, Reply
from reconciler.storage.redis.faults import unavailable
from reconciler.storage.redis.gate import Gate
from reconciler.storage.redis.script import Script

#: Steps in one batch: the server does nothing else meanwhile.
BATCH_MAX = 256
#: How long an answer may take, beyond what the gate may wait.
ANSWER_S = 1.5


@dataclass(slots=True)
class Step:
    """One command that somebody waits for."""

    command: Command
    script: Script | None
    answer: asyncio.Future[Reply]
    is_whole: bool = False

    def settle(self, reply: Reply, refusal: Exception | None) -> None:
        """Tell whoever waits, if anybody does."""
        if self.answer.done():
            return
        error = faults.exception(reply) if isinstance(reply, ResponseError) else refusal
        if error is None:
            self.answer.set_result(reply)
        else:
            self.answer.set_exception(error)


class Pipeline:
    """Batches steps over one connection; with a gate, whoever waits is told what is safe only."""

    def __init__(self, address: Address, queue_max: int, gate: Gate | None = None) -> None:
        self._base = address.base
        self._link = Link(address)
        self._queue_max = queue_max
        self._gate = gate
        self._pending: deque[Step] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._closed = False

    async def run(self, script: Script, *arguments: bytes | int) -> Reply:
        """Run a script and return its answer; `StorageUnavailableError`: the outcome is unknown."""
        return await self._enqueue(script.call(self._base, *arguments), script)

    async def call(self, name: bytes, key: bytes, *arguments: bytes | int) -> Reply:
        """Call one command about one of the ledger's keys; raises as `run` does."""
        return await self._enqueue((name, self._base + b":" + key, *arguments), None)

    async def close(self) -> None:
        """Finish what was accepted, then end the connection."""
        self._closed = True
        while self._draining is not None:
            await asyncio.wait([self._draining])
        await self._link.close()
        if self._gate is not None:
            await self._gate.close()

    def _enqueue(self, command: Command, script: Script | None) -> asyncio.Future[Reply]:
        if self._closed:
            raise unavailable("it is closed")
        if len(self._pending) >= self._queue_max:
            raise unavailable("too much is waiting for the server")
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._pending.append(Step(command, script, answer))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return answer

    async def _drain(self) -> None:
        batch: list[Step] = []
        try:
            while self._pending:
                batch = [self._pending.popleft() for _ in range(min(len(self._pending), BATCH_MAX))]
                try:
                    await self._carry_out(batch)
                except LOST as error:
                    _fail(batch, error)
        finally:
            # Nobody waits for ever, not even if the loop itself is ended.
            self._draining = None
            _fail([*batch, *self._pending], "nobody carries the step out any more")
            self._pending.clear()

    async def _carry_out(self, batch: Sequence[Step]) -> None:
        commands = [step.command for step in batch]
        is_new = await self._link.open()
        if self._gate is None:
            self._settle(batch, await self._link.exchange(commands, ANSWER_S), None)
            return
        first, last = self._gate.opening(is_new), self._gate.closing()
        with self._gate.nudged():
            replies = await self._link.exchange(
                [*first, *commands, *last], ANSWER_S + self._gate.timeout_s
            )
        refusal = self._gate.judge(replies[: len(first)], replies[-len(last) :])
        self._settle(batch, replies[len(first) : -len(last)], refusal)

    def _settle(
        self, batch: Sequence[Step], replies: Sequence[Reply], refusal: Exception | None
    ) -> None:
        again = []
        for step, reply in zip(batch, replies, strict=True):
            if isinstance(reply, ResponseError):
                if faults.is_elsewhere(reply):
                    self._link.drop()
                if faults.code(reply) == faults.NOSCRIPT and step.script and not step.is_whole:
                    step.command, step.is_whole = step.script.whole(step.command), True
                    again.append(step)
                    continue
            step.settle(reply, refusal)
        self._pending.extendleft(reversed(again))


def _fail(steps: Iterable[Step], cause: BaseException | str) -> None:
    for step in steps:
        step.settle(None, unavailable(cause))
