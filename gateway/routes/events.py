"""`/v1/events` and `/v1/refusals`: what arrived."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import render
from gateway.context import Context
from gateway.endpoint import OPERATORS, READERS, Endpoint
from gateway.problems import body_lost, invalid, not_found
from gateway.routes.query import id_cursor, limit, page, parameters, whole
from reconciler import logs
from reconciler.domain.event import Event
from reconciler.domain.token import Role, Token
from reconciler.storage.contract import EventQuery, RefusalQuery
from reconciler.storage.errors import BodyLostError

_SEQ_DIGITS_MAX = 18

_log = logs.get("api")


async def list_events(request: Request, context: Context, caller: Token) -> Response:
    """List events, newest first."""
    found = parameters(request, ("source", "type", "operation", "parked"))
    wanted = limit(found)
    query = EventQuery(
        scope=caller.scope,
        source=found.get("source"),
        event_type=found.get("type"),
        operation_id=found.get("operation"),
        parked=_truth(found.get("parked")),
        before=_seq(found.get("before")),
        limit=wanted,
    )
    items = await context.store.events.page(query)
    documents = [{"seq": item.seq, **render.event(item)} for item in items]
    return page(documents, "seq", wanted)


async def show_event(request: Request, context: Context, caller: Token) -> Response:
    """Show one event."""
    return JSONResponse(render.event(await _event(request, context, caller)))


async def event_body(request: Request, context: Context, caller: Token) -> Response:
    """Return the body exactly as it came, for download only."""
    event = await _event(request, context, caller)
    try:
        body = await context.body(event.event_id)
    except BodyLostError as error:
        _log.error("body_lost", event_id=event.event_id, error=str(error))
        raise body_lost() from error
    headers = {
        "content-disposition": f'attachment; filename="{event.event_id}.bin"',
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    return Response(body or b"", media_type="application/octet-stream", headers=headers)


async def event_conflicts(request: Request, context: Context, caller: Token) -> Response:
    """List the requests that came with the event's key and other content."""
    event = await _event(request, context, caller)
    items = await context.store.events.conflicts(event.event_id)
    return whole(render.conflict(item) for item in items)


async def list_refusals(request: Request, context: Context, caller: Token) -> Response:
    """List refused requests, newest first."""
    found = parameters(request, ("source", "reason"))
    wanted = limit(found)
    query = RefusalQuery(
        scope=caller.scope,
        source=found.get("source"),
        reason=found.get("reason"),
        before=id_cursor(found, "rfs"),
        limit=wanted,
    )
    items = await context.store.events.refusals(query)
    return page([render.refusal(item) for item in items], "refusal_id", wanted)


async def _event(request: Request, context: Context, caller: Token) -> Event:
    event = await context.store.events.get(request.path_params["event_id"])
    if event is None or not caller.scope.covers(event.scope):
        raise not_found("event")
    return event


def _truth(value: str | None) -> bool:
    if value not in {None, "true", "false"}:
        raise invalid("parked is true or false")
    return value == "true"


def _seq(value: str | None) -> int | None:
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= _SEQ_DIGITS_MAX):
        raise invalid("before is the `next` of the last page")
    return int(value)


_CONSUMERS = READERS | {Role.CONSUMER}

ENDPOINTS = (
    Endpoint("GET", "/v1/events", _CONSUMERS, list_events),
    Endpoint("GET", "/v1/events/{event_id}", _CONSUMERS, show_event),
    Endpoint("GET", "/v1/events/{event_id}/body", _CONSUMERS, event_body),
    Endpoint("GET", "/v1/events/{event_id}/conflicts", _CONSUMERS, event_conflicts),
    Endpoint("GET", "/v1/refusals", OPERATORS | {Role.AUDITOR}, list_refusals),
)
