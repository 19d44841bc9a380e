"""An open ledger."""

from typing import Protocol

from reconciler.storage.contract.arrival import Events, Inbox
from reconciler.storage.contract.keeping import Journal, Limits, Tokens, Upkeep
from reconciler.storage.contract.operation import Operations, Work
from reconciler.storage.contract.published import PublishedKeys


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
