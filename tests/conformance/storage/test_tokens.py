"""`Tokens`: who may call the API."""

from collections.abc import Callable

import pytest

from reconciler.domain import journal
from reconciler.domain.token import Role, Token
from reconciler.storage.contract import Store
from tests.support.builders import NOW, SCOPE, new_token

pytestmark = pytest.mark.anyio


async def test_create(store: Store) -> None:
    """A token is found by its digest, and the journal tells of it."""
    new = new_token(role=Role.ADMIN, expires_at=NOW + 5)
    await store.tokens.create(new, NOW)

    expected = Token(
        new.token_id, SCOPE, Role.ADMIN, "token 1", "tests", NOW, NOW + 5, revoked_at=None
    )
    assert expected == await store.tokens.find(new.digest)
    assert [new.entry(NOW)] == [entry.entry for entry in await store.journal.page(-1, 10)]


async def test_create_again(store: Store) -> None:
    """The step done again after a lost answer changes nothing."""
    await store.tokens.create(new_token(), NOW)
    await store.tokens.create(new_token(), NOW + 1)

    assert [token.created_at for token in await store.tokens.page()] == [NOW]
    assert await store.journal.size() == 1


async def test_find_unknown(store: Store) -> None:
    """A digest that no token has finds none."""
    await store.tokens.create(new_token(), NOW)

    assert await store.tokens.find(new_token(2).digest) is None
    assert await store.tokens.find(b"") is None


async def test_find_useless(store: Store) -> None:
    """Revoked and expired tokens are found, so that whoever asks can say why they are refused."""
    await store.tokens.create(new_token(expires_at=NOW), NOW)
    await store.tokens.revoke(new_token().token_id, "admin", NOW + 1)

    found = await store.tokens.find(new_token().digest)

    assert found is not None
    assert found.revoked_at == NOW + 1
    assert not found.usable(NOW)


async def test_page(store: Store) -> None:
    """All tokens are listed, newest first."""
    for number in (2, 1, 3):
        await store.tokens.create(new_token(number), NOW)

    labels = [token.label for token in await store.tokens.page()]

    assert labels == ["token 3", "token 1", "token 2"]


async def test_revoke(store: Store) -> None:
    """A token is revoked once; who did it stands in the journal."""
    await store.tokens.create(new_token(), NOW)

    first = await store.tokens.revoke(new_token().token_id, "admin", NOW + 1)
    again = await store.tokens.revoke(new_token().token_id, "other", NOW + 2)

    assert first is not None
    assert first.revoked_at == NOW + 1
    assert first == again
    entries = [journal.decode(entry.entry) for entry in await store.journal.page(0, 10)]
    told = {"token_id": new_token().token_id, "actor": "admin", "at": NOW + 1}
    assert [("token.revoked", told)] == entries


async def test_revoke_unknown(store: Store) -> None:
    """A token that does not exist cannot be revoked."""
    assert await store.tokens.revoke("tok_none", "admin", NOW) is None
    assert await store.journal.size() == 0


async def test_reopen(open_ledger: Callable[[], Store]) -> None:
    """Tokens and their revocations are there when the ledger is opened again."""
    before = open_ledger()
    await before.tokens.create(new_token(1), NOW)
    await before.tokens.create(new_token(2), NOW)
    await before.tokens.revoke(new_token(2).token_id, "admin", NOW)
    expected = await before.tokens.page()
    await before.close()

    after = open_ledger()
    try:
        assert expected == await after.tokens.page()
    finally:
        await after.close()
