"""The worker: claim → run the effect → commit. The second conductor, beside the gateway's intake.

Promise: what is committed was decided by whoever holds the lease. The effect runs outside any
transaction; the lease is renewed while it runs; a lease that was lost commits nothing. A crash at
any point costs at most the work since the claim, which another worker does again when the lease
ends.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reconciler import logs
from reconciler.domain.decide import Cause, Decision, decide_trigger
from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.operation import Effect, Trigger
from reconciler.effects.collect import collect
from reconciler.effects.means import Means
from reconciler.effects.read_status import read_status
from reconciler.effects.turns import Later, Outcome
from reconciler.storage.contract import Committed, LeaseLost, Stale, Work
from reconciler.storage.errors import StorageUnavailableError

EffectRun = Callable[[Claimed, Means], Awaitable[Outcome]]

EFFECTS: Mapping[Effect, EffectRun] = {
    Effect.READ_STATUS: read_status,
    Effect.COLLECT: collect,
}

#: After a bug of ours the work waits this long before anybody tries again.
_AFTER_BUG_MS = 60_000
#: How long the worker waits when the store does not answer.
_STORE_DOWN_S = 1.0

_log = logs.get("worker")


@dataclass(slots=True)
class Worker:
    """Does due work, some of it at once, until cancelled."""

    work: Work
    means: Means
    concurrency: int
    lease_ttl_ms: int
    idle_s: float
    #: What the work's steps are told of the time: 0 where the ledger's own clock counts, so that
    #: nodes whose clocks differ agree on when a lease ends.
    lease_now: Callable[[], int]
    effects: Mapping[Effect, EffectRun] = field(default_factory=lambda: EFFECTS)
    #: When the loop last looked for work (milliseconds); health reads it.
    last_tick_at: int = 0
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Work until cancelled; then finish what is under way."""
        try:
            while True:
                await self._tick()
        except asyncio.CancelledError:
            # A lease ends by itself, so nothing that outlives it is worth waiting for.
            if self._running:
                await asyncio.wait(self._running, timeout=self.lease_ttl_ms / 1000)
            raise

    async def _tick(self) -> None:
        self.last_tick_at = self.means.clock()
        free = self.concurrency - len(self._running)
        if free == 0:
            # At most one sleep long, so that many slow calls do not look like a loop that is stuck.
            await asyncio.wait(
                self._running, timeout=self.idle_s, return_when=asyncio.FIRST_COMPLETED
            )
            return
        try:
            claimed = await self._claim(free)
            if len(claimed) < free:
                await self._idle()
        except StorageUnavailableError as error:
            _log.warning("storage_unavailable", error=str(error))
            await asyncio.sleep(_STORE_DOWN_S)

    async def _claim(self, limit: int) -> list[Claimed]:
        lease_ids = [self.means.new_id("lse") for _ in range(limit)]
        now = self.lease_now()
        claiming = asyncio.ensure_future(
            self.work.claim(self.means.actor, lease_ids, self.lease_ttl_ms, now)
        )
        try:
            claimed = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # A claim is not taken back: what it got is under way, or it waits for its lease to end.
            with contextlib.suppress(StorageUnavailableError):
                self._start(await claiming)
            raise
        self._start(claimed)
        return claimed

    def _start(self, claimed: Iterable[Claimed]) -> None:
        for item in claimed:
            task = asyncio.create_task(self._carry_out(item))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _idle(self) -> None:
        """Sleep until work is due, arrives, or the longest sleep is over."""
        now = self.means.clock()
        due_at = await self.work.next_due_at(self.lease_now())
        wait_s = self.idle_s if due_at is None else min(self.idle_s, (due_at - now) / 1000)
        if wait_s > 0:
            await self.work.wait(wait_s)

    async def _carry_out(self, claimed: Claimed) -> None:
        """Run one effect to its commit. Never raises: nobody awaits it."""
        lease, operation = claimed.lease, claimed.operation
        try:
            async with self._holding(lease):
                outcome = await self._effect(claimed)
            if isinstance(outcome, Later):
                await self.work.release(lease, outcome.due_at, self.lease_now())
            else:
                await self._commit(lease, outcome)
        except StorageUnavailableError as error:
            # Committed or not, the lease ends and the work is done again if it was not.
            _log.warning("outcome_unknown", operation=operation.operation_id, error=str(error))
        except Exception:  # noqa: BLE001  # a bug of ours must not end the loop; it is logged whole
            _log.exception("effect_failed", operation=operation.operation_id)
            with contextlib.suppress(StorageUnavailableError):
                await self._set_aside(claimed)

    async def _set_aside(self, claimed: Claimed) -> None:
        """Wait after a bug of ours; a deadline passes all the same, so no bug is for ever."""
        lease, operation = claimed.lease, claimed.operation
        now, deadline_at = self.means.clock(), claimed.operation.deadline_at()
        if deadline_at is None or now < deadline_at:
            await self.work.release(lease, now + _AFTER_BUG_MS, self.lease_now())
            return
        cause = Cause(self.means.actor, "deadline", "deadline passed; our own work on it fails")
        await self._commit(lease, decide_trigger(operation, Trigger.DEADLINE_PASSED, cause, now))

    async def _effect(self, claimed: Claimed) -> Outcome:
        effect = claimed.operation.rule.effect
        assert effect is not None, "work is due only in states that have some"
        return await self.effects[effect](claimed, self.means)

    async def _commit(self, lease: Lease, decision: Decision) -> None:
        operation_id = lease.operation_id
        match await self.work.commit(lease, decision, self.lease_now()):
            case Committed():
                if decision.conflict is not None:
                    _log.warning(
                        "evidence_without_row", operation=operation_id, trigger=decision.conflict
                    )
            case LeaseLost():
                _log.warning("lease_lost", operation=operation_id, fence=lease.fence)
            case Stale():
                await self.work.release(lease, self.means.clock(), self.lease_now())

    @contextlib.asynccontextmanager
    async def _holding(self, lease: Lease) -> AsyncIterator[None]:
        """Renew the lease while the body runs; whether it still holds, the commit will tell."""
        renewal = asyncio.create_task(self._renew(lease))
        try:
            yield
        finally:
            renewal.cancel()

    async def _renew(self, lease: Lease) -> None:
        while True:
            await asyncio.sleep(self.lease_ttl_ms / 3000)
            with contextlib.suppress(StorageUnavailableError):
                await self.work.renew(lease, self.lease_ttl_ms, self.lease_now())
