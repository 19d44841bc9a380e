"""What can be asked of a ledger, a page at a time. The contract's roles take these values."""

from dataclasses import dataclass

from reconciler.domain.event import Scope
from reconciler.domain.operation import State


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A page of events, newest first; `before` is the last page's smallest `seq`.

    In the scope of this and the other questions `*` stands for every project, or every mode.
    """

    scope: Scope | None = None
    source: str | None = None
    event_type: str | None = None
    operation_id: str | None = None
    #: Only events that name a job for which no operation is known.
    parked: bool = False
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class RefusalQuery:
    """A page of refusals, newest first."""

    scope: Scope | None = None
    source: str | None = None
    reason: str | None = None
    before: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class OperationQuery:
    """A page of operations, newest first. `before` is the last page's smallest operation id."""

    scope: Scope | None = None
    profile: str | None = None
    states: tuple[State, ...] = ()
    remote_job_id: str | None = None
    client_reference: str | None = None
    before: str | None = None
    limit: int = 50
