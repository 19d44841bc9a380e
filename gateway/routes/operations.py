"""`/v1/operations`: the record of each operation."""

import hashlib
import json
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import render
from gateway.context import Context, KnownProfile
from gateway.endpoint import OPERATORS, READERS, Endpoint
from gateway.problems import invalid, not_found
from gateway.routes.query import id_cursor, json_object, limit, page, parameters, text, whole
from reconciler.domain.operation import Operation, State, Transition
from reconciler.domain.token import Role, Token
from reconciler.storage.contract import AlreadyRegistered, OperationQuery

_FIELDS = ("profile", "remote_job_id", "client_reference")


async def register_operation(request: Request, context: Context, caller: Token) -> Response:
    """Take an operation that already runs at a provider into our keeping."""
    fields = await json_object(request, _FIELDS)
    name = text(fields, "profile", required=True) or ""
    profile = context.profiles.get(name)
    if profile is None or not caller.scope.covers(profile.scope):
        raise not_found(f"profile; configured is what stands under [profiles] ({name[:64]!a})")
    operation = _new_operation(context, caller, name, profile, fields)
    line = Transition(
        at=operation.created_at,
        actor=caller.token_id,
        from_state=None,
        to_state=operation.state,
        cause=operation.trace_id,
        reason="registered: the job runs already",
        remote_job_id=operation.remote_job_id,
    )
    outcome = await context.store.operations.register(operation, line, operation.created_at)
    status = HTTPStatus.OK if isinstance(outcome, AlreadyRegistered) else HTTPStatus.CREATED
    headers = {"location": f"/v1/operations/{outcome.operation.operation_id}"}
    return JSONResponse(render.operation(outcome.operation), status, headers)


def _new_operation(
    context: Context, caller: Token, name: str, profile: KnownProfile, fields: dict[str, Any]
) -> Operation:
    job, reference = text(fields, "remote_job_id"), text(fields, "client_reference")
    if job is None and reference is None:
        raise invalid("give remote_job_id, client_reference or both")
    if job is None and not profile.by_reference:
        raise invalid(f"profile {name} cannot be asked by client_reference; give remote_job_id")
    now = context.clock()
    normalised = json.dumps([name, job, reference], separators=(",", ":"))
    return Operation(
        operation_id=context.new_id("op"),
        scope=profile.scope,
        profile=name,
        state=State.ACCEPTED,
        version=1,
        created_at=now,
        updated_at=now,
        caller=caller.token_id,
        trace_id=context.random(16).hex(),
        request_fingerprint=hashlib.sha256(normalised.encode()).hexdigest(),
        idempotency_token=None,
        client_reference=reference,
        remote_job_id=job,
        create_deadline_at=None,
        result_deadline_at=now + profile.result_deadline_ms,
        next_at=now,
    )


async def list_operations(request: Request, context: Context, caller: Token) -> Response:
    """List operations, newest first."""
    found = parameters(request, ("profile", "state", "job", "reference"))
    wanted = limit(found)
    query = OperationQuery(
        scope=caller.scope,
        profile=found.get("profile"),
        states=_states(found.get("state")),
        remote_job_id=found.get("job"),
        client_reference=found.get("reference"),
        before=id_cursor(found, "op"),
        limit=wanted,
    )
    items = await context.store.operations.page(query)
    return page([render.operation(item) for item in items], "operation_id", wanted)


def _states(value: str | None) -> tuple[State, ...]:
    try:
        return tuple(State(word) for word in value.split(",")) if value else ()
    except ValueError:
        raise invalid(f"state is one or more of {', '.join(State)}, joined by commas") from None


async def show_operation(request: Request, context: Context, caller: Token) -> Response:
    """Show one operation."""
    return JSONResponse(render.operation(await _operation(request, context, caller)))


async def operation_history(request: Request, context: Context, caller: Token) -> Response:
    """List the lines of history, oldest first."""
    operation = await _operation(request, context, caller)
    items = await context.store.operations.history(operation.operation_id)
    return whole(render.transition(item) for item in items)


async def operation_observations(request: Request, context: Context, caller: Token) -> Response:
    """List the status reads, oldest first."""
    operation = await _operation(request, context, caller)
    items = await context.store.operations.observations(operation.operation_id)
    return whole(render.read(item) for item in items)


async def _operation(request: Request, context: Context, caller: Token) -> Operation:
    operation = await context.store.operations.get(request.path_params["operation_id"])
    if operation is None or not caller.scope.covers(operation.scope):
        raise not_found("operation")
    return operation


_CLIENTS = READERS | {Role.CLIENT}
_ONE = "/v1/operations/{operation_id}"

ENDPOINTS = (
    Endpoint("POST", "/v1/operations", OPERATORS | {Role.CLIENT}, register_operation),
    Endpoint("GET", "/v1/operations", _CLIENTS, list_operations),
    Endpoint("GET", _ONE, _CLIENTS, show_operation),
    Endpoint("GET", f"{_ONE}/history", _CLIENTS, operation_history),
    Endpoint("GET", f"{_ONE}/observations", _CLIENTS, operation_observations),
)
