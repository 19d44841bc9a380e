"""`/v1/events` and `/v1/refusals`: what arrived, exactly."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler.domain.token import Role
from reconciler.storage.blobs.files import open_folder
from tests.support.edge import Edge, about, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


async def test_a_body_is_given_back_byte_for_byte(edge: Edge) -> None:
    """What a stranger wrote is downloaded, never shown by a browser, never cached."""
    body = b"<script>alert(1)</script>\xff\x00"
    await edge.post(body)
    (event,) = (await edge.call("GET", "/v1/events")).json()["items"]
    answer = await edge.call("GET", f"/v1/events/{event['event_id']}/body")
    assert answer.content == body
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["cache-control"] == "no-store"


async def test_a_body_in_a_file(edge: Edge, tmp_path: Path) -> None:
    """A moved body is given back as before; when its file is gone the answer says so, not `b""`."""
    body = b"x" * 1_000
    await edge.post(body)
    (event,) = (await edge.call("GET", "/v1/events")).json()["items"]
    path = f"/v1/events/{event['event_id']}/body"
    edge.blobs = blobs = open_folder(tmp_path / "blobs", is_ours=True)
    await edge.store.upkeep.body_moved(event["event_id"], await blobs.put(body), edge.now)
    assert (await edge.call("GET", path)).content == body

    for file in (tmp_path / "blobs").glob("*/*"):
        file.unlink()
    answer = await edge.call("GET", path)

    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/body-lost"
    assert answer.json()["detail"] == (
        "the file that held this body is missing or damaged; the log names it"
    )


async def test_headers_keep_order_and_bytes(edge: Edge) -> None:
    """Header lines are shown as pairs, bytes beyond ASCII as latin-1."""
    headers = [(b"x-b", b"1: 2"), (b"x-a", b"\xe9"), (b"x-b", b""), *edge.signed(b"{}")]
    await edge.post(b"{}", headers)
    (event,) = (await edge.call("GET", "/v1/events")).json()["items"]
    assert event["headers"][:3] == [["x-b", "1: 2"], ["x-a", "é"], ["x-b", ""]]


async def test_pages_of_events_follow_each_other(edge: Edge) -> None:
    """`next` leads through all events, newest first, each once."""
    for number in range(5):
        await edge.post(about(f"job_{number}"), event_id=f"msg_{number}")
    seen, query = [], ""
    while query is not None:
        page = (await edge.call("GET", f"/v1/events?limit=2{query}")).json()
        seen += [item["provider_event_id"] for item in page["items"]]
        query = None if page["next"] is None else f"&before={page['next']}"
    assert seen == [f"msg_{number}" for number in range(4, -1, -1)]


async def test_conflicts_are_shown_beside_the_first(edge: Edge) -> None:
    """Other content under a known id is kept and shown; the first stands."""
    await edge.post(b'{"a":1}')
    await edge.post(b'{"a":2}')
    (event,) = (await edge.call("GET", "/v1/events")).json()["items"]
    shown = (await edge.call("GET", f"/v1/events/{event['event_id']}/conflicts")).json()["items"]
    assert [(item["event_id"], item["body_bytes"]) for item in shown] == [(event["event_id"], 7)]


async def test_refusals_show_why(edge: Edge) -> None:
    """Reviewers see reason, peer and digest, and can ask for one reason."""
    await edge.post(b"{}", [])
    await edge.post(method="PUT")
    await edge.refusals.flush()
    items = (await edge.call("GET", "/v1/refusals?reason=signature_missing")).json()["items"]
    assert [(item["reason"], item["peer"], item["method"]) for item in items] == [
        ("signature_missing", "192.0.2.7", "POST")
    ]
    assert items[0]["headers"] == [[":path", "/in/acme"]]


async def test_refusals_of_nobody_are_not_for_one_project(edge: Edge) -> None:
    """What reached no source is seen by who may see everything."""
    await edge.post(path=b"/in/nobody")
    await edge.refusals.flush()
    token = await edge.token(Role.OPERATOR, "shop", "live")
    assert (await edge.call("GET", "/v1/refusals", token=token)).json()["items"] == []
    assert len((await edge.call("GET", "/v1/refusals")).json()["items"]) == 1


async def test_events_of_another_project_are_not_listed(edge: Edge) -> None:
    """A list holds what the token covers, and a page of it as well."""
    await edge.post(about("job_1"))
    for project, mode, expected in (("shop", "live", 1), ("shop", "test", 0), ("other", "live", 0)):
        token = await edge.token(Role.VIEWER, project, mode)
        items = (await edge.call("GET", "/v1/events", token=token)).json()["items"]
        assert len(items) == expected
