"""The demo provider's HTTP face: create a job, read one; bearer token on every route.

`reconciler/providers/profiles/demo.toml` describes it to the reconciler.
"""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from itertools import count
from typing import Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.demo.job import Job
from gateway.demo.moment import rfc3339
from gateway.demo.provider import DemoProvider
from verifiers.encoding import equal

_BODY_BYTES_MAX = 4096

Endpoint = Callable[[Request], Awaitable[Response]]


def build_app(provider: DemoProvider, token: str) -> Starlette:
    """Return the ASGI application; `token` is what callers must send."""
    wanted, numbers = f"Bearer {token}".encode(), count(1)

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            given = request.headers.get("authorization", "").encode("latin-1")
            if equal(given, wanted):
                response = await endpoint(request)
            else:
                response = JSONResponse({"error": "unauthorized"}, HTTPStatus.UNAUTHORIZED)
            response.headers["x-request-id"] = f"req_{next(numbers)}"
            return response

        return answer

    async def create(request: Request) -> Response:
        reference = await _reference(request)
        if reference is False:
            return JSONResponse({"error": "bad request"}, HTTPStatus.BAD_REQUEST)
        job = provider.create(reference)
        location = {"location": f"/jobs/{job.job_id}"}
        return JSONResponse(_document(job, provider.now()), HTTPStatus.ACCEPTED, location)

    async def read(request: Request) -> Response:
        return _found(provider.jobs.get(request.path_params["job_id"]), provider.now())

    async def find(request: Request) -> Response:
        return _found(provider.by_reference(request.path_params["reference"]), provider.now())

    return Starlette(
        routes=[
            Route("/jobs", guarded(create), methods=["POST"]),
            Route("/jobs/by-reference/{reference}", guarded(find), methods=["GET"]),
            Route("/jobs/{job_id}", guarded(read), methods=["GET"]),
        ]
    )


async def _reference(request: Request) -> str | Literal[False] | None:
    """Return the client's reference, `None` without one, `False` for a body that is no request."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _BODY_BYTES_MAX:
            return False
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return False
    reference = document.get("reference") if isinstance(document, dict) else False
    return reference if reference is None or isinstance(reference, str) else False


def _found(job: Job | None, now: int) -> Response:
    if job is None:
        return JSONResponse({"error": "no such job"}, HTTPStatus.NOT_FOUND)
    return JSONResponse(_document(job, now))


def _document(job: Job, now: int) -> dict[str, str | None]:
    stage = job.at(now)
    document = {
        "id": job.job_id,
        "status": stage.status,
        "reference": job.reference,
        "updated_at": rfc3339(stage.at),
    }
    if stage.status == "failed":
        document["error"] = "the demo provider felt like it"
    return document
