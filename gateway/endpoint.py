"""Endpoints of the API as data: method, path, who may call it, and what answers.

Every route of the API is an `Endpoint`, so the table of roles is complete by construction; only
health needs no token (`routes.system`). Authentication, roles and errors are dealt with here, once.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway.auth import authenticate
from gateway.context import Context
from gateway.problems import ProblemError, problem
from reconciler import logs
from reconciler.domain.token import Role, Token
from reconciler.storage.errors import StorageUnavailableError

Handler = Callable[[Request, Context, Token], Awaitable[Response]]

READERS = frozenset((Role.VIEWER, Role.OPERATOR, Role.AUDITOR, Role.ADMIN))
OPERATORS = frozenset((Role.OPERATOR, Role.ADMIN))
ADMINS = frozenset((Role.ADMIN,))

_log = logs.get("api")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One route of the API."""

    method: str
    path: str
    roles: frozenset[Role]
    handler: Handler

    def route(self, context: Context) -> Route:
        """Return the Starlette route that guards and calls the handler."""

        async def guarded(request: Request) -> Response:
            try:
                token = await authenticate(request, context.store.tokens, context.clock())
                if token.role not in self.roles:
                    return problem(HTTPStatus.FORBIDDEN, "forbidden", self._wanted(token))
                return await self.handler(request, context, token)
            except ProblemError as error:
                return error.response()
            except StorageUnavailableError as error:
                _log.warning("storage_unavailable", path=self.path, error=str(error))
                detail = "the ledger cannot answer now; try again"
                retry = {"retry-after": "5"}
                return problem(HTTPStatus.SERVICE_UNAVAILABLE, "unavailable", detail, retry)

        return Route(self.path, guarded, methods=[self.method])

    def _wanted(self, token: Token) -> str:
        return f"role {token.role} may not; {', '.join(sorted(self.roles))} may"
