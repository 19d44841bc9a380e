"""What a step of an engine comes to. Expected outcomes are values, never exceptions."""

from dataclasses import dataclass

from reconciler.domain.operation import Operation


@dataclass(frozen=True, slots=True)
class Recorded:
    """A new event; `operation_id` is `None` where none is known for it (it is parked)."""

    event_id: str
    operation_id: str | None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Key and content are known: `event_id` is the first one's, `seen` counts all of them."""

    event_id: str
    seen: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key is known with other content: the first one stands, this one is kept as evidence."""

    event_id: str
    conflict_id: str


@dataclass(frozen=True, slots=True)
class Registered:
    """A new operation, with the events that had arrived before it."""

    operation: Operation
    parked_events: int


@dataclass(frozen=True, slots=True)
class AlreadyRegistered:
    """The job (or the client reference) belongs to this operation already."""

    operation: Operation


@dataclass(frozen=True, slots=True)
class Committed:
    """The decision stands."""


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """Another worker owns the operation now; nothing was written."""


@dataclass(frozen=True, slots=True)
class Stale:
    """The operation changed since it was decided on; nothing was written, the lease stands."""
