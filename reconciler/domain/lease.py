"""The right to work on an operation until a time."""

from dataclasses import dataclass

from reconciler.domain.operation import Operation


@dataclass(frozen=True, slots=True)
class Lease:
    """What a commit must still hold.

    `fence` only grows for an operation, `lease_id` is random: a worker that was taken over, even by
    a ledger that was restored from a copy, cannot match both.
    """

    operation_id: str
    lease_id: str
    fence: int
    until_at: int
    #: How many hints had arrived when the work was claimed; a later one keeps a read due.
    hints: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """Due work that is ours until the lease ends, with the operation as it stood when claimed."""

    lease: Lease
    operation: Operation
    #: The last event that made the work due, or `schedule`.
    prompted_by: str
