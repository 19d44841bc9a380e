"""Who may call the API."""

from functools import partial

from reconciler.domain.token import NewToken, Token, revoked_entry
from reconciler.storage.sqlite import journal
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.table import Table, insert, names
from reconciler.storage.sqlite.writer import Executor

_NEW, _TOKENS = Table(NewToken), Table(Token)
_CREATE = insert("token", (*_NEW.columns, "created_at")) + " ON CONFLICT (token_id) DO NOTHING"
_SELECT = f"SELECT {names(_TOKENS.columns)} FROM token"  # noqa: S608  our own names
_REVOKE = "UPDATE token SET revoked_at = ? WHERE token_id = ? AND revoked_at IS NULL"


def create(ledger: Ledger, token: NewToken, now: int) -> None:
    """Store the token and its journal entry; the same token again changes nothing."""
    ledger.run(_CREATE, (*_NEW.row(token).values(), now))
    if ledger.changes():
        journal.append(ledger, token.entry(now), now)


def revoke(ledger: Ledger, token_id: str, actor: str, now: int) -> Token | None:
    """Revoke the token, once, with its journal entry."""
    ledger.run(_REVOKE, (now, token_id))
    if ledger.changes():
        entry = revoked_entry(token_id, actor, now)
        journal.append(ledger, entry, now)
    row = ledger.one(f"{_SELECT} WHERE token_id = ?", (token_id,))
    return None if row is None else _TOKENS.value(row)


def _find(ledger: Ledger, digest: bytes) -> Token | None:
    row = ledger.one(f"{_SELECT} WHERE digest = ?", (digest,))
    return None if row is None else _TOKENS.value(row)


def _page(ledger: Ledger) -> list[Token]:
    return [_TOKENS.value(row) for row in ledger.run(f"{_SELECT} ORDER BY seq DESC")]


class Tokens:
    """`contract.Tokens` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def create(self, token: NewToken, now: int) -> None:
        """See the contract."""
        await self._executor.write(partial(create, token=token, now=now))

    async def find(self, digest: bytes) -> Token | None:
        """See the contract."""
        return await self._executor.read(partial(_find, digest=digest))

    async def page(self) -> list[Token]:
        """See the contract."""
        return await self._executor.read(_page)

    async def revoke(self, token_id: str, actor: str, now: int) -> Token | None:
        """See the contract."""
        step = partial(revoke, token_id=token_id, actor=actor, now=now)
        return await self._executor.write(step)
