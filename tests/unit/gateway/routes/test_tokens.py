"""`/v1/tokens`: made once, shown once, never beyond their maker's reach."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.domain.token import Role
from tests.support.edge import Edge, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


async def test_a_token_is_shown_once(edge: Edge) -> None:
    """Its text is in the first answer, is not to be cached, works, and is nowhere afterwards."""
    wanted = {"role": "viewer", "project": "shop", "mode": "live", "label": "ci"}
    answer = await edge.call("POST", "/v1/tokens", json=wanted)
    text = answer.json()["token"]
    assert (answer.status_code, answer.headers["cache-control"]) == (201, "no-store")
    assert (await edge.call("GET", "/v1/events", token=text)).status_code == 200
    listed = await edge.call("GET", "/v1/tokens")
    assert text not in listed.text
    assert {"ci", ""} == {item["label"] for item in listed.json()["items"]}


async def test_a_revoked_token_stops_at_once(edge: Edge) -> None:
    """From the next request on it is a stranger's; revoking it again changes nothing."""
    made = (await edge.call("POST", "/v1/tokens", json={"role": "viewer"})).json()
    path = f"/v1/tokens/{made['token_id']}/revoke"
    first, second = await edge.call("POST", path), await edge.call("POST", path)
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert (await edge.call("GET", "/v1/events", token=made["token"])).status_code == 401


async def test_an_expiry_is_held(edge: Edge) -> None:
    """A token works until its instant and not at it."""
    wanted = {"role": "viewer", "expires_in_s": 60}
    text = (await edge.call("POST", "/v1/tokens", json=wanted)).json()["token"]
    edge.now += 59_999
    assert (await edge.call("GET", "/v1/events", token=text)).status_code == 200
    edge.now += 1
    assert (await edge.call("GET", "/v1/events", token=text)).status_code == 401


@pytest.mark.parametrize(
    "wrong",
    [
        *({"role": "root"}, {"role": None}, {"role": ["admin"]}, {}),
        *({"project": "Shop"}, {"project": ""}, {"project": "a\nb"}, {"mode": "prod"}),
        *({"expires_in_s": 0}, {"expires_in_s": -1}, {"expires_in_s": 1.5}, {"expires_in_s": True}),
        *({"expires_in_s": "60"}, {"expires_in_s": 1 << 70}, {"label": 5}, {"owner": "x"}),
    ],
    ids=str,
)
async def test_a_wrong_wish_makes_no_token(edge: Edge, wrong: dict[str, Any]) -> None:
    """Roles, scopes and lifetimes are closed lists and ranges."""
    wanted = {"role": "viewer", **wrong} if wrong else {}
    answer = await edge.call("POST", "/v1/tokens", json=wanted)
    assert answer.status_code == 400
    assert "token" not in answer.json()


@pytest.mark.parametrize(
    "wanted", [{"project": "*"}, {"project": "other"}, {"mode": "test"}, {"mode": "*"}]
)
async def test_no_token_reaches_beyond_its_makers(edge: Edge, wanted: dict[str, str]) -> None:
    """An admin of one project and mode makes tokens for these only, and sees no others."""
    mine = await edge.token(Role.ADMIN, "shop", "live")
    await edge.token(Role.ADMIN)
    scope = {"project": "shop", "mode": "live", **wanted}
    answer = await edge.call("POST", "/v1/tokens", token=mine, json={"role": "viewer", **scope})
    assert answer.status_code == 403
    listed = (await edge.call("GET", "/v1/tokens", token=mine)).json()["items"]
    assert [item["project"] for item in listed] == ["shop"]


async def test_another_projects_token_cannot_be_revoked(edge: Edge) -> None:
    """It answers as if it were not there, and goes on working."""
    mine, theirs = await edge.token(Role.ADMIN, "shop", "live"), await edge.token(Role.ADMIN)
    (token_id,) = [
        item.token_id for item in await edge.store.tokens.page() if item.scope.project == "*"
    ]
    answer = await edge.call("POST", f"/v1/tokens/{token_id}/revoke", token=mine)
    assert answer.status_code == 404
    assert (await edge.call("GET", "/v1/tokens", token=theirs)).status_code == 200
