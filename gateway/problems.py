"""Errors of the API as problem documents (RFC 9457).

A handler, or what it calls, raises `ProblemError`; `gateway.endpoint` turns it into the document.
Types are slugs under `/problems/`; they never change meaning.
"""

from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse, Response

_TITLES = {
    "unauthenticated": "A valid token is needed",
    "forbidden": "The token's role does not allow this",
    "not-found": "There is no such thing",
    "method-not-allowed": "The method is not allowed here",
    "invalid-request": "The request is not valid",
    "unavailable": "The ledger cannot answer now",
    "body-lost": "The body of this event is lost",
    "internal": "Something went wrong on our side",
    "invalid-configuration": "The configuration is not valid; the old one stays in use",
}


class ProblemError(Exception):
    """A call that is not answered as asked."""

    def __init__(
        self, status: HTTPStatus, slug: str, detail: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.slug, self.detail, self.headers = status, slug, detail, headers

    def response(self) -> Response:
        """Return the document."""
        return problem(self.status, self.slug, self.detail, self.headers)


def problem(
    status: HTTPStatus, slug: str, detail: str, headers: dict[str, str] | None = None
) -> Response:
    """Return a problem document; `detail` is for the person who called."""
    document: dict[str, Any] = {
        "type": f"/problems/{slug}",
        "title": _TITLES[slug],
        "status": int(status),
        "detail": detail,
    }
    return JSONResponse(document, status, headers, media_type="application/problem+json")


def not_found(what: str) -> ProblemError:
    """Return the error for what is not there, or what the caller may not know of: no difference."""
    return ProblemError(HTTPStatus.NOT_FOUND, "not-found", f"there is no such {what}")


def invalid(detail: str) -> ProblemError:
    """Return the error for a request that is not valid."""
    return ProblemError(HTTPStatus.BAD_REQUEST, "invalid-request", detail)


def body_lost() -> ProblemError:
    """Return the error for a body whose file is missing or damaged; the log names the file."""
    detail = "the file that held this body is missing or damaged; the log names it"
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "body-lost", detail)
