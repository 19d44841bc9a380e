"""Builds the ASGI application of the internal listener from the table of endpoints."""

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.context import Context
from gateway.endpoint import Endpoint
from gateway.problems import problem
from gateway.routes import events, operations, system, tokens
from reconciler import logs

ENDPOINTS: tuple[Endpoint, ...] = (
    *events.ENDPOINTS,
    *operations.ENDPOINTS,
    *system.ENDPOINTS,
    *tokens.ENDPOINTS,
)

_log = logs.get("api")


def internal_app(context: Context) -> Starlette:
    """Return the application: the API and health."""
    app = Starlette(
        routes=[endpoint.route(context) for endpoint in ENDPOINTS] + system.health_routes(context),
        exception_handlers={HTTPException: _http_error, Exception: _bug},
    )
    # A redirect for a slash would lose the body of a POST and hides a typing mistake.
    app.router.redirect_slashes = False
    return app


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = dict(error.headers or {})
        return problem(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", "see Allow", headers)
    return problem(HTTPStatus.NOT_FOUND, "not-found", "there is no such route")


async def _bug(request: Request, error: Exception) -> Response:
    _log.error("bug", path=request.url.path, exc_info=error)
    detail = "the log has the details"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", detail)
