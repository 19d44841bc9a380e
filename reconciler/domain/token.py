"""Tokens of the API: who may do what, in which project and mode."""

from dataclasses import dataclass
from enum import StrEnum

from reconciler.domain import journal
from reconciler.domain.event import Scope


class Role(StrEnum):
    """The six roles; each route of the API declares which of them may call it."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    ADMIN = "admin"
    CLIENT = "client"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to store; the secret itself was shown once and is kept nowhere."""

    token_id: str
    scope: Scope
    role: Role
    label: str
    #: SHA-256 of the token's text (256 random bits, so a plain digest suffices).
    digest: bytes
    created_by: str
    expires_at: int | None

    def entry(self, now: int) -> bytes:
        """Return the journal entry that is written with the token."""
        return journal.encode(
            "token.created",
            {
                "token_id": self.token_id,
                "project": self.scope.project,
                "mode": self.scope.mode,
                "role": self.role,
                "label": self.label,
                "actor": self.created_by,
                "at": now,
                "expires_at": self.expires_at,
            },
        )


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token."""

    token_id: str
    scope: Scope
    role: Role
    label: str
    created_by: str
    created_at: int
    expires_at: int | None
    revoked_at: int | None

    def usable(self, now: int) -> bool:
        """Tell whether the token is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def revoked_entry(token_id: str, actor: str, now: int) -> bytes:
    """Return the journal entry that is written when a token is revoked."""
    return journal.encode("token.revoked", {"token_id": token_id, "actor": actor, "at": now})
