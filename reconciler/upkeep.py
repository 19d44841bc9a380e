"""What keeps a ledger healthy while it works: small steps, a few times a minute."""

import asyncio
from collections.abc import Callable

from reconciler import logs
from reconciler.storage.contract import Upkeep
from reconciler.storage.errors import StorageUnavailableError

EVERY_S = 15.0
_MINUTE_MS = 60_000

_log = logs.get("upkeep")


async def run(upkeep: Upkeep, clock: Callable[[], int], refusals_kept: int) -> None:
    """Seal the refusals of past minutes and trim old ones, until cancelled."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await tick(upkeep, clock(), refusals_kept)
        except StorageUnavailableError as error:
            _log.warning("storage_unavailable", error=str(error))


async def tick(upkeep: Upkeep, now: int, refusals_kept: int) -> None:
    """Do one round."""
    await upkeep.seal_refusals(now - now % _MINUTE_MS, now)
    while await upkeep.trim_refusals(refusals_kept, now):
        pass
