"""`/v1/tokens`: who may call the API."""

import re
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import render
from gateway.auth import TOKEN_BYTES, new_token, token_text
from gateway.context import Context
from gateway.endpoint import ADMINS, Endpoint
from gateway.problems import ProblemError, invalid, not_found
from gateway.routes.query import json_object, parameters, text, whole
from reconciler.domain.event import ANY, Scope
from reconciler.domain.token import Role, Token

_FIELDS = ("role", "project", "mode", "label", "expires_in_s")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


async def create_token(request: Request, context: Context, caller: Token) -> Response:
    """Make a token; its text is in this answer and nowhere else."""
    fields = await json_object(request, _FIELDS)
    scope = _scope(fields)
    if not caller.scope.covers(scope):
        detail = f"your token is for {caller.scope.project}/{caller.scope.mode}"
        raise ProblemError(HTTPStatus.FORBIDDEN, "forbidden", detail)
    now = context.clock()
    secret = token_text(context.random(TOKEN_BYTES))
    token = new_token(
        context.new_id("tok"),
        secret,
        scope=scope,
        role=_role(fields),
        label=text(fields, "label") or "",
        created_by=caller.token_id,
        expires_at=_expires_at(fields, now),
    )
    await context.store.tokens.create(token, now)
    stored = Token(
        token_id=token.token_id,
        scope=token.scope,
        role=token.role,
        label=token.label,
        created_by=token.created_by,
        created_at=now,
        expires_at=token.expires_at,
        revoked_at=None,
    )
    document = {**render.token(stored), "token": secret}
    return JSONResponse(document, HTTPStatus.CREATED, {"cache-control": "no-store"})


def _role(fields: dict[str, Any]) -> Role:
    try:
        return Role(str(fields.get("role")))
    except ValueError:
        raise invalid(f"role is one of {', '.join(Role)}") from None


def _scope(fields: dict[str, Any]) -> Scope:
    project = text(fields, "project") or "default"
    mode = text(fields, "mode") or "live"
    if project != ANY and not _NAME.fullmatch(project):
        raise invalid("project is a name in lower case, or * for all")
    if mode not in {ANY, "live", "test"}:
        raise invalid("mode is live, test or * for both")
    return Scope(project, mode)


def _expires_at(fields: dict[str, Any], now: int) -> int | None:
    seconds = fields.get("expires_in_s")
    if seconds is None:
        return None
    if not isinstance(seconds, int) or isinstance(seconds, bool) or not 0 < seconds < 1 << 32:
        raise invalid("expires_in_s is a number of seconds")
    return now + seconds * 1000


async def list_tokens(request: Request, context: Context, caller: Token) -> Response:
    """List tokens, newest first."""
    parameters(request, paged=False)
    items = [item for item in await context.store.tokens.page() if caller.scope.covers(item.scope)]
    return whole(render.token(item) for item in items)


async def revoke_token(request: Request, context: Context, caller: Token) -> Response:
    """Revoke a token; it stops working with the next request."""
    token_id = request.path_params["token_id"]
    known = {item.token_id: item for item in await context.store.tokens.page()}
    if token_id not in known or not caller.scope.covers(known[token_id].scope):
        raise not_found("token")
    revoked = await context.store.tokens.revoke(token_id, caller.token_id, context.clock())
    if revoked is None:
        raise not_found("token")
    return JSONResponse(render.token(revoked))


ENDPOINTS = (
    Endpoint("POST", "/v1/tokens", ADMINS, create_token),
    Endpoint("GET", "/v1/tokens", ADMINS, list_tokens),
    Endpoint("POST", "/v1/tokens/{token_id}/revoke", ADMINS, revoke_token),
)
