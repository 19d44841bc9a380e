"""Sources, the configuration, and health."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway import render
from gateway.context import Context
from gateway.endpoint import OPERATORS, READERS, Endpoint
from gateway.problems import ProblemError, invalid, not_found
from gateway.published_keys import documents_of
from gateway.routes.query import parameters, whole
from gateway.source import Source
from reconciler.config import ConfigError
from reconciler.domain.token import Token
from verifiers.published import key_ids


async def list_sources(request: Request, context: Context, caller: Token) -> Response:
    """List the configured sources."""
    parameters(request, paged=False)
    items = [item for item in context.sources.all() if caller.scope.covers(item.scope)]
    return whole(render.source(item) for item in items)


async def show_source(request: Request, context: Context, caller: Token) -> Response:
    """Show one source."""
    source = _source(request, context, caller)
    document = render.source(source)
    if source.preset.published is not None:
        found = documents_of(source, await context.store.published_keys.after(0))
        document["published_keys"] = [
            render.key_document(item, key_ids(source.preset, item.url, item.content or b""))
            for item in found
        ]
    return JSONResponse(document)


async def refresh_keys(request: Request, context: Context, caller: Token) -> Response:
    """Have the published keys of a source fetched anew, now."""
    source = _source(request, context, caller)
    if source.preset.published is None:
        raise invalid("the source's keys are its own: no provider publishes them")
    count = await context.store.published_keys.refresh(source.name, context.clock())
    return JSONResponse({"due": count}, HTTPStatus.ACCEPTED)


def _source(request: Request, context: Context, caller: Token) -> Source:
    source = context.sources.named(request.path_params["name"])
    if source is None or not caller.scope.covers(source.scope):
        raise not_found("source")
    return source


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
    Endpoint("POST", "/v1/sources/{name}/refresh-keys", OPERATORS, refresh_keys),
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
