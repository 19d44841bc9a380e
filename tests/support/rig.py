"""A real ledger with as many workers as a test starts, and what can be made to wait or to fail."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from reconciler.domain.operation import Operation, State
from reconciler.domain.pace import Pace
from reconciler.providers.answer import Answer
from reconciler.providers.request import Outbound
from reconciler.storage.contract import Store, Work
from reconciler.storage.errors import StorageUnavailableError
from reconciler.worker import Worker
from tests.support.builders import first_line, new_event, operation
from tests.support.scripted import (
    Clock,
    Reply,
    ScriptedClient,
    about,
    eventually,
    means,
)

FAR = 10_000_000


@dataclass
class Rig:
    """A ledger, a clock, and as many workers as a test starts."""

    store: Store
    clock: Clock

    async def register(self, number: int = 1, **fields: Any) -> Operation:
        """Register an operation that is due now."""
        fields = {"result_deadline_at": self.clock() + FAR, **fields}
        value = operation(number, **fields)
        await self.store.operations.register(value, first_line(value), self.clock())
        return value

    def worker(
        self,
        client: ScriptedClient,
        name: str = "worker:1",
        *profiles: str,
        pace: Pace | None = None,
        **fields: Any,
    ) -> Worker:
        """Return a worker."""
        given = {
            "work": self.store.work,
            "concurrency": 4,
            "lease_ttl_ms": 30_000,
            "idle_s": 0.02,
            "lease_now": self.clock,
        }
        made = means(client, self.clock, name, *profiles, limits=self.store.limits, pace=pace)
        return Worker(means=made, **{**given, **fields})

    @contextlib.asynccontextmanager
    async def working(self, *workers: Worker) -> AsyncIterator[None]:
        """Run workers beside the body, then stop them."""
        tasks = [asyncio.create_task(item.run()) for item in workers]
        try:
            yield
            assert not any(task.done() for task in tasks), "a worker's loop ended by itself"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def state(self, number: int = 1) -> State:
        """Return an operation's state."""
        return (await self.get(number)).state

    async def get(self, number: int = 1) -> Operation:
        """Return an operation."""
        found = await self.store.operations.get(f"op_{number:026}")
        assert found is not None
        return found

    async def reads(self, number: int = 1) -> int:
        """Return how many observations an operation has."""
        return len(await self.store.operations.observations(f"op_{number:026}"))

    async def until(self, state: State, *numbers: int) -> None:
        """Wait until operations are in a state."""

        async def there() -> bool:
            return all([await self.state(n) is state for n in numbers or (1,)])

        await eventually(there)

    async def hint(self, number: int = 1) -> None:
        """Record an event about `job_1`."""
        await self.store.inbox.record(new_event(number), f"cfl_{number}", self.clock())


class Gate:
    """A reply that waits until the test opens it."""

    def __init__(self, reply: Reply | None = None) -> None:
        self.opened, self.reached = asyncio.Event(), asyncio.Event()
        self._reply = reply or (lambda request: about(request, "succeeded"))

    async def __call__(self, request: Outbound) -> Answer:
        """Wait, then answer."""
        self.reached.set()
        await self.opened.wait()
        answer = self._reply(request)
        assert isinstance(answer, Answer)
        return answer


class Faulty:
    """The real work role, except that a method fails before or after it is carried out."""

    def __init__(self, work: Work, method: str, times: int, *, after: bool = False) -> None:
        self._work, self._method, self.left, self._after = work, method, times, after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._work, name)

        async def fail(*args: Any) -> Any:
            self.left -= 1
            if self._after:
                await real(*args)
            raise StorageUnavailableError("the test says so")

        return fail if name == self._method and self.left > 0 else real
