"""The API as a whole: who may call what, and that nothing inside ever shows."""

import dataclasses
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from gateway import app
from gateway.app import ENDPOINTS, internal_app
from gateway.endpoint import Endpoint
from gateway.routes import operations
from reconciler.domain.token import Role
from tests.support.builders import first_line, operation
from tests.support.edge import Edge, opened

pytestmark = pytest.mark.anyio

OPEN = {"/livez", "/readyz"}
#: Written by hand: who may call what (v viewer, o operator, u auditor, a admin, c client, n consumer).
ROLES = {
    ("GET", "/v1/events"): "vouan",
    ("GET", "/v1/events/{event_id}"): "vouan",
    ("GET", "/v1/events/{event_id}/body"): "vouan",
    ("GET", "/v1/events/{event_id}/conflicts"): "vouan",
    ("GET", "/v1/refusals"): "oua",
    ("POST", "/v1/operations"): "oac",
    ("GET", "/v1/operations"): "vouac",
    ("GET", "/v1/operations/{operation_id}"): "vouac",
    ("GET", "/v1/operations/{operation_id}/history"): "vouac",
    ("GET", "/v1/operations/{operation_id}/observations"): "vouac",
    ("GET", "/v1/sources"): "voua",
    ("GET", "/v1/sources/{name}"): "voua",
    ("POST", "/v1/config/reload"): "oa",
    ("POST", "/v1/sources/{name}/refresh-keys"): "oa",
    ("POST", "/v1/tokens"): "a",
    ("GET", "/v1/tokens"): "a",
    ("POST", "/v1/tokens/{token_id}/revoke"): "a",
}
LETTERS = dict(
    zip("vouacn", ("viewer", "operator", "auditor", "admin", "client", "consumer"), strict=True)
)


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


def path_of(endpoint: Endpoint) -> str:
    """Return a path that the route matches, about nothing that exists."""
    return re.sub(r"\{[^}]+\}", "nothing", endpoint.path)


async def test_every_route_of_the_app_is_in_the_table_of_roles(edge: Edge) -> None:
    """No route is reachable that was not thought about; health alone needs no token."""
    routes = [route for route in internal_app(edge.context()).routes if isinstance(route, Route)]
    found = {(m, r.path) for r in routes for m in r.methods or () if m != "HEAD"}
    assert found == {*ROLES, *(("GET", path) for path in OPEN)}
    assert {(item.method, item.path) for item in ENDPOINTS} == set(ROLES)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda item: f"{item.method} {item.path}")
async def test_a_route_knows_its_roles(edge: Edge, endpoint: Endpoint) -> None:
    """Each role may or may not, as the table says; who may not is told which role it takes."""
    allowed = {LETTERS[letter] for letter in ROLES[endpoint.method, endpoint.path]}
    for role in Role:
        token = await edge.token(role)
        answer = await edge.call(endpoint.method, path_of(endpoint), token=token)
        assert (answer.status_code != 403) == (role.value in allowed), role
        assert answer.status_code != 401


WRONG = {
    "none": [],
    "empty": [("authorization", "")],
    "basic": [("authorization", "Basic dTpw")],
    "no prefix": [("authorization", "Bearer x")],
    "unknown": [("authorization", "Bearer vbk_" + "A" * 43)],
    "huge": [("authorization", "Bearer vbk_" + "A" * 30_000)],
    "latin": [("authorization", b"Bearer vbk_\xff\xfe")],
    "two blanks": [("authorization", "Bearer  {viewer}")],
    "twice": [("authorization", "Bearer {viewer}"), ("authorization", "Bearer {viewer}")],
    "expired": [("authorization", "Bearer {expired}")],
    "revoked": [("authorization", "Bearer {revoked}")],
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("endpoint", [ENDPOINTS[0], ENDPOINTS[-1]], ids=["read", "write"])
async def test_every_bad_credential_is_one_and_the_same_401(
    edge: Edge, endpoint: Endpoint, case: str
) -> None:
    """Missing, malformed, unknown, doubled, expired, revoked: no answer tells which."""
    texts = {
        "viewer": await edge.token(Role.ADMIN),
        "expired": await edge.token(Role.ADMIN, expires_at=edge.now),
        "revoked": await edge.token(Role.ADMIN, "other"),
    }
    by_project = {item.scope.project: item.token_id for item in await edge.store.tokens.page()}
    await edge.store.tokens.revoke(by_project["other"], "tests", edge.now)
    headers = [
        (name, value.format(**texts) if isinstance(value, str) else value)
        for name, value in WRONG[case]
    ]
    plain = await edge.call(endpoint.method, path_of(endpoint), token=None)
    answer = await edge.call(endpoint.method, path_of(endpoint), token=None, headers=headers)
    assert answer.status_code == plain.status_code == 401
    assert answer.content == plain.content
    assert answer.headers == plain.headers
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_the_scheme_is_read_in_any_case(edge: Edge) -> None:
    """RFC 9110: the name of the scheme is case-insensitive, the token is not."""
    token = await edge.token(Role.VIEWER)
    for headers, status in (
        ([("authorization", f"bEARER {token}")], 200),
        ([("authorization", f"Bearer {token.swapcase()}")], 401),
    ):
        answer = await edge.call("GET", "/v1/events", token=None, headers=headers)
        assert answer.status_code == status


@pytest.mark.parametrize(
    ("method", "path", "status", "slug"),
    [
        ("GET", "/", 404, "not-found"),
        ("GET", "/v1/events/", 404, "not-found"),
        ("GET", "/v1/nothing", 404, "not-found"),
        ("GET", "/V1/events", 404, "not-found"),
        ("GET", "/in/acme", 404, "not-found"),
        ("DELETE", "/v1/events", 405, "method-not-allowed"),
        ("POST", "/livez", 405, "method-not-allowed"),
        ("GET", "/v1/events/%00", 404, "not-found"),
        ("GET", "/v1/events/%ff%fe", 404, "not-found"),
        ("GET", "/v1/operations/..%2f..", 404, "not-found"),
        ("GET", "/v1/operations/" + "x" * 20_000, 404, "not-found"),
        ("POST", "/v1/tokens/nothing/revoke", 404, "not-found"),
    ],
)
async def test_what_is_not_there_is_a_problem_document(
    edge: Edge, method: str, path: str, status: int, slug: str
) -> None:
    """Unknown routes, methods and things end in RFC 9457 documents, whatever the path holds."""
    answer = await edge.call(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == f"/problems/{slug}"
    assert answer.json()["status"] == status


async def test_405_says_what_is_allowed(edge: Edge) -> None:
    """RFC 9110, section 15.5.6."""
    answer = await edge.call("DELETE", "/v1/config/reload")
    assert answer.headers["allow"] == "POST"


async def test_a_bug_shows_nothing_of_itself(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception of ours is a 500 without a word from inside; the log has it."""

    async def bug(*_args: Any) -> Any:
        raise KeyError("secret detail")

    broken = [
        dataclasses.replace(item, handler=bug)
        if item.handler is operations.list_operations
        else item
        for item in ENDPOINTS
    ]
    monkeypatch.setattr(app, "ENDPOINTS", tuple(broken))
    answer = await edge.call("GET", "/v1/operations")
    assert answer.status_code == 500
    assert answer.json()["type"] == "/problems/internal"
    for word in ("secret detail", "KeyError", "Traceback", "File "):
        assert word not in answer.text


async def test_a_ledger_that_is_away_is_503(tmp_path: Path) -> None:
    """The API says that it cannot answer now, and when to ask again."""
    async with opened(tmp_path) as closed:
        token = await closed.token(Role.ADMIN)
    answer = await closed.call("GET", "/v1/events", token=token)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json()["type"] == "/problems/unavailable"


@pytest.mark.parametrize(
    ("project", "mode", "seen"),
    [
        ("*", "*", True),
        ("shop", "live", True),
        ("shop", "*", True),
        ("*", "live", True),
        ("shop", "test", False),
        ("other", "live", False),
        ("*", "test", False),
    ],
)
async def test_what_a_token_does_not_cover_is_not_there(
    edge: Edge, project: str, mode: str, *, seen: bool
) -> None:
    """Another project's or mode's operation answers exactly like one that does not exist (P2)."""
    value = operation()
    await edge.store.operations.register(value, first_line(value), edge.now)
    token = await edge.token(Role.VIEWER, project, mode)
    for suffix in ("", "/history", "/observations"):
        there = await edge.call("GET", f"/v1/operations/{value.operation_id}{suffix}", token=token)
        nothing = await edge.call("GET", f"/v1/operations/nothing{suffix}", token=token)
        assert there.status_code == (200 if seen else 404)
        assert seen or there.content == nothing.content


async def test_health_needs_no_token_and_tells_nothing(edge: Edge) -> None:
    """Probes carry no credential; what they learn is a word."""
    for path in OPEN:
        answer = await edge.call("GET", path, token=None)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_what_is_not_ready_is_named(edge: Edge) -> None:
    """503 with slugs, for whoever runs the probe."""

    async def unready() -> list[str]:
        return ["storage"]

    context = edge.context
    edge.context = lambda: dataclasses.replace(context(), unready=unready)  # type: ignore[method-assign]
    answer = await edge.call("GET", "/readyz", token=None)
    assert answer.status_code == 503
    assert answer.json() == {"status": "unready", "reasons": ["storage"]}
