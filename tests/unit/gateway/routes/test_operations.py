"""`/v1/operations`: registering what runs, and reading what became of it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reconciler.domain.operation import State
from reconciler.domain.token import Role
from tests.support.builders import first_line, operation
from tests.support.edge import Edge, about, opened

pytestmark = pytest.mark.anyio

JOB = {"profile": "acme", "remote_job_id": "job_1"}


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


async def test_a_running_job_is_taken_into_keeping(edge: Edge) -> None:
    """201 with the record and its place; a first line of history; a read is due at once."""
    answer = await edge.call("POST", "/v1/operations", json=JOB)
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/operations/{made['operation_id']}"
    assert (made["state"], made["remote_job_id"], made["mode"]) == ("accepted", "job_1", "live")
    assert made["next_at"] == "2026-01-01T00:00:00.000Z"
    assert made["result_deadline"] == "2026-01-01T00:01:00.000Z"
    again = await edge.call("GET", answer.headers["location"])
    assert again.json() == made
    history = (await edge.call("GET", f"{answer.headers['location']}/history")).json()["items"]
    assert [(line["from"], line["to"]) for line in history] == [(None, "accepted")]


async def test_the_same_job_twice_is_one_operation(edge: Edge) -> None:
    """The second registration answers 200 with the first one's record."""
    first = await edge.call("POST", "/v1/operations", json=JOB)
    second = await edge.call("POST", "/v1/operations", json={**JOB, "client_reference": "r"})
    assert (second.status_code, second.json()) == (200, first.json())


async def test_events_that_came_before_find_it(edge: Edge) -> None:
    """A parked event belongs to the operation once it is registered."""
    await edge.post(about("job_1"))
    parked = (await edge.call("GET", "/v1/events?parked=true")).json()["items"]
    made = (await edge.call("POST", "/v1/operations", json=JOB)).json()
    found = (await edge.call("GET", f"/v1/events?operation={made['operation_id']}")).json()["items"]
    assert [item["event_id"] for item in parked] == [item["event_id"] for item in found]
    assert (await edge.call("GET", "/v1/events?parked=true")).json()["items"] == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"profile": "acme"}, 400),
        ({"profile": "acme", "client_reference": "r"}, 201),
        ({"profile": "nobody", "remote_job_id": "j"}, 404),
        ({"remote_job_id": "j"}, 400),
        ({**JOB, "remote_job_id": "x" * 512}, 201),
        ({**JOB, "remote_job_id": "ü ß"}, 201),
    ],
)
async def test_an_operation_needs_a_profile_and_a_name(
    edge: Edge, fields: dict[str, str], status: int
) -> None:
    """A job that could not be asked for is not taken."""
    assert (await edge.call("POST", "/v1/operations", json=fields)).status_code == status


async def test_a_profile_of_another_project_does_not_exist(edge: Edge) -> None:
    """A token can register only where it belongs, and learns of nothing else."""
    for project, mode in (("other", "live"), ("shop", "test")):
        token = await edge.token(Role.CLIENT, project, mode)
        answer = await edge.call("POST", "/v1/operations", token=token, json=JOB)
        assert answer.status_code == 404
    token = await edge.token(Role.CLIENT, "shop", "live")
    assert (await edge.call("POST", "/v1/operations", token=token, json=JOB)).status_code == 201


async def test_pages_follow_each_other(edge: Edge) -> None:
    """`next` leads through all operations, newest first, each once."""
    for number in range(1, 8):
        value = operation(number)
        await edge.store.operations.register(value, first_line(value), edge.now)
    seen, query = [], ""
    while True:
        page = (await edge.call("GET", f"/v1/operations?limit=3{query}")).json()
        seen += [item["operation_id"] for item in page["items"]]
        if page["next"] is None:
            break
        query = f"&before={page['next']}"
    assert seen == [f"op_{number:026}" for number in range(7, 0, -1)]


async def test_operations_are_found_by_what_they_are(edge: Edge) -> None:
    """State, job and reference narrow a list."""
    for number, state in enumerate((State.OBSERVING, State.NEEDS_DECISION, State.FAILED), 1):
        value = operation(number, state=state, client_reference=f"ref-{number}")
        await edge.store.operations.register(value, first_line(value), edge.now)
    for query, expected in (
        ("state=failed,observing", [3, 1]),
        ("job=job_2", [2]),
        ("reference=ref-3", [3]),
        ("profile=other", []),
    ):
        items = (await edge.call("GET", f"/v1/operations?{query}")).json()["items"]
        assert [item["operation_id"] for item in items] == [f"op_{n:026}" for n in expected]
    (waiting,) = (await edge.call("GET", "/v1/operations?state=needs_decision")).json()["items"]
    assert waiting["attention"] is True
