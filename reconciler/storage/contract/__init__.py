"""What an engine promises: one Protocol a role, each method one atomic step named for its intent.

Rules. A method either happened completely and durably or not at all. Expected outcomes are values;
`StorageUnavailableError` is the only exception. `now` is a parameter (milliseconds; an engine with
a clock of its own takes 0 for "the server's"). No SQL, keys or connections in a signature; no
default bodies; no common base class. The conformance suite in `tests/conformance/storage` is this
contract as code and runs against every engine.
"""

from reconciler.storage.contract.arrival import Events, Inbox
from reconciler.storage.contract.keeping import Blobs, Journal, JournalEntry, Limits, Tokens, Upkeep
from reconciler.storage.contract.operation import Operations, Work
from reconciler.storage.contract.outcome import (
    AlreadyRegistered,
    Committed,
    Conflict,
    Duplicate,
    LeaseLost,
    Recorded,
    Registered,
    Stale,
)
from reconciler.storage.contract.published import PublishedKeys
from reconciler.storage.contract.question import EventQuery, OperationQuery, RefusalQuery
from reconciler.storage.contract.store import Store

__all__ = [
    "AlreadyRegistered",
    "Blobs",
    "Committed",
    "Conflict",
    "Duplicate",
    "EventQuery",
    "Events",
    "Inbox",
    "Journal",
    "JournalEntry",
    "LeaseLost",
    "Limits",
    "OperationQuery",
    "Operations",
    "PublishedKeys",
    "Recorded",
    "RefusalQuery",
    "Registered",
    "Stale",
    "Store",
    "Tokens",
    "Upkeep",
    "Work",
]
