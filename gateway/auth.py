"""Who may call the API: bearer tokens with a role, a project and a mode.

A token is `vbk_` and 256 random bits; the ledger knows its SHA-256 only, and finds it by that
digest, so no comparison depends on the secret. What a token may not see answers like what does not
exist.
"""

import base64
import hashlib
from http import HTTPStatus

from starlette.requests import Request

from gateway.problems import ProblemError
from reconciler.domain.event import Scope
from reconciler.domain.token import NewToken, Role, Token
from reconciler.storage.contract import Tokens

TOKEN_BYTES = 32
_PREFIX = "vbk_"


def token_text(random: bytes) -> str:
    """Return the text of a token for 32 random bytes."""
    assert len(random) == TOKEN_BYTES
    return _PREFIX + base64.urlsafe_b64encode(random).decode().rstrip("=")


def new_token(
    token_id: str,
    text: str,
    *,
    scope: Scope,
    role: Role,
    label: str,
    created_by: str,
    expires_at: int | None = None,
) -> NewToken:
    """Return what the ledger stores of the token `text`."""
    return NewToken(token_id, scope, role, label, _digest(text), created_by, expires_at)


async def authenticate(request: Request, tokens: Tokens, now: int) -> Token:
    """Return the caller's token; `ProblemError` (401, the same for every cause) without one."""
    values = request.headers.getlist("authorization")
    scheme, _, text = values[0].partition(" ") if len(values) == 1 else ("", "", "")
    if scheme.lower() == "bearer" and text.startswith(_PREFIX):
        token = await tokens.find(_digest(text))
        if token is not None and token.usable(now):
            return token
    raise ProblemError(
        HTTPStatus.UNAUTHORIZED,
        "unauthenticated",
        "send a token as 'Authorization: Bearer vbk_...' (vouchback token create)",
        {"www-authenticate": "Bearer"},  # RFC 9110, section 11.6.1
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
