"""What a verified request said, once; and what was refused.

Plain values. `NewEvent` is made by the gateway from a verified request and is what one atomic
storage step records together with its dedup key, its journal entry and the read that it makes due.
"""

from dataclasses import dataclass

from reconciler.domain import journal

#: In a scope that asks, not one that owns: every name in this place.
ANY = "*"
#: How many refusals of a source, reason and minute are kept whole; the others are counted.
REFUSALS_KEPT_A_MINUTE = 20


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a thing belongs. Test and live never meet: the scope is part of every key."""

    project: str
    mode: str

    def covers(self, other: "Scope") -> bool:
        """Tell whether `other` lies within this one, in which `*` stands for every name."""
        return self.project in {ANY, other.project} and self.mode in {ANY, other.mode}


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A verified request, ready to be recorded. Instants in milliseconds since the epoch."""

    event_id: str
    scope: Scope
    source: str
    #: What dedup compares: kind and text, e.g. `id:evt_1`, `digest:9f8...`, `weak:...`.
    key: str
    #: SHA-256 of what was received; the same key with another digest is a conflict.
    content_digest: bytes
    provider_event_id: str | None
    event_type: str | None
    #: Which of the source's keys verified it.
    key_id: str
    signed_at: int | None
    #: Slugs such as `weak`, `ambiguous_json`, `id_unusable`, `unverified`.
    flags: tuple[str, ...]
    url: str
    #: Lines `name: value` in order, latin-1 read as text, credentials taken out.
    headers: str
    body: bytes
    #: The provider profile that can confirm it, and how the event names the provider's job.
    profile: str | None
    remote_job_id: str | None
    client_reference: str | None
    remember_until_at: int

    @property
    def key_is_id(self) -> bool:
        """Whether an id of the provider's stands behind the key; else a repeat makes a read due."""
        return self.key.startswith("id:")

    def entry(self) -> bytes:
        """Return the journal entry that is written with the event."""
        return journal.encode("event.accepted", self._facts())

    def conflict_entry(self, conflict_id: str) -> bytes:
        """Return the journal entry for the case that the key is taken by other content."""
        return journal.encode("event.conflict", {**self._facts(), "conflict_id": conflict_id})

    def _facts(self) -> dict[str, journal.Value]:
        return {
            "event_id": self.event_id,
            "project": self.scope.project,
            "mode": self.scope.mode,
            "source": self.source,
            "key": self.key,
            "digest": self.content_digest,
            "key_id": self.key_id,
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that was refused, as reviewers see it. Never holds a body or a credential."""

    refusal_id: str
    scope: Scope
    source: str
    reason: str
    at: int
    peer: str
    method: str
    body_bytes: int
    body_digest: bytes
    headers: str


@dataclass(frozen=True, slots=True)
class Event:
    """A recorded event as readers see it (its body is read apart)."""

    seq: int
    event_id: str
    scope: Scope
    source: str
    key: str
    provider_event_id: str | None
    event_type: str | None
    key_id: str
    signed_at: int | None
    received_at: int
    flags: tuple[str, ...]
    url: str
    headers: str
    body_bytes: int
    content_digest: bytes
    profile: str | None
    remote_job_id: str | None
    client_reference: str | None
    operation_id: str | None
    #: How many requests carried this key, the first included.
    seen: int


@dataclass(frozen=True, slots=True)
class ConflictEvidence:
    """A later request with the key of a known event and other content."""

    conflict_id: str
    event_id: str
    at: int
    key_id: str
    content_digest: bytes
    headers: str
    body: bytes


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How often a source refused for a reason in a minute; `digest` chains what was refused."""

    scope: Scope
    source: str
    reason: str
    minute_at: int
    count: int
    digest: bytes

    def entry(self) -> bytes:
        """Return the journal entry that seals the count."""
        return journal.encode(
            "refusals.counted",
            {
                "project": self.scope.project,
                "mode": self.scope.mode,
                "source": self.source,
                "reason": self.reason,
                "minute_at": self.minute_at,
                "count": self.count,
                "digest": self.digest,
            },
        )


@dataclass(frozen=True, slots=True)
class MovedBody:
    """A body that the ledger does not hold itself any more: a file of this SHA-256 digest does."""

    digest: bytes
