"""The API client: answers are values, everything else is one line and an exit code."""

import json
import socket

import pytest

from gateway.cli.client import Api, CommandError, exchange, segment
from tests.support.canned_api import CannedApi


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 2), (401, 5), (403, 5), (404, 3), (409, 4), (422, 2), (500, 69), (503, 69), (504, 75)],
)
def test_a_problem_is_a_line_and_an_exit_code(api: CannedApi, status: int, code: int) -> None:
    """Each kind of refusal ends a command with the exit code that the design gives it."""
    api.put("GET /v1/x", {"title": "Kind", "detail": "what to mend"}, status)
    with pytest.raises(CommandError) as caught:
        Api(api.url, None).get("/v1/x")

    assert (caught.value.message, caught.value.exit_code) == ("what to mend", code)


def test_a_refusal_without_a_document_is_still_clear(api: CannedApi) -> None:
    """An answer from something else is named by its status."""
    api.answers["GET /v1/x"] = (502, b"<html>")
    with pytest.raises(CommandError, match="the server answered 502"):
        Api(api.url, None).get("/v1/x")


def test_an_answer_that_is_no_json_says_so(api: CannedApi) -> None:
    """A 200 of some other server is no success."""
    api.answers["GET /v1/x"] = (200, b"<html>")
    with pytest.raises(CommandError, match="no JSON") as caught:
        Api(api.url, None).get("/v1/x")

    assert caught.value.exit_code == 69


def test_nobody_listening_is_code_69() -> None:
    """A refused connection names the address and how to start a server."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(CommandError, match="cannot reach") as caught:
        Api(url, None).get("/v1/x")

    assert caught.value.exit_code == 69
    assert "vouchback serve" in (caught.value.hint or "")


def test_silence_is_code_75() -> None:
    """A server that takes the request and never answers is given up."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CommandError) as caught:
            exchange(url, "GET", "/", headers=[], timeout_s=0.05)

    assert caught.value.exit_code == 75


def test_the_token_is_sent_as_bearer(api: CannedApi) -> None:
    """Every call carries the token, and a call without one carries nothing."""
    api.put("GET /v1/x", {})
    Api(api.url, "vbk_1").get("/v1/x")
    Api(api.url, None).get("/v1/x")

    assert [headers.get("Authorization") for _, headers, _ in api.asked] == ["Bearer vbk_1", None]


def test_a_post_carries_json(api: CannedApi) -> None:
    """A document arrives as JSON with its type and length."""
    api.put("POST /v1/x", {"made": 1}, 201)
    answer = Api(api.url, None).post("/v1/x", {"a": "é"})
    _, headers, body = api.asked[0]

    assert answer == (201, {"made": 1})
    assert (headers["Content-Type"], json.loads(body)) == ("application/json", {"a": "é"})


def test_a_page_is_collected_over_many(api: CannedApi) -> None:
    """`limit` items come from as many pages as it takes, and the cursor of the last is kept."""
    api.put("GET /v1/x?limit=3", {"items": [1, 2], "next": "c"})
    api.put("GET /v1/x?before=c&limit=1", {"items": [3], "next": "d"})

    assert Api(api.url, None).page("/v1/x", 3) == {"items": [1, 2, 3], "next": "d"}


def test_an_id_from_a_user_stays_one_segment() -> None:
    """Nothing that is typed as an id can become another path or a query."""
    assert segment("../tokens?x#y z") == "..%2Ftokens%3Fx%23y%20z"
