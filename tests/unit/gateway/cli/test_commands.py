"""The commands that ask the API: what they ask, what they print, how they end."""

import json

import pytest

from tests.support.canned_api import CannedApi, Run

EVENT = {
    "event_id": "evt_1",
    "source": "acme",
    "event_type": "job.done\x1b[31m",
    "received_at": "2026-11-30T12:00:00.000Z",
    "operation_id": "op_1",
    "seen": 2,
    "flags": ["weak"],
    "headers": [["x-note", "a\u202eb"]],
    "key": "id:1",
}
OPERATION = {
    "operation_id": "op_1",
    "profile": "demo",
    "state": "observing",
    "attention": False,
    "remote_state": "running",
    "remote_job_id": "job_1",
    "updated_at": "2026-11-30T12:00:01.000Z",
    "next_at": None,
    "created_at": "2026-11-30T12:00:00.000Z",
    "unreadable_reads": 0,
}


def items(*values: object) -> dict[str, object]:
    """Return a last page."""
    return {"items": list(values), "next": None}


def test_events_list_asks_with_its_filters(ask: Run, api: CannedApi) -> None:
    """Each option of `events list` becomes a parameter of the query."""
    query = "source=acme&type=t&operation=op_1&parked=true&before=9&limit=5"
    api.put(f"GET /v1/events?{query}", items(EVENT))
    options = "--source acme --type t --operation op_1 --parked --before 9 --limit 5"
    result = ask("events", "list", *options.split())

    assert result.exit_code == 0, result.stderr
    assert "evt_1" in result.stdout
    assert "\x1b" not in result.stdout
    assert "job.done\\x1b[31m" in result.stdout


def test_events_show_prints_inert_headers_and_conflicts(ask: Run, api: CannedApi) -> None:
    """`events show` prints what a stranger sent without letting it act."""
    api.put("GET /v1/events/evt_1", EVENT)
    conflict = {"at": "2026", "conflict_id": "cfl_1", "key_id": "k", "content_digest": "00"}
    api.put("GET /v1/events/evt_1/conflicts", items(conflict))
    result = ask("events", "show", "evt_1")

    assert "x-note: a\\u202eb" in result.stdout
    assert "cfl_1" in result.stdout
    assert "the first one stands" in result.stderr


def test_events_raw_writes_the_exact_bytes(ask: Run, api: CannedApi) -> None:
    """Into a pipe the body goes byte for byte."""
    body = bytes(range(256))
    api.answers["GET /v1/events/evt_1/body"] = (200, body)

    assert ask("events", "raw", "evt_1").stdout_bytes == body


def test_what_does_not_exist_is_code_3(ask: Run) -> None:
    """A wrong id ends with 3 and the server's own sentence."""
    result = ask("events", "show", "evt_9")

    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr == "vouchback: there is no such event\n"


def test_events_refused_shows_reasons(ask: Run, api: CannedApi) -> None:
    """Reviewers see why requests were refused."""
    refusal = {"at": "2026", "refusal_id": "rfs_1", "source": "acme", "reason": "signature_missing"}
    api.put("GET /v1/refusals?reason=signature_missing&limit=50", items(refusal))

    assert "signature_missing" in ask("events", "refused", "--reason", "signature_missing").stdout


def test_ops_show_tells_the_story_in_order(ask: Run, api: CannedApi) -> None:
    """Registration, event, read and transition stand in the order in which they happened."""
    api.put("GET /v1/operations/op_1", OPERATION)
    history = [
        {"at": "2026-11-30T12:00:00.000Z", "from": None, "to": "accepted", "actor": "tok_1"},
        {"at": "2026-11-30T12:00:02.000Z", "from": "accepted", "to": "observing", "actor": "w"},
    ]
    history = [{**line, "reason": "status read: running"} for line in history]
    read = {
        "fetched_at": "2026-11-30T12:00:02.000Z",
        "remote_state": "running",
        "meaning": "running",
        "prompted_by": "evt_1",
    }
    event = {**EVENT, "received_at": "2026-11-30T12:00:01.000Z"}
    api.put("GET /v1/operations/op_1/history", items(*history))
    api.put("GET /v1/operations/op_1/observations", items(read))
    late = {**EVENT, "received_at": "2026-11-30T12:00:03.000Z"}
    api.put("GET /v1/events?operation=op_1&limit=200", items(late, event))
    told = ask("ops", "show", "op_1").stdout
    words = [line.split()[1] for line in told.splitlines() if line.startswith("12:")]

    assert words == ["registered", "event", "asked", "moved", "event"]
    assert 'because of evt_1: "running"' in told
    assert "\x1b" not in told


@pytest.mark.parametrize(("status", "said"), [(201, ""), (200, "it is registered already")])
def test_ops_create_says_whether_it_is_new(
    ask: Run, api: CannedApi, status: int, said: str
) -> None:
    """The operation's id is on stdout; that it existed is told, and is no failure."""
    api.put("POST /v1/operations", OPERATION, status)
    result = ask("ops", "create", "--profile", "demo", "--job", "job_1")

    assert (result.exit_code, result.stdout) == (0, "op_1\n")
    assert said in result.stderr
    assert json.loads(api.asked[0][2]) == {"profile": "demo", "remote_job_id": "job_1"}


def test_ops_create_wants_a_name_for_the_job(ask: Run, api: CannedApi) -> None:
    """Without job and reference nothing is sent."""
    result = ask("ops", "create", "--profile", "demo")

    assert (result.exit_code, api.asked) == (2, [])


def test_a_new_token_alone_is_on_stdout(ask: Run, api: CannedApi) -> None:
    """`token create > file` writes the token and nothing else."""
    api.put("POST /v1/tokens", {"token": "vbk_new", "token_id": "tok_1"}, 201)
    result = ask("token", "create", "--role", "viewer", "--expires-in", "3600")

    assert result.stdout == "vbk_new\n"
    assert json.loads(api.asked[0][2]) == {
        "role": "viewer",
        "project": "default",
        "mode": "live",
        "expires_in_s": 3600,
    }


def test_token_revoke_names_the_token(ask: Run, api: CannedApi) -> None:
    """Revoking asks for exactly the token that was named."""
    api.put("POST /v1/tokens/tok_1/revoke", {"token_id": "tok_1"})
    result = ask("token", "revoke", "tok_1")

    assert (result.exit_code, result.stderr) == (0, "tok_1 is revoked\n")


def test_sources_are_listed(ask: Run, api: CannedApi) -> None:
    """`source list` shows name, preset and endpoint."""
    found = {"name": "acme", "preset": "stripe", "endpoint": "http://127.0.0.1:8080/in/acme"}
    api.put("GET /v1/sources", {"items": [found]})

    assert "http://127.0.0.1:8080/in/acme" in ask("source", "list").stdout


def test_a_reload_says_what_was_read(ask: Run, api: CannedApi) -> None:
    """`config reload` asks the server, and says how many sources it has now."""
    api.put("POST /v1/config/reload", {"sources": 3})
    result = ask("config", "reload")

    assert (result.exit_code, result.stderr) == (0, "read again: 3 sources\n")


def test_a_refused_reload_is_a_mistake_of_the_configuration(ask: Run, api: CannedApi) -> None:
    """A file with a mistake ends `config reload` with 78 and names the mistake."""
    api.put("POST /v1/config/reload", {"detail": "x.toml: unknown key"}, 422)
    result = ask("config", "reload")

    assert (result.exit_code, result.stdout) == (78, "")
    assert "x.toml: unknown key" in result.stderr
