"""Tokens: when they work, and what the journal says of them."""

import pytest

from reconciler.domain import journal
from reconciler.domain.token import Role, Token
from tests.support.builders import NOW, SCOPE, new_token


@pytest.mark.parametrize(
    ("expires_at", "revoked_at", "expected"),
    [
        (None, None, True),
        (NOW + 1, None, True),
        (NOW, None, False),
        (NOW - 1, None, False),
        (None, NOW + 9, False),
        (NOW + 1, 0, False),
    ],
)
def test_a_token_works_until_it_is_revoked_or_expires(
    expires_at: int | None, revoked_at: int | None, *, expected: bool
) -> None:
    """A token is usable before its expiry only, and never once revoked."""
    token = Token("tok_1", SCOPE, Role.VIEWER, "x", "tests", NOW - 5, expires_at, revoked_at)
    assert expected == token.usable(NOW)


def test_the_journal_never_sees_a_tokens_digest() -> None:
    """The entry names the token, its scope and its maker, and nothing to find it by."""
    token = new_token(digest=b"D" * 32, expires_at=NOW + 5)
    kind, fields = journal.decode(token.entry(NOW))
    assert kind == "token.created"
    assert b"D" * 32 not in token.entry(NOW)
    assert fields == {
        "token_id": token.token_id,
        "project": "shop",
        "mode": "live",
        "role": "viewer",
        "label": "token 1",
        "actor": "tests",
        "at": NOW,
        "expires_at": NOW + 5,
    }
