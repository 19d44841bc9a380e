"""Due work in a store under test, and everything that a commit writes."""

from reconciler.domain.lease import Claimed
from reconciler.domain.operation import Operation
from reconciler.storage.contract import Store
from tests.support.builders import NOW, first_line, operation

TTL_MS = 1_000


async def register(store: Store, number: int = 1, *, at: int = NOW, **fields: object) -> Operation:
    """Register an operation whose work is due at `at`."""
    value = operation(number, **fields)
    await store.operations.register(value, first_line(value), at)
    return value


async def claim_one(store: Store, lease_id: str = "lease", now: int = NOW) -> Claimed:
    """Claim the only due work."""
    (claimed,) = await store.work.claim("w", [lease_id], TTL_MS, now)
    return claimed


async def written(store: Store, operation_id: str) -> list[object]:
    """Return everything that a commit writes."""
    return [
        await store.operations.get(operation_id),
        await store.operations.history(operation_id),
        await store.operations.observations(operation_id),
        await store.journal.page(-1, 1_000),
    ]
