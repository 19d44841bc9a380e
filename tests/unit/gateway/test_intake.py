"""The intake: recorded before it is answered, and refused without a word why."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.domain.event import Event, NewEvent, Refusal
from reconciler.storage.contract import EventQuery, Inbox, RefusalQuery
from reconciler.storage.errors import StorageUnavailableError
from tests.support.edge import Edge, Told, about, opened

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge over an empty ledger."""
    async with opened(tmp_path) as made:
        yield made


async def events(edge: Edge) -> list[Event]:
    """Return what was recorded."""
    return await edge.store.events.page(EventQuery())


async def refusals(edge: Edge) -> list[Refusal]:
    """Return what was refused."""
    await edge.refusals.flush()
    return await edge.store.events.refusals(RefusalQuery())


@dataclass
class Held:
    """The real inbox, held up before it records and again before it says so."""

    inbox: Inbox
    record_now: asyncio.Event
    answer_now: asyncio.Event
    recorded: asyncio.Event

    async def record(self, *args: Any) -> Any:
        """Record when told to, and return when told to."""
        await self.record_now.wait()
        outcome = await self.inbox.record(*args)
        self.recorded.set()
        await self.answer_now.wait()
        return outcome


@dataclass
class Away:
    """The real inbox, whose disk is full."""

    inbox: Inbox

    async def record(self, *_args: Any) -> Any:
        """Fail."""
        raise StorageUnavailableError("disk full")


@dataclass
class Seen:
    """The real inbox, and what it was given."""

    inbox: Inbox
    events: list[NewEvent] = field(default_factory=list)

    async def record(self, event: NewEvent, *rest: Any) -> Any:
        """Record."""
        self.events.append(event)
        return await self.inbox.record(event, *rest)


# ---------------------------------------------------------------- recorded


async def test_an_event_is_recorded_as_it_came(edge: Edge) -> None:
    """What was signed, what it names, who vouches for it: everything is in the ledger."""
    body = about("job_1")
    headers = [*edge.signed(body), (b"x-reference", b"order-1"), (b"cookie", b"hush")]
    told = await edge.post(body, headers, query_string=b"a=1")
    (event,) = await events(edge)
    assert told.status == 200
    assert await edge.store.events.body(event.event_id) == body
    assert (event.source, event.scope.project, event.scope.mode) == ("acme", "shop", "live")
    assert (event.key, event.key_id, event.provider_event_id) == ("id:msg_1", "k1", "msg_1")
    assert (event.event_type, event.signed_at) == ("job.done", edge.now)
    assert (event.profile, event.remote_job_id) == ("acme", "job_1")
    assert event.client_reference == "order-1"
    assert event.url == "http://127.0.0.1:8080/in/acme?a=1"
    assert "webhook-id: msg_1" in event.headers


async def test_credentials_are_not_kept(edge: Edge) -> None:
    """Headers that are credentials are stored as redacted, refused requests' too."""
    secret = [
        (b"authorization", b"Bearer hush"),
        (b"cookie", b"hush"),
        (b"proxy-authorization", b"hush"),
    ]
    await edge.post(b"{}", [*edge.signed(b"{}"), *secret])
    await edge.post(b"{}", secret)
    (event,), (refusal,) = await events(edge), await refusals(edge)
    assert "hush" not in event.headers + refusal.headers
    assert event.headers.count("[redacted]") == refusal.headers.count("[redacted]") == 3


TOKENS = """
[sources.header]
preset = "telegram"
keys = [{ id = "k1", secret = "file:token" }]
[sources.query]
keys = [{ id = "k1", secret = "file:token" }]
[sources.query.scheme]
name = "query"
signed = ""
retry_horizon_s = 60
signature = { from = "query:code", encoding = "text" }
secret = { algorithm = "token", form = "utf8" }
"""


async def test_a_token_that_is_the_secret_is_not_kept(tmp_path: Path) -> None:
    """A token sent as it is is stored in no event and no refusal (SC-19, F11)."""
    (tmp_path / "token").write_text("hush-hush-hush-hush")
    name, token = b"x-telegram-bot-api-secret-token", b"hush-hush-hush-hush"
    async with opened(tmp_path, TOKENS) as edge:
        told = [
            await edge.post(b'{"update_id":1}', [(name, token)], path=b"/in/header"),
            await edge.post(b"{}", [(name, token + b"x")], path=b"/in/header"),
            await edge.post(b"{}", [], path=b"/in/query", query_string=b"code=" + token),
        ]
        kept = [item.headers for item in await refusals(edge)]
        kept += [item.headers + item.url for item in await events(edge)]
    assert [one.status for one in told] == [200, 401, 200]
    assert len(kept) == 3
    assert "hush" not in "".join(kept)


async def test_nothing_is_answered_before_the_event_is_durable(edge: Edge) -> None:
    """There is no byte of an answer while the inbox has not said that the event is on disk (R4)."""
    held = Held(edge.inbox, asyncio.Event(), asyncio.Event(), asyncio.Event())
    edge.inbox = held  # type: ignore[assignment]
    told = Told()
    task = asyncio.create_task(edge.post(told=told))
    await asyncio.sleep(0.05)
    assert (told.status, await events(edge)) == (None, [])
    held.record_now.set()
    await held.recorded.wait()
    assert told.status is None
    held.answer_now.set()
    await task
    assert told.status == 200


async def test_new_duplicate_and_conflict_are_answered_alike(edge: Edge) -> None:
    """A sender cannot tell whether its event was new; the ledger can (R3)."""
    first = await edge.post(b'{"a":1}')
    again = await edge.post(b'{"a":1}')
    other = await edge.post(b'{"a":2}')
    assert first.messages == again.messages == other.messages
    (event,) = await events(edge)
    (conflict,) = await edge.store.events.conflicts(event.event_id)
    assert (event.seen, conflict.body) == (2, b'{"a":2}')
    assert conflict.conflict_id.startswith("cfl_")
    assert conflict.conflict_id[4:] != event.event_id[4:]


async def test_each_conflict_has_a_name_of_its_own(edge: Edge) -> None:
    """Evidence of one conflict never hides that of the next."""
    for n in range(4):
        await edge.post(b'{"a":%d}' % n)
    (event,) = await events(edge)
    assert [c.body for c in await edge.store.events.conflicts(event.event_id)] == [
        b'{"a":%d}' % n for n in range(1, 4)
    ]


@pytest.mark.parametrize(
    "name", ["\ud800", "a\nb", "", "x" * 513, "a\u2028b", {"a": 1}, None, True]
)
async def test_a_job_id_that_is_no_name_is_left_out(edge: Edge, name: Any) -> None:
    """An id that no operation could have is not stored; the event itself stands."""
    told = await edge.post(about(name))
    (event,) = await events(edge)
    assert (told.status, event.remote_job_id) == (200, None)
    assert (await edge.call("GET", "/v1/events")).status_code == 200


@pytest.mark.parametrize(("name", "expected"), [(17, "17"), ("ü-1", "ü-1"), ("a b", "a b")])
async def test_a_job_id_may_be_any_printable_text(edge: Edge, name: Any, expected: str) -> None:
    """Numbers and letters of any script name a job."""
    await edge.post(about(name))
    (event,) = await events(edge)
    assert event.remote_job_id == expected


async def test_an_event_without_a_job_is_an_event(edge: Edge) -> None:
    """A body that is no JSON is what the provider signed, and is kept."""
    told = await edge.post(b"\xff not json")
    (event,) = await events(edge)
    assert (told.status, event.remote_job_id, event.flags) == (200, None, ("body_unreadable",))


# ---------------------------------------------------------------- not acknowledged


async def test_a_ledger_that_is_away_is_503(edge: Edge) -> None:
    """What cannot be stored is never acknowledged: come back later (R4)."""
    edge.inbox = Away(edge.inbox)  # type: ignore[assignment]
    with capture_logs() as logged:
        told = await edge.post()
    assert (told.status, told.headers[b"retry-after"]) == (503, b"5")
    assert b"disk" not in told.body
    assert [line["event"] for line in logged] == ["event_not_acknowledged"]


async def test_a_disk_that_takes_too_long_is_503_and_may_stand_all_the_same(edge: Edge) -> None:
    """The sender is told to come back in time; its retry is then a duplicate, not a second event."""
    real, edge.acknowledge_s = edge.inbox, 0.05
    held = Held(real, asyncio.Event(), asyncio.Event(), asyncio.Event())
    held.record_now.set()
    edge.inbox = held  # type: ignore[assignment]
    assert (await edge.post()).status == 503
    edge.inbox, edge.acknowledge_s = real, 5.0
    assert (await edge.post()).status == 200
    (event,) = await events(edge)
    assert event.seen == 2


# ---------------------------------------------------------------- refused


def forged(edge: Edge, **change: Any) -> list[tuple[bytes, bytes]]:
    """Return signed headers with some changed (`None` takes one out, a list repeats it)."""
    headers = dict(edge.signed(b"{}", **{k: change.pop(k) for k in ("at",) if k in change}))
    headers |= {name.replace("_", "-").encode(): value for name, value in change.items()}
    return [
        (name, one)
        for name, value in headers.items()
        for one in (value if isinstance(value, list) else [value])
        if one is not None
    ]


FORGED = {
    "signature_missing": {"webhook_signature": None},
    "signature_repeated": {"webhook_signature": [b"v1,AA==", b"v1,AA=="]},
    "signature_malformed": {"webhook_signature": b"garbage"},
    "signature_mismatch": {"webhook_signature": b"v1," + b"A" * 43 + b"="},
    "timestamp_missing": {"webhook_timestamp": None},
    "timestamp_malformed": {"webhook_timestamp": b"now"},
    "timestamp_too_old": {"at": 1_767_225_600 - 301},
    "timestamp_in_future": {"at": 1_767_225_600 + 301},
    "id_missing": {"webhook_id": None},
}


@pytest.mark.parametrize("reason", FORGED)
async def test_every_forgery_gets_one_answer_and_its_own_reason(edge: Edge, reason: str) -> None:
    """The caller learns nothing (R6); reviewers learn why."""
    told = await edge.post(b"{}", forged(edge, **FORGED[reason]))
    plain = await edge.post(b"{}", [])
    assert told.status == 401
    assert told.messages == plain.messages
    assert reason in {refusal.reason for refusal in await refusals(edge)}
    assert await events(edge) == []


@pytest.mark.parametrize(
    ("request_", "status", "reason"),
    [
        ({"path": b"/in/nobody"}, 404, "unknown_source"),
        ({"path": b"/in/acme/"}, 404, "unknown_source"),
        ({"path": b"/in/%61cme"}, 404, "unknown_source"),
        ({"path": b"/in/ACME"}, 404, "unknown_source"),
        ({"path": b"//in/acme"}, 404, "unknown_source"),
        ({"method": "GET"}, 405, "wrong_method"),
        ({"headers": [(b"content-type", b"Multipart/form-data")]}, 415, "unsupported_media"),
        ({"headers": [(b"content-encoding", b"snappy")]}, 415, "unsupported_media"),
        ({"body": b"x" * 4097, "headers": []}, 413, "body_too_large"),
        ({"body": [b"x" * 4000, b"x" * 97], "headers": []}, 413, "body_too_large"),
        ({"headers": [(b"content-length", b"4097")]}, 413, "body_too_large"),
    ],
)
async def test_what_is_not_verified_is_refused_clearly(
    edge: Edge, request_: dict[str, Any], status: int, reason: str
) -> None:
    """Plain HTTP has its plain answers, each with a record (R9)."""
    told = await edge.post(**request_)
    (refusal,) = await refusals(edge)
    assert (told.status, refusal.reason, refusal.peer) == (status, reason, "192.0.2.7")
    assert (await events(edge)) == []


async def test_a_body_of_exactly_the_limit_is_taken(edge: Edge) -> None:
    """The limit is the largest body, not the first that is too large."""
    body = b'"' + b"x" * 4094 + b'"'
    assert (await edge.post(body)).status == 200


async def test_bodies_of_all_connections_share_one_bound(edge: Edge) -> None:
    """SC-52: past it the answer is 503 and a record; what was let go of makes room again."""
    edge.room.left = 100
    told = await edge.post(b'"' + b"x" * 99 + b'"')
    (refusal,) = await refusals(edge)
    assert (told.status, refusal.reason, edge.room.left) == (503, "no_room", 100)
    assert (await edge.post(b'"' + b"x" * 98 + b'"')).status == 200
    await edge.post([b"half", {"type": "http.disconnect"}], [])
    await edge.post([b"x" * 50, b"x" * 5000], [])
    assert edge.room.left == 100


async def test_a_sender_that_leaves_gets_no_answer(edge: Edge) -> None:
    """Half a request is neither an event nor a refusal."""
    told = await edge.post([b"half", {"type": "http.disconnect"}], [])
    assert (told.messages, await refusals(edge), await events(edge)) == ([], [], [])


async def test_nobodys_refusals_are_for_those_who_see_everything(edge: Edge) -> None:
    """A path that is no source belongs to no project."""
    await edge.post(path=b"/in/nobody")
    (refusal,) = await refusals(edge)
    assert (refusal.scope.project, refusal.scope.mode, refusal.source) == ("*", "*", "")


async def test_a_credential_sent_to_a_wrong_path_is_not_kept(edge: Edge) -> None:
    """Only a source could tell which of its headers is a credential: without one, all may be."""
    headers = [(b"x-gitlab-token", b"S3CRET"), (b"user-agent", b"GitLab/17")]
    await edge.post(b"{}", headers, path=b"/in/nobody")
    (refusal,) = await refusals(edge)
    assert refusal.headers == ":path: /in/nobody\nx-gitlab-token: [redacted]\nuser-agent: GitLab/17"


async def test_a_peer_without_an_address_is_taken(edge: Edge) -> None:
    """A Unix socket has no address, and that is no reason to fail."""
    assert (await edge.post(client=None)).status == 200
    assert (await edge.post(b"", [], client=None)).status == 401


async def test_a_source_that_was_replaced_is_used_from_the_next_request_on(edge: Edge) -> None:
    """A reload swaps the table whole."""
    assert (await edge.post()).status == 200
    edge.sources.replace({})
    assert (await edge.post()).status == 404


async def test_the_memory_of_a_key_starts_now(edge: Edge) -> None:
    """How long a key is remembered is the source's to say, counted from its arrival."""
    seen = Seen(edge.inbox)
    edge.inbox = seen  # type: ignore[assignment]
    await edge.post()
    source = edge.sources.named("acme")
    assert source is not None
    assert seen.events[0].remember_until_at == edge.now + source.memory_ms
