"""What arrives over real sockets: accepted once, durable, and answered alike."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engines import on_both_engines, storage_of
from tests.support.installation import Installation
from tests.support.signing import Sender
from tests.support.wire import Connection, request

pytestmark = [pytest.mark.e2e, on_both_engines]

BODY = b' \r\n{"type": "order.paid", "text": "\xc3\xa9 \\u00e9  \\n", "n": 1.0}\x00\xff\r\n\t '


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, engine: str) -> Iterator[Installation]:
    """Run a gateway with two sources; the second one takes large bodies."""
    folder = tmp_path_factory.mktemp("intake") / "it"
    with Installation(folder, storage=storage_of(engine, folder)) as installation:
        installation.source("hooks")
        installation.source("large", extra="body_bytes_max = 400000\n")
        yield installation.start()


@pytest.fixture
def hooks(gateway: Installation) -> Sender:
    """Return the sender of the first source."""
    return gateway.senders["hooks"]


def _stored(gateway: Installation, event_id: str, source: str = "hooks") -> list[dict[str, object]]:
    found = gateway.events(source)
    return [event for event in found if event["provider_event_id"] == event_id]


def test_a_new_event_is_acknowledged_and_readable_with_its_exact_body(
    gateway: Installation, hooks: Sender
) -> None:
    """A signed request is answered 200, and the API shows it once with the bytes that were sent."""
    signed = hooks.sign(BODY)
    answer = gateway.post(signed.raw())
    (event,) = _stored(gateway, signed.event_id)
    assert (answer.status, answer.body) == (200, b"")
    assert gateway.body(str(event["event_id"])) == BODY
    assert (event["key_id"], event["seen"], event["body_bytes"]) == ("k1", 1, len(BODY))


def test_a_body_larger_than_a_row_is_kept_exactly(gateway: Installation) -> None:
    """A body of more than 256 KiB, sent in chunks, comes back byte for byte."""
    large = gateway.senders["large"]
    body = json.dumps({"type": "big", "pad": "x" * 300_000}).encode()
    signed = large.sign(body)
    pieces = [body[start : start + 7_000] for start in range(0, len(body), 7_000)]
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    head = request("POST", signed.path, [*signed.headers(), ("Transfer-Encoding", "chunked")])
    answer = gateway.post(head + chunked + b"0\r\n\r\n")
    (event,) = _stored(gateway, signed.event_id, "large")
    assert answer.status == 200
    assert gateway.body(str(event["event_id"])) == body


def test_fifty_at_once_from_two_processes_are_one_event(
    gateway: Installation, hooks: Sender, tmp_path: Path
) -> None:
    """The same request 50 times at once from two processes: 50 successes, one event, seen 50."""
    signed = hooks.sign(b'{"type": "order.paid"}')
    (tmp_path / "request").write_bytes(signed.raw())
    clients = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.volley", str(gateway.public), "25", "request"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=gateway.environment,
        )
        for _ in range(2)
    ]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
    statuses: list[int] = []
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("go\n")
        client.stdin.flush()
    for client in clients:
        statuses += json.loads(client.communicate(timeout=30)[0])
    (event,) = _stored(gateway, signed.event_id)
    assert statuses == [200] * 50
    assert event["seen"] == 50
    assert gateway.get(f"/v1/events/{event['event_id']}/conflicts")["items"] == []


def test_a_conflict_is_kept_as_evidence_and_the_first_event_stands(
    gateway: Installation, hooks: Sender
) -> None:
    """The same id with another body changes nothing of the first event and is shown beside it."""
    first = hooks.sign(b'{"type": "order.paid", "amount": 1}')
    second = hooks.sign(b'{"type": "order.paid", "amount": 9}', event_id=first.event_id)
    assert gateway.post(first.raw()).status == 200
    (before,) = _stored(gateway, first.event_id)
    assert gateway.post(second.raw()).status == 200
    (after,) = _stored(gateway, first.event_id)
    (evidence,) = gateway.get(f"/v1/events/{before['event_id']}/conflicts")["items"]
    assert after == before
    assert gateway.body(str(after["event_id"])) == first.body
    assert evidence["content_digest"] != before["content_digest"]
    assert evidence["body_bytes"] == len(second.body)
    assert ["webhook-signature", second.signature] in evidence["headers"]


def test_new_duplicate_and_conflict_are_answered_alike(
    gateway: Installation, hooks: Sender
) -> None:
    """Nobody can tell from the answer whether an event was new, a repeat or a conflict."""
    first = hooks.sign(b'{"n": 1}')
    other = hooks.sign(b'{"n": 2}', event_id=first.event_id)
    with Connection(gateway.public) as connection:
        answers = [connection.exchange(raw) for raw in (first.raw(), first.raw(), other.raw())]
    assert len({answer.without_date() for answer in answers}) == 1
    assert [name for name, _ in answers[0].headers] == ["date", "content-length"]


def test_the_same_id_from_another_source_is_another_event(
    gateway: Installation, hooks: Sender
) -> None:
    """An event key belongs to its source: two senders may use the same id."""
    large = gateway.senders["large"]
    first = hooks.sign(b'{"from": "hooks"}')
    second = large.sign(b'{"from": "large"}', event_id=first.event_id)
    assert gateway.post(first.raw()).status == gateway.post(second.raw()).status == 200
    assert [event["seen"] for event in _stored(gateway, first.event_id)] == [1]
    assert [event["seen"] for event in _stored(gateway, first.event_id, "large")] == [1]


def test_a_retry_that_is_signed_anew_is_a_duplicate(gateway: Installation, hooks: Sender) -> None:
    """A provider's retry with a fresh timestamp, and so another signature, is no second event."""
    now = int(time.time())
    first = hooks.sign(b'{"n": 1}', at=now - 60)
    again = hooks.sign(b'{"n": 1}', event_id=first.event_id, at=now)
    assert gateway.post(first.raw()).status == gateway.post(again.raw()).status == 200
    (event,) = _stored(gateway, first.event_id)
    assert event["seen"] == 2
    assert gateway.get(f"/v1/events/{event['event_id']}/conflicts")["items"] == []


def test_credentials_in_headers_are_not_kept(gateway: Installation, hooks: Sender) -> None:
    """Authorization and cookies of an accepted request stand nowhere in what the API shows."""
    signed = hooks.sign(b'{"n": 1}')
    extra = [("Authorization", "Basic bm90LWZvci1leWVz"), ("Cookie", "sid=not-for-eyes")]
    answer = gateway.post(request("POST", signed.path, [*signed.headers(), *extra], signed.body))
    (event,) = _stored(gateway, signed.event_id)
    assert answer.status == 200
    assert "bm90LWZvci1leWVz" not in json.dumps(event)
    assert "not-for-eyes" not in json.dumps(event)


def test_two_requests_in_one_segment_are_both_served_in_order(
    gateway: Installation, hooks: Sender
) -> None:
    """Pipelined requests are answered in order and both events are kept."""
    first, second = hooks.sign(b'{"n": 1}'), hooks.sign(b'{"n": 2}')
    with Connection(gateway.public) as connection:
        connection.send(first.raw() + second.raw())
        assert [connection.answer().status, connection.answer().status] == [200, 200]
    assert len(_stored(gateway, first.event_id)) == len(_stored(gateway, second.event_id)) == 1
