"""What is kept beside events and operations: the journal, tokens, limits, bodies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.domain.pace import Pace
from reconciler.domain.token import NewToken, Token


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A numbered entry; indices start at 0 and have no gap."""

    index: int
    at: int
    entry: bytes


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
