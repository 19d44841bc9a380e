"""What keeps a ledger healthy and bounded while it works: small steps, a few times a minute."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from reconciler import logs
from reconciler.storage.contract import Blobs, Upkeep
from reconciler.storage.errors import StorageUnavailableError

EVERY_S = 15.0
#: Steps of one kind in a round: the other kinds have their turn within seconds.
STEPS_MAX = 1_000
#: Bodies in memory at once while they move.
BODIES_MAX = 4
_MINUTE_MS = 60_000

_log = logs.get("upkeep")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is kept in the ledger, and for how long."""

    refusals_kept: int
    events_ms: int
    #: Bodies of at least this size, of events of at least this age, move to a file.
    offload_bytes: int
    offload_after_ms: int


async def run(
    upkeep: Upkeep, blobs: Blobs | None, clock: Callable[[], int], bounds: Bounds
) -> None:
    """Seal the refusals of past minutes, trim and move what is old, until cancelled."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await tick(upkeep, blobs, clock(), bounds)
        except StorageUnavailableError as error:
            _log.warning("storage_unavailable", error=str(error))


async def tick(upkeep: Upkeep, blobs: Blobs | None, now: int, bounds: Bounds) -> None:
    """Do one round. `blobs` is `None` where bodies stay in the ledger."""
    await upkeep.seal_refusals(now - now % _MINUTE_MS, now)
    await _repeat(lambda: upkeep.trim_refusals(bounds.refusals_kept, now))
    await _repeat(lambda: upkeep.trim_events(now - bounds.events_ms, now))
    if blobs is not None:
        await _repeat(lambda: _move(upkeep, blobs, now, bounds))
        await blobs.sweep(upkeep, now)


async def _repeat(step: Callable[[], Awaitable[int]]) -> None:
    for _ in range(STEPS_MAX):
        if not await step():
            break
        # What arrives has its turn between two steps, whatever the engine.
        await asyncio.sleep(0)


async def _move(upkeep: Upkeep, blobs: Blobs, now: int, bounds: Bounds) -> int:
    """Move a few bodies: the file is on the disk before the ledger lets go of the body."""
    before_at = now - bounds.offload_after_ms
    found = await upkeep.bodies_to_move(bounds.offload_bytes, before_at, BODIES_MAX)
    for event_id, body in found:
        await upkeep.body_moved(event_id, await blobs.put(body), now)
    return len(found)
