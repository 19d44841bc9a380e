"""What the API's handlers may use."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gateway.source import Sources
from reconciler.domain.event import Scope
from reconciler.domain.ids import IdMaker
from reconciler.storage.contract import Store


@dataclass(frozen=True, slots=True)
class KnownProfile:
    """What the API needs to know of a configured profile; the credential is the reconciler's."""

    scope: Scope
    result_deadline_ms: int
    by_reference: bool


@dataclass(frozen=True, slots=True)
class Context:
    """The outside of the handlers: the ledger's roles, the sources, clock and randomness."""

    store: Store
    #: Returns the body of an event, wherever it is kept; `BodyLostError` if its file is no more.
    body: Callable[[str], Awaitable[bytes | None]]
    sources: Sources
    profiles: Mapping[str, KnownProfile]
    clock: Callable[[], int]
    new_id: IdMaker
    random: Callable[[int], bytes]
    #: Reads the configuration again and uses it; `ConfigError` leaves everything as it was.
    reload: Callable[[], Awaitable[None]]
    #: Names what is not ready, as slugs; empty when all is.
    unready: Callable[[], Awaitable[list[str]]]
