"""Keys that providers publish, as the ledger keeps them: documents at addresses.

A document is what was last fetched and could be read; failures since then stand beside it and take
nothing away from it. Whether it holds keys is for `verifiers` to say.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KeyDocument:
    """What one source knows of one address. Instants are milliseconds since the epoch."""

    source: str
    url: str
    #: The last good content, `None` before there is any, and the provider's name for it.
    content: bytes | None = field(repr=False)
    etag: str | None
    #: When that was last seen at the provider, and how long it may be used without another look.
    fetched_at: int | None
    valid_until_at: int | None
    #: Attempts that failed since then, and the slug of the last one.
    failures: int
    failure: str | None
    #: When it is fetched next; `None`: only when a request needs it.
    next_at: int | None
    #: No request makes it due before this.
    not_before_at: int
    #: When a request was first verified with it: it gives its place up to no other document.
    proven_at: int | None
    #: Grows with every change of anything above, over all documents of a ledger.
    revision: int

    def usable(self, now: int) -> bool:
        """Tell whether the content may be used for verification."""
        return self.valid_until_at is not None and now < self.valid_until_at


@dataclass(frozen=True, slots=True)
class KeyFetch:
    """The right to fetch a document, until somebody else gets it: its fence only grows."""

    source: str
    url: str
    fence: int
    etag: str | None
    #: When there last was something good; `None`: never.
    fetched_at: int | None
    failures: int


@dataclass(frozen=True, slots=True)
class Fetched:
    """The provider has keys there. `content` is `None` where they are the same as before.

    `valid_ms` is how long they may be used, `next_ms` when to look again, `hold_ms` how long no
    request makes that sooner; all from the commit on.
    """

    content: bytes | None = field(repr=False)
    etag: str | None
    valid_ms: int
    next_ms: int
    hold_ms: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing to use came back; what there was stays. `next_ms` is `None`: not tried by itself."""

    failure: str
    next_ms: int | None
    hold_ms: int
