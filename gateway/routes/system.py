"""Sources, the configuration, and health."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway import render
from gateway.context import Context
from gateway.endpoint import OPERATORS, READERS, Endpoint
from gateway.problems import ProblemError, not_found
from gateway.routes.query import parameters, whole
from reconciler.config import ConfigError
from reconciler.domain.token import Token


async def list_sources(request: Request, context: Context, caller: Token) -> Response:
    """List the configured sources."""
    parameters(request, paged=False)
    items = [item for item in context.sources.all() if caller.scope.covers(item.scope)]
    return whole(render.source(item) for item in items)


async def show_source(request: Request, context: Context, caller: Token) -> Response:
    """Show one source."""
    source = context.sources.named(request.path_params["name"])
    if source is None or not caller.scope.covers(source.scope):
        raise not_found("source")
    return JSONResponse(render.source(source))


async def reload(_request: Request, context: Context, _caller: Token) -> Response:
    """Read sources and profiles again; a file with a mistake changes nothing."""
    try:
        await context.reload()
    except ConfigError as error:
        status = HTTPStatus.UNPROCESSABLE_ENTITY
        raise ProblemError(status, "invalid-configuration", str(error)) from None
    return JSONResponse({"sources": len(context.sources.all())})


ENDPOINTS = (
    Endpoint("GET", "/v1/sources", READERS, list_sources),
    Endpoint("GET", "/v1/sources/{name}", READERS, show_source),
    Endpoint("POST", "/v1/config/reload", OPERATORS, reload),
)


def health_routes(context: Context) -> list[Route]:
    """Return the routes that need no token, because they tell nothing but a few slugs."""

    async def livez(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def readyz(_request: Request) -> Response:
        unready = await context.unready()
        if not unready:
            return JSONResponse({"status": "ok"})
        status = HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse({"status": "unready", "reasons": unready}, status)

    return [Route("/livez", livez, methods=["GET"]), Route("/readyz", readyz, methods=["GET"])]
