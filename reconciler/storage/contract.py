"""What an engine promises: one Protocol a role, each method one atomic step named for its intent.

Rules. A method either happened completely and durably or not at all. Expected outcomes are values;
`StorageUnavailableError` is the only exception. `now` is a parameter (milliseconds; an engine with
a clock of its own takes 0 for "the server's"). No SQL, keys or connections in a signature; no
default bodies; no common base class. The conformance suite in `tests/conformance/storage` is this
contract as code and runs against every engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.domain.decide import Decision, Read
from reconciler.domain.event import (
    ConflictEvidence,
    Event,
    MovedBody,
    NewEvent,
    Refusal,
    RefusalCount,
)
from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.operation import Operation, Transition
from reconciler.domain.pace import Pace
from reconciler.domain.published import Failed, Fetched, KeyDocument, KeyFetch
from reconciler.domain.token import NewToken, Token
from reconciler.storage.questions import EventQuery as EventQuery  # noqa: PLC0414  a part of the contract
from reconciler.storage.questions import OperationQuery as OperationQuery  # noqa: PLC0414  a part of the contract
from reconciler.storage.questions import RefusalQuery as RefusalQuery  # noqa: PLC0414  a part of the contract

# ---------------------------------------------------------------- outcomes


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


# ---------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A numbered entry; indices start at 0 and have no gap."""

    index: int
    at: int
    entry: bytes


# ---------------------------------------------------------------- roles


class Inbox(Protocol):
    """The gateway's side: what arrived."""

    async def record(
        self, event: NewEvent, conflict_id: str, now: int
    ) -> Recorded | Duplicate | Conflict:
        """Store the event, claim its key, write the journal and make the read due, in one step.

        A known key with the same content counts as seen once more (that write, too, is durable)
        and, where no provider's id stands behind the key, makes a read due again; with other
        content it is kept as evidence under `conflict_id` (once, however often the step is done)
        and makes a read due. An event finds its operation by profile and remote job id, else client
        reference, inside its scope; without one it is parked. A read that is due already stays one
        read; none is due before the operation's `not_before_at`, and none in a state without an
        effect.
        """

    async def refuse(self, refusals: Sequence[Refusal], now: int) -> None:
        """Count each refusal by scope, source, reason and minute; keep the first few whole."""


class Events(Protocol):
    """Reading what arrived."""

    async def get(self, event_id: str) -> Event | None:
        """Return the event."""

    async def body(self, event_id: str) -> bytes | MovedBody | None:
        """Return the raw body, or which of the `Blobs` holds it."""

    async def page(self, query: EventQuery) -> list[Event]:
        """Return a page, newest first."""

    async def conflicts(self, event_id: str) -> list[ConflictEvidence]:
        """Return the conflicts with the event, oldest first."""

    async def refusals(self, query: RefusalQuery) -> list[Refusal]:
        """Return a page of kept refusals, newest first."""

    async def refusal_counts(self, since_at: int) -> list[RefusalCount]:
        """Return the counts of all minutes from `since_at` on."""


class Operations(Protocol):
    """The record of each operation."""

    async def register(
        self, operation: Operation, cause: Transition, now: int
    ) -> Registered | AlreadyRegistered:
        """Store an operation that runs already, with its first line of history; a read is due.

        What is due and when is the store's to say: `next_at` as given is not kept, and a state that
        waits for a person or is an end has nothing due. Events parked for its job or reference are
        attached in the same step. Unique are the operation's id and, within scope and profile, the
        remote job id and the client reference.
        """

    async def get(self, operation_id: str) -> Operation | None:
        """Return the operation."""

    async def page(self, query: OperationQuery) -> list[Operation]:
        """Return a page, newest first."""

    async def history(self, operation_id: str) -> list[Transition]:
        """Return the lines in the order they were written."""

    async def observations(self, operation_id: str) -> list[Read]:
        """Return every status read in the order they were written."""


class Work(Protocol):
    """Due work and the right to do it."""

    async def claim(
        self, worker: str, lease_ids: Sequence[str], ttl_ms: int, now: int
    ) -> list[Claimed]:
        """Take the most overdue work that nobody holds, at most one operation a lease id.

        Each claim raises the operation's fence. Work whose lease has ended counts as held by
        nobody.
        """

    async def renew(self, lease: Lease, ttl_ms: int, now: int) -> Lease | LeaseLost:
        """Hold on longer, compared by fence and lease id, not by time.

        What loses a lease is another's claim: one that has ended and that nobody took can still be
        renewed, and its decision still be committed.
        """

    async def release(self, lease: Lease, due_at: int, now: int) -> None:
        """Give work back undone, due at `due_at`; nothing happens if the lease was lost.

        If a hint arrived since the claim, the work is due as that made it, if that is sooner.
        """

    async def commit(
        self, lease: Lease, decision: Decision, now: int
    ) -> Committed | LeaseLost | Stale:
        """Write state, history, observation, journal, next due time, and end the lease; or nothing.

        If a hint arrived since the claim, and the new state has an effect, a read is due at
        `decision.not_before_at`, or when the decision says if that is sooner. A job id that the
        decision brings attaches its parked events, unless another operation owns it.
        """

    async def wait(self, timeout_s: float) -> None:
        """Return when new work may have become due, or after `timeout_s`; never an error.

        News that came while nobody waited is kept for the next wait.
        """

    async def next_due_at(self, now: int) -> int | None:
        """Return when work is due next or a lease on it ends; `None` if there is none."""


class Journal(Protocol):
    """The log of everything that happened."""

    async def page(self, after_index: int, limit: int) -> list[JournalEntry]:
        """Return entries with a greater index, in order; -1 is before the first."""

    async def size(self) -> int:
        """Return how many entries there are."""


class Tokens(Protocol):
    """Who may call the API. Only digests are stored."""

    async def create(self, token: NewToken, now: int) -> None:
        """Store the token and its journal entry."""

    async def find(self, digest: bytes) -> Token | None:
        """Return the token with the digest, revoked and expired ones too."""

    async def page(self) -> list[Token]:
        """Return all tokens, newest first."""

    async def revoke(self, token_id: str, actor: str, now: int) -> Token | None:
        """Revoke the token, once, with its journal entry; `None` if there is no such token."""


class PublishedKeys(Protocol):
    """The keys that providers publish, a document at each address that a source needs.

    A document that is due is fetched by one process of many: whoever claims it has `ttl_ms` until
    it is due again. Its instants are counted from each step's `now`.
    """

    async def after(self, revision: int) -> list[KeyDocument]:
        """Return the documents that changed after a revision, oldest change first; 0 is all."""

    async def want(self, source: str, url: str, documents_max: int, now: int) -> None:
        """Make the document due as soon as its `not_before_at` allows; one that is due stays so.

        A new one is due at once. Where the source has `documents_max` already, it takes the place
        of the unproven one, not held by its `not_before_at`, that was new the longest ago, or of a
        proven one that may be used no longer; without such a one nothing happens.
        """

    async def refresh(self, source: str, now: int) -> int:
        """Make all documents of a source due now, whatever holds them; return how many."""

    async def prove(self, source: str, url: str, now: int) -> None:
        """Note that the document's keys verified a request."""

    async def is_due(self, sources: Sequence[str], now: int) -> bool:
        """Tell whether any document of these sources is due."""

    async def claim(
        self, sources: Sequence[str], limit: int, ttl_ms: int, now: int
    ) -> list[KeyFetch]:
        """Take the most overdue documents of these sources, each with a greater fence.

        They are held for `ttl_ms` and due again then.
        """

    async def commit(
        self, fetch: KeyFetch, outcome: Fetched | Failed, now: int
    ) -> Committed | LeaseLost:
        """Write what the fetch found, or nothing if the document was claimed again since.

        What failed counts one failure more and leaves content, etag and validity as they are.
        """


class Limits(Protocol):
    """How often providers may be asked, shared by all processes of a ledger.

    It promises a provider restraint and nobody anything durable: after a crash or a fail-over a few
    calls too many may be made, once.
    """

    async def take(self, name: str, pace: Pace | None, now: int) -> int:
        """Take one call of a provider's pace; 0, or how many ms to wait and then to ask again.

        A wait takes nothing. Those who must wait are told instants apart, a pace's interval each.
        Without a pace only a pause counts.
        """

    async def pause(self, name: str, wait_ms: int, now: int) -> None:
        """Let nobody ask the provider for a while (at most `pace.PAUSE_MS_MAX`)."""


class Upkeep(Protocol):
    """What keeps a ledger healthy."""

    async def probe(self, now: int) -> None:
        """Do a durable write of no meaning, to prove that one can be done."""

    async def seal_refusals(self, before_at: int, now: int) -> int:
        """Write a journal entry for each count of a minute before `before_at` that has changed.

        Return how many. What is counted for a minute after its entry gets a further one, which
        tells the whole count again.
        """

    async def trim_refusals(self, keep: int, now: int) -> int:
        """Delete the oldest kept refusals beyond `keep`, some at a time; return how many went."""

    async def trim_events(self, before_at: int, now: int) -> int:
        """Delete old events that nothing needs, some at a time; return how many went.

        They were received before `before_at`, their keys need no longer be remembered, and the
        operations that they belong to, if any, have ended. Body and conflicts go with an event; the
        journal stays, no `seq` comes twice, and the newest event may stay. After 0 there is nothing
        to do for a while.
        """

    async def bodies_to_move(
        self, bytes_min: int, before_at: int, limit: int
    ) -> list[tuple[str, bytes]]:
        """Return event ids and bodies of at least that size, received before `before_at`.

        The oldest that were not moved yet; after none there is nothing to do for a while.
        """

    async def body_moved(self, event_id: str, digest: bytes, now: int) -> None:
        """Let a body go that `Blobs` keeps durably; nothing happens if it, or its event, went."""

    async def blobs_in_use(self, digests: Sequence[bytes]) -> set[bytes]:
        """Return those of the digests that stand for the body of an event."""


class Blobs(Protocol):
    """Bodies beside the ledger, each named by its SHA-256 digest. It knows no event."""

    async def put(self, body: bytes) -> bytes:
        """Keep a body durably; return its digest."""

    async def get(self, digest: bytes) -> bytes:
        """Return the body; `BodyLostError` if it is missing or is not what was put."""

    async def sweep(self, upkeep: Upkeep, now: int) -> int:
        """Delete some bodies that no event has had for long; return how many went."""


class Store(Protocol):
    """All roles of one open ledger. Only composition roots name it; others ask for a role."""

    @property
    def inbox(self) -> Inbox:
        """What arrives."""

    @property
    def events(self) -> Events:
        """What arrived."""

    @property
    def operations(self) -> Operations:
        """The record of each operation."""

    @property
    def work(self) -> Work:
        """Due work."""

    @property
    def journal(self) -> Journal:
        """The log of everything."""

    @property
    def tokens(self) -> Tokens:
        """Who may call the API."""

    @property
    def published_keys(self) -> PublishedKeys:
        """The keys that providers publish."""

    @property
    def limits(self) -> Limits:
        """How often providers may be asked."""

    @property
    def upkeep(self) -> Upkeep:
        """What keeps it healthy."""

    async def close(self) -> None:
        """Finish what was accepted, then close."""
