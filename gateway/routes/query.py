"""Reading what a caller sent, and the pages that lists are answered with.

What is wrong becomes a problem document that names it.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from gateway.problems import invalid
from reconciler.config import suggest
from reconciler.domain.ids import is_name

LIMIT_MAX = 200
BODY_BYTES_MAX = 64 * 1024
_PAGE = ("before", "limit")


def parameters(
    request: Request, known: Iterable[str] = (), *, paged: bool = True
) -> dict[str, str]:
    """Return the query's parameters; an unknown or repeated one is refused."""
    allowed = (*known, *_PAGE) if paged else tuple(known)
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in allowed:
            raise invalid(f"unknown parameter {name[:100]!a}{suggest(name, list(allowed))}")
        if name in found:
            raise invalid(f"{name} stands twice")
        found[name] = value
    return found


def limit(found: dict[str, str]) -> int:
    """Return how many items a page may have."""
    text = found.get("limit", "50")
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0  # noqa: PLR2004
    if not 1 <= number <= LIMIT_MAX:
        raise invalid(f"limit is a number from 1 to {LIMIT_MAX}")
    return number


def id_cursor(found: dict[str, str], kind: str) -> str | None:
    """Return the cursor of a list that goes by ids of a kind."""
    cursor = found.get("before")
    if cursor is not None and not re.fullmatch(f"{kind}_[0-9a-z]{{26}}", cursor):
        raise invalid("before is the `next` of the last page")
    return cursor


def page(items: list[dict[str, Any]], cursor: str, wanted: int) -> JSONResponse:
    """Return a page of a list; `next` is the value of `before` for the following page."""
    following = str(items[-1][cursor]) if len(items) == wanted else None
    return JSONResponse({"items": items, "next": following})


def whole(items: Iterable[dict[str, Any]]) -> JSONResponse:
    """Return a list that always fits one page, in the form of a page."""
    return JSONResponse({"items": list(items), "next": None})


async def json_object(request: Request, known: Iterable[str]) -> dict[str, Any]:
    """Return the body as an object with known keys only."""
    try:
        found = json.loads(await _body(request))
    except (ValueError, RecursionError):
        raise invalid("the body is not JSON") from None
    if not isinstance(found, dict):
        raise invalid("the body is not a JSON object")
    allowed = list(known)
    for name in found:
        if name not in allowed:
            raise invalid(f"unknown field {name[:100]!a}{suggest(name, allowed)}")
    return found


async def _body(request: Request) -> bytes:
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES_MAX:
                raise invalid(f"the body is larger than {BODY_BYTES_MAX} bytes")
    except ClientDisconnect:
        raise invalid("the body ended early") from None
    return body


def text(found: dict[str, Any], name: str, *, required: bool = False) -> str | None:
    """Return a text field of 1 to 512 printable characters, or `None`."""
    value = found.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not is_name(value):
        raise invalid(f"{name} is text of 1 to 512 printable characters")
    return value
