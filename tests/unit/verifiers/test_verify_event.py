"""The verdict on ids and keys, and what is taken from an accepted request."""

import base64
import hashlib
import hmac

import pytest

from tests.support.vectors import (
    BODY,
    HEADERS,
    NOW,
    OTHER_SECRET,
    PRIVATE_KEY,
    SECRET,
    request,
    ring,
    signed,
    verdict,
    with_header,
)
from verifiers.keys import build_key_ring
from verifiers.preset import load_preset, parse_preset
from verifiers.request import RawRequest
from verifiers.schemes.public_key import Ed25519
from verifiers.verdict import Flag, Reason, Rejected, Verified
from verifiers.verify import verify


def test_a_public_key_is_no_shared_secret() -> None:
    """SC-14: an HMAC made with the public key is refused under v1a and under v1."""
    public = Ed25519.of_private(base64.b64decode(PRIVATE_KEY[5:]))._public.public_bytes_raw()
    text = "whpk_" + base64.b64encode(public).decode()
    content = b"msg_1.%d." % NOW + BODY
    mac = base64.b64encode(hmac.new(public, content, "sha256").digest())
    long_mac = base64.b64encode(hmac.new(public, content, "sha512").digest())

    for value in (b"v1," + mac, b"v1a," + mac, b"v1a," + long_mac):
        given = with_header(signed("standard-webhooks"), b"webhook-signature", value)
        assert isinstance(verdict("standard-webhooks", given, text), Rejected)


@pytest.mark.parametrize("name", ["standard-webhooks", "svix"])
def test_a_signed_id_must_be_there_once(name: str) -> None:
    """SC-63: an id that is part of the signed content is there exactly once."""
    header = HEADERS[name][2]
    assert header is not None

    assert Rejected(Reason.ID_MISSING) == verdict(name, with_header(signed(name), header))
    assert Rejected(Reason.ID_REPEATED) == verdict(
        name, with_header(signed(name), header, b"msg_1", b"msg_1")
    )


def test_an_unsigned_id_must_not_stand_twice() -> None:
    """SC-63: two delivery ids are refused although the id is information only."""
    given = with_header(signed("github"), b"x-github-delivery", b"a", b"b")

    assert Rejected(Reason.ID_REPEATED) == verdict("github", given)


def test_the_boundary_of_id_and_body_cannot_be_shifted() -> None:
    """F27, SC-28: the same signed bytes cut elsewhere (id "m.T", body "rest") are refused."""
    body = b"%d.rest" % NOW
    given = signed("standard-webhooks", body, event_id="m")
    shifted = with_header(given, b"webhook-id", b"m.%d" % NOW)
    shifted = RawRequest("POST", "", shifted.headers, b"rest")

    assert isinstance(verdict("standard-webhooks", given), Verified)
    assert Rejected(Reason.ID_MALFORMED) == verdict("standard-webhooks", shifted)


@pytest.mark.parametrize(
    "event_id", [b"a b", b"\xc3\xa9", b"e\xcc\x81", b"x" * 10_000, b"a\x00b", b"a\tb"]
)
def test_an_unusable_signed_id_falls_back_to_the_digest(event_id: bytes) -> None:
    """SC-29: an authentic request with an odd id is kept, by its digest, and flagged."""
    mac = hmac.new(base64.b64decode(SECRET[6:]), event_id + b".%d." % NOW + BODY, "sha256")
    given = with_header(signed("standard-webhooks"), b"webhook-id", event_id)
    value = b"v1," + base64.b64encode(mac.digest())
    found = verdict("standard-webhooks", with_header(given, b"webhook-signature", value))

    assert isinstance(found, Verified)
    assert (
        found.event_key.kind,
        found.event_id,
        found.flags,
    ) == ("digest", None, (Flag.ID_UNUSABLE,))


def test_ids_are_compared_as_raw_text() -> None:
    """SC-29: ids that differ in case or leading zeros stay different."""
    keys = {
        found.event_key
        for event_id in ("abc", "ABC", "007", "7")
        if isinstance(
            found := verdict("standard-webhooks", signed("standard-webhooks", event_id=event_id)),
            Verified,
        )
    }

    assert {("id", "abc"), ("id", "ABC"), ("id", "007"), ("id", "7")} == keys


def test_an_empty_body_is_refused_where_the_provider_sends_none() -> None:
    """Shopify's library refuses an empty body; so do we."""
    empty = RawRequest("POST", "", signed("shopify").headers, b"")

    assert Rejected(Reason.BODY_EMPTY) == verdict("shopify", empty)


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("tail", [b" ", b"\n", b"\x00"])
def test_a_body_with_something_added_is_refused(name: str, tail: bytes) -> None:
    """SC-32: a space, a line break or a byte order mark beside the body is refused."""
    given = signed(name)
    longer = RawRequest("POST", "", given.headers, given.body + tail)
    marked = RawRequest("POST", "", given.headers, b"\xef\xbb\xbf" + given.body)

    assert Rejected(Reason.SIGNATURE_MISMATCH) == verdict(name, longer)
    assert Rejected(Reason.SIGNATURE_MISMATCH) == verdict(name, marked)


def test_a_key_that_has_expired_is_named_so() -> None:
    """F07, SC-05: both keys are accepted while both are valid; after its end the old one is not."""
    preset = load_preset("github")
    keys = build_key_ring(
        preset, [("old", SECRET, None, NOW + 10), ("new", OTHER_SECRET, NOW, None)]
    )

    def at(secret: str, now: int) -> Verified | Rejected:
        return verify(signed("github", secret=secret), preset, keys, now)

    accepted = [at(SECRET, NOW), at(OTHER_SECRET, NOW), at(SECRET, NOW + 10)]

    assert [v.key_id for v in accepted if isinstance(v, Verified)] == ["old", "new", "old"]
    assert Rejected(Reason.KEY_EXPIRED) == at(SECRET, NOW + 11)
    assert Rejected(Reason.KEY_NOT_YET_VALID) == at(OTHER_SECRET, NOW - 1)


def test_a_forgery_is_no_expired_key() -> None:
    """SC-05: the reason key_expired says that the old key really made the signature."""
    preset = load_preset("github")
    keys = build_key_ring(preset, [("old", SECRET, None, NOW - 1)])

    assert Rejected(Reason.SIGNATURE_MISMATCH) == verify(
        signed("github", secret=OTHER_SECRET), preset, keys, NOW
    )


def test_a_fresh_unsigned_id_is_still_the_same_event() -> None:
    """F24, SC-25: a GitHub capture sent again under another delivery id has the same key."""
    given = signed("github")
    found = [
        verdict("github", with_header(given, b"x-github-delivery", name))
        for name in (b"one", b"two", b"three")
    ]

    assert len({v.event_key for v in found if isinstance(v, Verified)}) == 1
    assert [v.event_id for v in found if isinstance(v, Verified)] == ["one", "two", "three"]
    assert {"digest"} == {v.event_key.kind for v in found if isinstance(v, Verified)}


@pytest.mark.parametrize(
    "body",
    [
        b'{"id":"evt_1","id":"evt_2","type":"a"}',
        b'{"id":"evt_1","Id":"evt_2","type":"a"}',
        b'{"id":"evt_1","type":"a","data":{"status":"failed","status":"succeeded"}}',
        b'{"id":"evt_1","type":"a","data":{"Status":"failed","status":"succeeded"}}',
    ],
)
def test_an_ambiguous_body_gives_no_id_and_no_type(body: bytes) -> None:
    """F17, SC-35: bytes with a key twice are evidence; nothing is read from them."""
    found = verdict("stripe", signed("stripe", body))

    assert isinstance(found, Verified)
    assert (found.event_id, found.event_type, found.event_key.kind) == (None, None, "digest")
    assert {Flag.AMBIGUOUS_JSON, Flag.ID_MISSING} == set(found.flags)


@pytest.mark.parametrize(
    "body",
    [
        b'{"id":NaN}',
        b"\xff\xfe{",
        '{"id":"evt_1"}'.encode("utf-16"),
        b'\xef\xbb\xbf{"id":"evt_1"}',
        b"[" * 100_000,
        b'{"id":"evt_1","deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"",
        b"payload=%7B%7D",
    ],
)
def test_a_hostile_body_is_evidence_without_an_id(body: bytes) -> None:
    """SC-36: authentic bytes that cannot be read safely are kept by their digest, never an error."""
    found = verdict("stripe", signed("stripe", body))

    assert isinstance(found, Verified)
    assert (found.event_id, found.event_key.kind) == (None, "digest")
    assert {Flag.BODY_UNREADABLE, Flag.ID_MISSING} == set(found.flags)


@pytest.mark.parametrize(
    ("value", "event_id"),
    [
        (b"9007199254740993", "9007199254740993"),
        (b"9" * 200, "9" * 200),
        (b"1e999", "1e999"),
        (b"1.10", "1.10"),
        (b'"\\ud800"', None),
        (b'"a\\u0000b"', None),
        (b"9" * 5000, None),
        (b"true", None),
        (b"null", None),
        (b"{}", None),
    ],
)
def test_an_id_keeps_its_text(value: bytes, event_id: str | None) -> None:
    """SC-36: a number as an id loses no digit; what is no usable text gives no id."""
    found = verdict("stripe", signed("stripe", b'{"id":%b}' % value))

    assert isinstance(found, Verified)
    assert event_id == found.event_id


def test_a_body_that_is_not_signed_makes_a_weak_event() -> None:
    """A scheme that covers no body gives a weak key of unsigned id and body (design, event key)."""
    table = {
        "name": "weak",
        "signed": "{timestamp}",
        "retry_horizon_s": 60,
        "signature": {"from": "header:x-sig", "layout": "bare", "encoding": "hex"},
        "secret": {"algorithm": "hmac-sha256", "form": "utf8"},
        "timestamp": {"from": "header:x-time"},
        "event": {"id": "header:x-id"},
    }
    preset = parse_preset(table, "test")
    mac = hmac.new(SECRET.encode(), b"%d" % NOW, hashlib.sha256).hexdigest().encode()
    headers = [(b"x-sig", mac), (b"x-time", b"%d" % NOW)]

    def key(body: bytes, event_id: bytes) -> str:
        given = request([*headers, (b"x-id", event_id)], body)
        found = verify(given, preset, ring(preset), NOW)
        assert isinstance(found, Verified)
        assert found.weak
        return str(found.event_key)

    assert len({key(b"a", b"1"), key(b"b", b"1"), key(b"a", b"2")}) == 3
    assert key(b"a", b"1") == key(b"a", b"1")
