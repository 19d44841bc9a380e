"""Who may call the API."""

from reconciler.domain.token import NewToken, Token, revoked_entry
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import Row, as_number
from reconciler.storage.redis.script import load

_CREATE, _REVOKE = load("token_create"), load("token_revoke")
_FIND, _PAGE = load("token_find"), load("token_page")
_TOKEN = Row(Token, apart=("created_at", "revoked_at"))


class Tokens:
    """`contract.Tokens` on Redis."""

    def __init__(self, reads: Pipeline, writes: Pipeline) -> None:
        self._reads, self._writes = reads, writes

    async def create(self, token: NewToken, now: int) -> None:
        """See the contract."""
        row, entry = _TOKEN.pack(token), token.entry(now)
        await self._writes.run(_CREATE, now, token.token_id.encode(), token.digest, row, entry)

    async def find(self, digest: bytes) -> Token | None:
        """See the contract."""
        stored = await self._reads.run(_FIND, digest)
        return None if stored is None else _token(*stored)

    async def page(self) -> list[Token]:
        """See the contract."""
        return [_token(*stored) for stored in await self._reads.run(_PAGE)]

    async def revoke(self, token_id: str, actor: str, now: int) -> Token | None:
        """See the contract."""
        entry = revoked_entry(token_id, actor, now)
        stored = await self._writes.run(_REVOKE, now, token_id.encode(), entry)
        return None if stored is None else _token(*stored)


def _token(row: bytes, created_at: bytes, revoked_at: bytes) -> Token:
    return _TOKEN.value(row, created_at=int(created_at), revoked_at=as_number(revoked_at))
