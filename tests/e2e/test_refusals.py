"""What is refused over real sockets: alike for the sender, with its reason for the reviewer."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import apsw
import pytest

from tests.support.installation import Installation
from tests.support.signing import Sender, Signed, new_secret
from tests.support.waiting import until
from tests.support.wire import Answer, Connection, exchange, request

pytestmark = pytest.mark.e2e

BODY = b'{"type": "order.paid", "data": {"job_id": "job_1", "status": "succeeded"}}'


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Run a gateway whose source `rotated` has a key of the past and one of the future."""
    with Installation(tmp_path_factory.mktemp("refusals") / "it") as installation:
        for name in ("hooks", "neighbour", "flooded"):
            installation.source(name)
        rotated = installation.senders["rotated"] = Sender("rotated")
        coming = installation.senders["coming"] = Sender("rotated")
        keys = (
            f'{{ id = "k1", secret = "{installation.keep_secret("r1", rotated.secret)}",'
            " not_after = 2020-01-01T00:00:00Z },"
            f'{{ id = "k2", secret = "{installation.keep_secret("r2", coming.secret)}",'
            " not_before = 2199-01-01T00:00:00Z },"
            f'{{ id = "k3", secret = "{installation.keep_secret("r3", new_secret())}" }}'
        )
        installation.section(f'[sources.rotated]\npreset = "standard-webhooks"\nkeys = [{keys}]')
        yield installation.start()


def _flip(text: str) -> str:
    return text[:-3] + ("A" if text[-3] != "A" else "B") + text[-2:]


def _without(signed: Signed, *names: str) -> bytes:
    kept = [pair for pair in signed.headers() if pair[0] not in names]
    return request("POST", signed.path, kept, signed.body)


def _with(signed: Signed, *headers: tuple[str, str]) -> bytes:
    return request("POST", signed.path, [*signed.headers(), *headers], signed.body)


def _now(offset_s: int) -> int:
    return int(time.time()) + offset_s


#: What is done to a signed request, by the reason that a reviewer must read.
FORGERIES: dict[str, tuple[str, Callable[[Sender], bytes]]] = {
    "body": ("signature_mismatch", lambda s: replace(s.sign(BODY), body=BODY + b" ").raw()),
    "body_bit": (
        "signature_mismatch",
        lambda s: replace(s.sign(BODY), body=BODY[:-1] + b"|").raw(),
    ),
    "id": ("signature_mismatch", lambda s: replace(s.sign(BODY), event_id="msg_other").raw()),
    "timestamp": (
        "signature_mismatch",
        lambda s: replace(s.sign(BODY, at=_now(-9)), timestamp=str(_now(0))).raw(),
    ),
    "signature": (
        "signature_mismatch",
        lambda s: replace(sent := s.sign(BODY), signature=_flip(sent.signature)).raw(),
    ),
    "other_secret": ("signature_mismatch", lambda s: Sender(s.source).sign(BODY).raw()),
    "stale": ("timestamp_too_old", lambda s: s.sign(BODY, at=_now(-310)).raw()),
    "very_stale": ("timestamp_too_old", lambda s: s.sign(BODY, at=0).raw()),
    "future": ("timestamp_in_future", lambda s: s.sign(BODY, at=_now(310)).raw()),
    "far_future": ("timestamp_in_future", lambda s: s.sign(BODY, at=_now(86_400)).raw()),
    "no_signature": ("signature_missing", lambda s: _without(s.sign(BODY), "webhook-signature")),
    "no_timestamp": ("timestamp_missing", lambda s: _without(s.sign(BODY), "webhook-timestamp")),
    "no_id": ("id_missing", lambda s: _without(s.sign(BODY), "webhook-id")),
    "two_signatures": (
        "signature_repeated",
        lambda s: _with(sent := s.sign(BODY), ("Webhook-Signature", sent.signature)),
    ),
    "two_timestamps": (
        "timestamp_repeated",
        lambda s: _with(sent := s.sign(BODY), ("webhook-timestamp", sent.timestamp)),
    ),
    "two_ids": (
        "id_repeated",
        lambda s: _with(sent := s.sign(BODY), ("webhook-id", sent.event_id)),
    ),
    "empty_signature": ("signature_malformed", lambda s: replace(s.sign(BODY), signature="").raw()),
    "prefix_only": ("signature_malformed", lambda s: replace(s.sign(BODY), signature="v1,").raw()),
    "garbage": (
        "signature_malformed",
        lambda s: replace(s.sign(BODY), signature="v1,\xff\xfe%00==").raw(),
    ),
    "other_version": (
        "signature_malformed",
        lambda s: replace(sent := s.sign(BODY), signature="v2" + sent.signature[2:]).raw(),
    ),
    "short_signature": (
        "signature_malformed",
        lambda s: replace(sent := s.sign(BODY), signature=sent.signature[:24]).raw(),
    ),
    "timestamp_words": (
        "timestamp_malformed",
        lambda s: replace(s.sign(BODY), timestamp="now").raw(),
    ),
    "timestamp_float": (
        "timestamp_malformed",
        lambda s: replace(sent := s.sign(BODY), timestamp=sent.timestamp + ".0").raw(),
    ),
    "timestamp_long": (
        "timestamp_malformed",
        lambda s: replace(s.sign(BODY), timestamp="1" * 5_000).raw(),
    ),
    "empty_id": ("id_malformed", lambda s: replace(s.sign(BODY), event_id="").raw()),
    "dotted_id": ("id_malformed", lambda s: replace(s.sign(BODY), event_id="msg.1").raw()),
}


@pytest.fixture(scope="module")
def refused(gateway: Installation) -> dict[str, Answer]:
    """Send every forgery to the source `hooks`, then return the answers."""
    hooks = gateway.senders["hooks"]
    answers = {name: gateway.post(make(hooks)) for name, (_, make) in FORGERIES.items()}
    answers["key_expired"] = gateway.post(gateway.senders["rotated"].sign(BODY).raw())
    answers["key_not_yet_valid"] = gateway.post(gateway.senders["coming"].sign(BODY).raw())
    neighbour = replace(gateway.senders["neighbour"].sign(BODY), path="/in/hooks")
    answers["other_source"] = gateway.post(neighbour.raw())
    return answers


def test_every_failure_of_authentication_is_one_and_the_same_answer(
    refused: dict[str, Answer],
) -> None:
    """Whatever is wrong with a signature, status, headers (Date aside) and body are the same."""
    assert {answer.status for answer in refused.values()} == {401}
    assert len({answer.without_date() for answer in refused.values()}) == 1


def test_every_refusal_is_recorded_with_its_reason(
    gateway: Installation, refused: dict[str, Answer]
) -> None:
    """A reviewer finds each reason, with peer, method and headers, and no body."""
    assert refused
    wanted = {reason for reason, _ in FORGERIES.values()}

    def reasons() -> set[object]:
        return {item["reason"] for item in gateway.refusals("hooks")}

    until(lambda: wanted <= reasons(), "all reasons are recorded")
    assert reasons() == wanted
    rotated = [item["reason"] for item in gateway.refusals("rotated")]
    assert sorted(rotated) == ["key_expired", "key_not_yet_valid"]
    stale = next(i for i in gateway.refusals("hooks") if i["reason"] == "timestamp_too_old")
    assert (stale["peer"], stale["method"], stale["body_bytes"]) == ("127.0.0.1", "POST", len(BODY))
    assert "succeeded" not in str(stale)


def test_no_refused_request_becomes_an_event(
    gateway: Installation, refused: dict[str, Answer]
) -> None:
    """After all forgeries there is no event, and no id is taken: the genuine one is still new."""
    assert refused
    hooks = gateway.senders["hooks"]
    assert gateway.events("rotated") == []
    genuine = hooks.sign(BODY, event_id="msg_taken")
    assert gateway.post(replace(genuine, signature=_flip(genuine.signature)).raw()).status == 401
    assert gateway.post(genuine.raw()).status == 200
    ids = [event["provider_event_id"] for event in gateway.events("hooks")]
    assert ids == ["msg_taken"]


# ---------------------------------------------------------------- what HTTP itself says


@pytest.mark.parametrize(
    "path",
    ["/in/nobody", "/in/hooks/", "/in/Hooks", "/in/%68ooks", "/in//hooks", "//in/hooks", "/in/",
     "/", "/v1/events", "/livez", "/in/hooks%00", "/in/x/../hooks"],
)  # fmt: skip
def test_what_is_no_endpoint_is_404(gateway: Installation, path: str) -> None:
    """Only the exact bytes of a configured endpoint are one; nothing redirects, API included."""
    signed = gateway.senders["hooks"].sign(BODY)
    answer = gateway.post(replace(signed, path=path).raw())
    assert (answer.status, answer.header("location")) == (404, None)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_another_method_is_405_with_allow(gateway: Installation, method: str) -> None:
    """A wrong method is refused and told the right one; an override header has no say."""
    signed = gateway.senders["hooks"].sign(BODY)
    raw = request(method, signed.path, [*signed.headers(), ("X-HTTP-Method-Override", "POST")])
    answer = gateway.post(raw)
    assert (answer.status, answer.header("allow")) == (405, "POST")


@pytest.mark.parametrize(
    "header",
    [("Content-Type", "multipart/form-data; boundary=x"), ("Content-Encoding", "x-ours")],
)
def test_a_body_that_no_signature_can_cover_is_415(
    gateway: Installation, header: tuple[str, str]
) -> None:
    """Multipart and unknown encodings are refused whatever their signature."""
    signed = gateway.senders["neighbour"].sign(BODY)
    kept = [pair for pair in signed.headers() if pair[0] != header[0]]
    assert gateway.post(request("POST", signed.path, [*kept, header], BODY)).status == 415


def test_an_announced_body_that_is_too_large_is_413_before_it_is_sent(
    gateway: Installation,
) -> None:
    """Content-Length beyond the cap is answered at once, without a byte of body read."""
    signed = gateway.senders["neighbour"].sign(BODY)
    head = request("POST", signed.path, [*signed.headers(), ("Content-Length", "10000000000")])
    with Connection(gateway.public) as connection:
        assert connection.exchange(head).status == 413
        assert connection.is_closed()


def test_a_chunked_body_that_grows_too_large_is_413(gateway: Installation) -> None:
    """A body without a length is refused when it passes the cap, not when it ends."""
    signed = gateway.senders["neighbour"].sign(BODY)
    head = request("POST", signed.path, [*signed.headers(), ("Transfer-Encoding", "chunked")])
    with Connection(gateway.public) as connection:
        connection.send(head)
        for _ in range(6):
            connection.send(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert connection.answer().status == 413


def test_the_largest_body_is_taken_and_one_byte_more_is_not(gateway: Installation) -> None:
    """The cap is exact."""
    sender = gateway.senders["neighbour"]
    answers = [gateway.post(sender.sign(b"x" * size).raw()) for size in (20_000, 20_001)]
    assert [answer.status for answer in answers] == [200, 413]


def test_a_slow_body_is_ended_at_the_deadline(gateway: Installation) -> None:
    """A sender that stops in the middle of its body is told 408 and let go; nothing is kept."""
    signed = gateway.senders["neighbour"].sign(BODY)
    with Connection(gateway.public) as connection:
        begun = time.monotonic()
        connection.send(signed.raw()[:-10])
        answer = connection.answer()
        assert (answer.status, connection.is_closed()) == (408, True)
    assert time.monotonic() - begun < 5
    assert signed.event_id not in str(gateway.events("neighbour"))


def test_a_slow_head_is_ended_at_the_deadline(gateway: Installation) -> None:
    """A connection that never finishes its headers does not stay."""
    with Connection(gateway.public) as connection:
        connection.send(b"POST /in/hooks HTTP/1.1\r\nHost: x\r\n")
        assert (connection.answer().status, connection.is_closed()) == (408, True)


def test_a_body_that_breaks_off_is_no_event(gateway: Installation) -> None:
    """A sender that hangs up in the middle leaves nothing behind and disturbs nobody."""
    sender = gateway.senders["neighbour"]
    broken, whole = sender.sign(BODY), sender.sign(BODY)
    with Connection(gateway.public) as connection:
        connection.send(broken.raw()[:-10])
    assert gateway.post(whole.raw()).status == 200
    stored = str(gateway.events("neighbour"))
    assert (broken.event_id in stored, whole.event_id in stored) == (False, True)


def test_the_reasons_of_http_are_recorded_too(gateway: Installation) -> None:
    """Wrong method, media and size are shown under the source; unknown paths to who sees all."""
    signed = gateway.senders["rotated"].sign(BODY)
    gateway.post(request("GET", signed.path))
    gateway.post(request("POST", signed.path, [("Content-Encoding", "x-ours")], BODY))
    gateway.post(request("POST", signed.path, [], b"x" * 20_001))
    gateway.post(request("POST", "/in/nobody", [], BODY))

    def reasons(source: str) -> set[object]:
        return {item["reason"] for item in gateway.refusals(source)}

    wanted = {"wrong_method", "unsupported_media", "body_too_large"}
    until(lambda: wanted <= reasons("rotated"), "the reasons are recorded")
    until(lambda: reasons("") == {"unknown_source"}, "the unknown source is recorded")


# ---------------------------------------------------------------- floods


_DROPPED = re.compile(r'"count": (\d+),.*"event": "refusals_dropped"')


def test_a_flood_of_forgeries_is_counted_and_fills_nothing(gateway: Installation) -> None:
    """Of 5,000 forgeries each is counted, a handful of rows is kept, the journal hardly grows.

    What came faster than the ledger could take it is counted in the log.
    """
    before = gateway.folder.joinpath("data/ledger.db").stat().st_size
    entries = _one(gateway, "SELECT count(*) FROM journal")
    forged = Sender("flooded").sign(BODY).raw()

    def flood() -> None:
        with Connection(gateway.public) as connection:
            for _ in range(125):
                connection.send(forged * 4)
                assert [connection.answer().status for _ in range(4)] == [401] * 4
            for _ in range(750):
                assert connection.exchange(forged).status == 401

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = "SELECT sum(count) FROM refusal_count WHERE source = 'flooded'"

    def accounted_for() -> int:
        return _one(gateway, counted) + sum(map(int, _DROPPED.findall(gateway.log)))

    until(lambda: accounted_for() == 5_000, "each forgery is counted")
    assert _one(gateway, counted) >= 2_000
    minutes = _one(gateway, "SELECT count(*) FROM refusal_count WHERE source = 'flooded'")
    assert len(gateway.refusals("flooded")) == 20 * minutes
    assert _one(gateway, "SELECT count(*) FROM journal") - entries <= 40
    assert gateway.folder.joinpath("data/ledger.db").stat().st_size - before < 200_000


def _one(gateway: Installation, sql: str) -> int:
    ledger = apsw.Connection(
        str(gateway.folder / "data/ledger.db"), flags=apsw.SQLITE_OPEN_READONLY
    )
    try:
        return int(ledger.execute(sql).get or 0)
    finally:
        ledger.close()


def test_a_flood_does_not_keep_a_genuine_event_out(gateway: Installation) -> None:
    """While forgeries pour in, signed requests are stored, most of them within half a second."""
    stop = threading.Event()
    forged = Sender("flooded").sign(BODY).raw()

    def flood() -> None:
        with Connection(gateway.public) as connection:
            while not stop.is_set():
                connection.exchange(forged)

    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        waits = []
        for _ in range(10):
            begun = time.monotonic()
            raw = gateway.senders["neighbour"].sign(BODY).raw()
            assert exchange(gateway.public, raw).status == 200
            waits.append(time.monotonic() - begun)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert sorted(waits)[5] < 0.5
    assert max(waits) < 4
