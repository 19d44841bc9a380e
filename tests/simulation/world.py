"""One simulated hour: real ledger, worker, effects and decisions; everything around them lies.

Workers are killed, and the ledger fails, before or after any step they make. The promises that can be
seen at a step are checked there; the rest when the hour is over.
"""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from reconciler.domain.decide import Decision
from reconciler.domain.ids import make_id
from reconciler.domain.lease import Lease
from reconciler.domain.operation import fold
from reconciler.domain.pace import Pace
from reconciler.domain.retry import Poll
from reconciler.effects.means import Means
from reconciler.effects.turns import Turns
from reconciler.providers.request import Outbound
from reconciler.storage.contract import Committed, Store
from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite.store import open_store
from reconciler.storage.sqlite.writer import Inline
from reconciler.worker import Worker
from tests.simulation.provider import ENDS, Job, LyingProvider
from tests.support.builders import NOW, first_line, new_event, operation
from tests.support.scripted import provider

JOBS = 12
DEADLINE_S = 2_400
HOUR_S = 3_600
LEASE_MS = 5_000
POLL = Poll(min_interval_ms=1_000, base_ms=2_000, cap_ms=60_000)


class Killed(BaseException):
    """The process of a worker is gone: nothing in it goes on."""


@dataclass
class World:
    """Everything of one seed."""

    seed: int
    folder: Path
    random: Random = field(init=False)
    store: Store = field(init=False)
    jobs: dict[str, Job] = field(default_factory=dict)
    #: What happened, in order; the same seed makes the same trace.
    trace: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    #: Fence and end of the lease that is held, by operation.
    held: dict[str, tuple[int, int]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    not_before: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    #: Promises that were seen broken: an assertion in a worker would be one more of its faults.
    broken: list[str] = field(default_factory=list)
    workers: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)  # noqa: S311  it must be repeatable
        self.provider = LyingProvider(Random(self.seed + 1), self.jobs)  # noqa: S311
        self.store = self._open()

    def _open(self) -> Store:
        return open_store(self.folder / "ledger.db", now=lambda: NOW, executor=Inline)

    def now(self) -> int:
        """Return the time in milliseconds."""
        return NOW + int(asyncio.get_running_loop().time() * 1000)

    def new_id(self, kind: str) -> str:
        """Return the next id."""
        return make_id(kind, self.now(), self.random.randbytes(10))

    def note(self, *what: object) -> None:
        """Add a line to the trace."""
        self.trace.append(" ".join(map(str, (self.now() - NOW, *what))))

    def promise(self, what: str, *, kept: bool) -> None:
        """Remember a broken promise."""
        if not kept:
            self.broken.append(f"{self.now() - NOW}: {what}")

    def unlucky(self, one_in: int, fault: str) -> bool:
        """Decide whether a fault happens now, once in so many times."""
        if self.random.randrange(one_in):
            return False
        self.faults[fault] += 1
        return True

    # ------------------------------------------------------------ the hour

    async def hour(self) -> None:
        """Live through an hour."""
        for number in range(1, JOBS + 1):
            self._job(number)
        acts = [self._keep_workers(), self._restart()]
        acts += [self._register(number) for number in range(1, JOBS + 1)]
        for number in range(1, JOBS + 1):
            acts += [self._webhook(number, n) for n in range(self.random.choice([0, 1, 3, 6]))]
        tasks = [asyncio.create_task(act) for act in acts]
        await asyncio.sleep(HOUR_S)
        for task in tasks:
            if task.done():
                task.result()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def _job(self, number: int) -> None:
        runs_at = self.random.uniform(0, 300)
        ends_at = runs_at + self.random.choice([0, 1, 30, 300, 3_000])
        end = self.random.choice([*ENDS, "succeeded", "succeeded", None])
        first = self.random.choice(["failed", "cancelled"]) if end and number == 1 else None
        self.jobs[f"job_{number}"] = Job(f"job_{number}", runs_at, ends_at, end, first)

    async def _register(self, number: int) -> None:
        await asyncio.sleep(self.random.uniform(0, 200))
        deadline_at = self.now() + DEADLINE_S * 1000
        value = operation(number, result_deadline_at=deadline_at, created_at=self.now())
        await self.store.operations.register(value, first_line(value), self.now())
        self.note("registered", number)

    async def _webhook(self, number: int, which: int) -> None:
        """Send a webhook: too early, late, false, twice; give up when the ledger is often away."""
        await asyncio.sleep(self.random.uniform(0, 2_000))
        key = number * 100 + which
        for _ in range(self.random.choice([1, 1, 2, 5])):
            event = new_event(key, event_id=self.new_id("evt"), remote_job_id=f"job_{number}")
            if not self.unlucky(8, "webhook_refused"):
                await self.store.inbox.record(event, self.new_id("cfl"), self.now())
                self.acknowledged.add(event.key)
                self.note("webhook", key)
            await asyncio.sleep(self.random.choice([0, 0.01, 3, 400]))

    async def _keep_workers(self) -> None:
        async def live() -> None:
            while True:
                with contextlib.suppress(Killed):
                    await self._worker().run()
                await asyncio.sleep(self.random.choice([0.0, 1.0, 20.0]))

        await asyncio.gather(live(), live(), live())

    def _worker(self) -> Worker:
        self.workers += 1
        process = Process(self, f"worker:{self.workers}")
        means = Means(
            providers={"acme": provider(poll=POLL)},
            client=process,
            turns=Turns(process, self.now),
            clock=self.now,
            new_id=self.new_id,
            jitter=self.random.random,
            actor=process.name,
        )
        return Worker(
            process, means, concurrency=4, lease_ttl_ms=LEASE_MS, idle_s=20.0, lease_now=means.clock
        )

    async def _restart(self) -> None:
        """Close the ledger in the middle of everything, and open it again."""
        while True:
            await asyncio.sleep(self.random.uniform(300, 2_000))
            await self.store.close()
            self.store = self._open()
            self.note("restart")
            self.faults["restart"] += 1

    # ------------------------------------------------------------ promises

    async def check_committed(self, lease: Lease, decision: Decision) -> None:
        """Hold what was just committed against the promises."""
        operation_id = lease.operation_id
        held = self.held.pop(operation_id, (0, 0))
        self.promise("a commit needs the lease", kept=held[0] == lease.fence)
        value = await self.store.operations.get(operation_id)
        assert value is not None
        history = await self.store.operations.history(operation_id)
        self.promise("state is the fold of history", kept=fold(history) is value.state)
        before = self.states.get(operation_id)
        self.promise("an end is final", kept=before not in ENDS or before == value.state)
        self.states[operation_id] = value.state
        asked = decision.read.observation.not_before_at if decision.read else None
        self.not_before[operation_id] = max(decision.not_before_at, asked or 0)
        self.note("committed", operation_id[-3:], value.state, value.version)


@dataclass
class Process:
    """A worker's way out, to the ledger (`Work`) and to the provider (`Client`); mortal."""

    world: World
    name: str
    dead: bool = False
    #: How often it was told to wait for its turn and has not given the work back yet.
    waits: int = 0

    def _may_die(self) -> None:
        if self.dead or self.world.unlucky(150, "killed"):
            self.dead = True
            raise Killed

    def _may_fail(self) -> None:
        if self.world.unlucky(80, "storage"):
            raise StorageUnavailableError("the simulation says so")

    async def claim(self, worker: str, lease_ids: list[str], ttl_ms: int, now: int) -> Any:
        """Claim, and see that nobody else holds what was claimed."""
        self._may_die()
        self._may_fail()
        claimed = await self.world.store.work.claim(worker, lease_ids, ttl_ms, now)
        for item in claimed:
            fence, until_at = self.world.held.get(item.lease.operation_id, (0, 0))
            self.world.promise("a lease is held once", kept=until_at <= now)
            self.world.promise("a fence grows", kept=item.lease.fence > fence)
            held = (item.lease.fence, item.lease.until_at)
            self.world.held[item.lease.operation_id] = held
            self.world.note(self.name, "claimed", item.lease.operation_id[-3:], item.lease.fence)
        self._may_die()
        return claimed

    async def renew(self, lease: Lease, ttl_ms: int, now: int) -> Any:
        """Renew."""
        self._may_die()
        self._may_fail()
        found = await self.world.store.work.renew(lease, ttl_ms, now)
        if isinstance(found, Lease):
            self.world.held[lease.operation_id] = (lease.fence, found.until_at)
        return found

    async def take(self, name: str, pace: Pace | None, now: int) -> int:
        """Ask for a turn."""
        self._may_die()
        self._may_fail()
        wait_ms = await self.world.store.limits.take(name, pace, now)
        self.waits += wait_ms > 0
        return wait_ms

    async def pause(self, name: str, wait_ms: int, now: int) -> None:
        """Pause the provider."""
        self._may_die()
        self._may_fail()
        await self.world.store.limits.pause(name, wait_ms, now)
        self.world.note(self.name, "paused", name, wait_ms)

    async def release(self, lease: Lease, due_at: int, now: int) -> None:
        """Give work back: a provider that must not be asked now is the only reason to."""
        self.world.promise("no effect has a bug", kept=self.waits > 0)
        self.waits -= 1
        self._may_die()
        self._may_fail()
        await self.world.store.work.release(lease, due_at, now)
        if self.world.held.get(lease.operation_id, (0, 0))[0] == lease.fence:
            del self.world.held[lease.operation_id]

    async def commit(self, lease: Lease, decision: Any, now: int) -> Any:
        """Commit, and hold what stands against the promises; the machine may stand still before."""
        if self.world.unlucky(40, "stood still"):
            await asyncio.sleep(4 * LEASE_MS / 1000)
        self._may_die()
        self._may_fail()
        outcome = await self.world.store.work.commit(lease, decision, now)
        if isinstance(outcome, Committed):
            await self.world.check_committed(lease, decision)
        self._may_die()
        self._may_fail()
        return outcome

    async def wait(self, timeout_s: float) -> None:
        """Wait."""
        await self.world.store.work.wait(timeout_s)
        self._may_die()

    async def next_due_at(self, now: int) -> int | None:
        """Return when work is due."""
        return await self.world.store.work.next_due_at(now)

    async def send(self, request: Outbound) -> Any:
        """Ask the provider, never before it allows."""
        self._may_die()
        number = int(request.url.rsplit("_", 1)[1])
        allowed_at = self.world.not_before.get(f"op_{number:026}", 0)
        self.world.promise("nobody asks too soon", kept=self.world.now() >= allowed_at)
        answer = await self.world.provider.answer(request)
        self._may_die()
        return answer
