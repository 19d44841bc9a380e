"""Hostile parameters and bodies: a problem document that names what is wrong, and nothing else."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.edge import Edge, about, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limti=5", "unknown parameter 'limti' (did you mean limit?)"),
        ("limit=5&limit=6", "limit stands twice"),
        ("limit=0", "limit is a number from 1 to 200"),
        ("limit=201", "limit is a number from 1 to 200"),
        ("limit=-1", "limit is a number from 1 to 200"),
        ("limit=1.0", "limit is a number from 1 to 200"),
        ("limit=1e2", "limit is a number from 1 to 200"),
        ("limit=%2B5", "limit is a number from 1 to 200"),
        ("limit=%205", "limit is a number from 1 to 200"),
        ("limit=5_0", "limit is a number from 1 to 200"),
        ("limit=", "limit is a number from 1 to 200"),
        ("limit=%EF%BC%95", "limit is a number from 1 to 200"),
        ("limit=" + "9" * 5_000, "limit is a number from 1 to 200"),
        ("before=x", "before is the `next` of the last page"),
        ("before=-1", "before is the `next` of the last page"),
        ("before=" + "9" * 19, "before is the `next` of the last page"),
        ("before=%D9%A3", "before is the `next` of the last page"),
        ("parked=yes", "parked is true or false"),
        ("parked=", "parked is true or false"),
        ("%00=1", "unknown parameter '\\x00'"),
        ("%F0%9F%92%A9=1", "unknown parameter '\\U0001f4a9'"),
        ("x" * 9_000 + "=1", "unknown parameter '" + "x" * 100 + "'"),
    ],
)
async def test_a_wrong_parameter_is_named(edge: Edge, query: str, words: str) -> None:
    """Unknown, repeated, huge, negative, in other digits: 400, and what was wanted."""
    answer = await edge.call("GET", f"/v1/events?{query}")
    assert answer.status_code == 400
    assert answer.json()["detail"] == words


@pytest.mark.parametrize(
    "query",
    ["source=%00", "source=%ff", "type=" + "x" * 9_000, "source=", "operation='--", "before=0"],
)
async def test_odd_values_find_nothing(edge: Edge, query: str) -> None:
    """A value that nothing has gives an empty page, never an error."""
    await edge.post(about("job_1"))
    answer = await edge.call("GET", f"/v1/events?{query}")
    assert (answer.status_code, answer.json()) == (200, {"items": [], "next": None})


CURSOR = "before is the `next` of the last page"


@pytest.mark.parametrize("before", ["%00", "%ff", "zzz", "op_%27%22", "x" * 9_000])
async def test_a_cursor_that_no_page_gave_is_refused(edge: Edge, before: str) -> None:
    """Whoever mistypes a cursor must not get the first page for it."""
    for path in ("/v1/events", "/v1/operations", "/v1/refusals"):
        answer = await edge.call("GET", f"{path}?before={before}")
        assert (answer.status_code, answer.json()["detail"]) == (400, CURSOR)


async def test_a_list_without_pages_knows_no_cursor(edge: Edge) -> None:
    """What would be ignored is refused."""
    for path in ("/v1/tokens", "/v1/sources"):
        assert (await edge.call("GET", f"{path}?limit=5")).status_code == 400


async def test_an_unknown_state_names_the_known_ones(edge: Edge) -> None:
    """The list of states is closed, and shown."""
    answer = await edge.call("GET", "/v1/operations?state=observing,done")
    assert answer.status_code == 400
    assert "result_collecting" in answer.json()["detail"]


JOB: dict[str, Any] = {"profile": "acme", "remote_job_id": "job_1"}


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"1", b"null", b'"x"', b"{", b"\xff\xfe", b"{}x", b'{"profile": NaN'),
        b"[" * 60_000,
        b'{"profile":' * 5_000,
        b'{"profile": ' + b"1" * 5_000 + b"}",
        b" " * 70_000,
        b" " * 10_000_000,
        *(
            json.dumps({**JOB, **wrong}).encode()
            for wrong in (
                {"profil": "acme"},
                {"x" * 50_000: 1},
                {"\ud800": 1},
                {"profile": None},
                {"profile": ["acme"]},
                {"profile": {}},
                {"profile": 1},
                {"profile": True},
                {"remote_job_id": ""},
                {"remote_job_id": "x" * 513},
                {"remote_job_id": "\ud800"},
                {"remote_job_id": "a\nb"},
                {"remote_job_id": "a\x00"},
                {"remote_job_id": "a\x7f"},
                {"remote_job_id": "a\u202eb"},
                {"remote_job_id": 5},
                {"remote_job_id": None},
            )
        ),
    ],
    ids=lambda body: body[:40].decode("latin-1"),
)
async def test_a_wrong_body_is_refused(edge: Edge, body: bytes) -> None:
    """No JSON, no object, too deep, too large, unknown fields, wrong types: 400, nothing stored."""
    answer = await edge.call("POST", "/v1/operations", content=body)
    assert answer.status_code == 400
    assert answer.json()["type"] == "/problems/invalid-request"
    assert len(answer.content) < 1_000
    assert (await edge.call("GET", "/v1/operations")).json()["items"] == []


async def test_a_large_body_is_not_read_to_its_end(edge: Edge) -> None:
    """What is too large is refused when that is known, not when all of it has arrived."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10_000_000:
            sent += 4_096
            yield b" " * 4_096

    answer = await edge.call("POST", "/v1/operations", content=endless())
    assert answer.status_code == 400
    assert answer.json()["detail"] == "the body is larger than 65536 bytes"
