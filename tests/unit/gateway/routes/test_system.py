"""Sources and the configuration, over the API."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler.config import ConfigError
from reconciler.domain.token import Role
from tests.support.edge import Edge, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


async def test_sources_are_shown_without_their_keys(edge: Edge, tmp_path: Path) -> None:
    """Keys are named by id and time; neither secret nor reference is in an answer."""
    answer = await edge.call("GET", "/v1/sources")
    assert [item["name"] for item in answer.json()["items"]] == ["acme", "plain"]
    assert answer.json()["items"][0]["keys"] == [
        {"id": "k1", "not_before": None, "not_after": None}
    ]
    assert (tmp_path / "acme.key").read_text().removeprefix("whsec_") not in answer.text
    assert "acme.key" not in answer.text


async def test_a_source_of_another_mode_is_not_there(edge: Edge) -> None:
    """A token for live sees no test source, neither listed nor by name."""
    token = await edge.token(Role.VIEWER, "shop", "live")
    items = (await edge.call("GET", "/v1/sources", token=token)).json()["items"]
    assert [item["name"] for item in items] == ["acme"]
    hidden = await edge.call("GET", "/v1/sources/plain", token=token)
    missing = await edge.call("GET", "/v1/sources/nothing", token=token)
    assert (hidden.status_code, hidden.content) == (404, missing.content)


async def test_a_wrong_configuration_is_refused_and_said(edge: Edge) -> None:
    """A reload with a mistake is 422 and names it."""

    async def reload() -> None:
        raise ConfigError("f.toml: unknown key publik (did you mean public?)")

    context = edge.context
    edge.context = lambda: dataclasses.replace(context(), reload=reload)  # type: ignore[method-assign]
    answer = await edge.call("POST", "/v1/config/reload")
    assert answer.status_code == 422
    assert "publik" in answer.json()["detail"]


async def test_a_reload_says_how_many_sources_there_are(edge: Edge) -> None:
    """A right configuration answers with what is in use now."""
    answer = await edge.call("POST", "/v1/config/reload")
    assert (answer.status_code, answer.json()) == (200, {"sources": 2})
