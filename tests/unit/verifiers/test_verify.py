"""The verdict, check by check."""

import base64
import hashlib
import hmac

import pytest

from tests.support.vectors import (
    BODY,
    KINDS,
    NOW,
    OTHER_SECRET,
    PRIVATE_KEY,
    SECRET,
    request,
    ring,
    signed,
    with_header,
)
from verifiers.keys import build_key_ring
from verifiers.preset import load_preset, parse_preset
from verifiers.request import RawRequest
from verifiers.schemes.public_key import Ed25519
from verifiers.sign import sign
from verifiers.verdict import Flag, Reason, Rejected, Verified
from verifiers.verify import verify

# (preset, signature header, timestamp header or None, id header that is signed or None)
HEADERS = {
    "github": (b"x-hub-signature-256", None, None),
    "shopify": (b"x-shopify-hmac-sha256", None, None),
    "slack": (b"x-slack-signature", b"x-slack-request-timestamp", None),
    "standard-webhooks": (b"webhook-signature", b"webhook-timestamp", b"webhook-id"),
    "stripe": (b"stripe-signature", None, None),
    "svix": (b"svix-signature", b"svix-timestamp", b"svix-id"),
    "timestamp-body": (b"x-webhook-signature", b"x-webhook-timestamp", None),
}
STAMPED = [(name, where[1]) for name, where in HEADERS.items() if where[1]]


def verdict(name: str, given: RawRequest, *secrets: str, now: int = NOW) -> Verified | Rejected:
    """Return the verdict of a source with this preset and these secrets."""
    preset = load_preset(name)
    return verify(given, preset, ring(preset, *secrets), now)


def signature_of(given: RawRequest, name: str) -> bytes:
    """Return the value of the signature header."""
    return given.values(HEADERS[name][0])[0]


@pytest.mark.parametrize(("name", "secret"), KINDS)
def test_a_signed_request_is_verified(name: str, secret: str) -> None:
    """What is signed with the source's key is accepted, and the key is named."""
    found = verdict(name, signed(name, secret=secret), secret)

    assert isinstance(found, Verified)
    assert (found.key_id, found.flags) == ("k1", ())


@pytest.mark.parametrize("name", HEADERS)
def test_no_signature_is_refused(name: str) -> None:
    """SC-01, F09: a request without a signature is refused, not taken as nothing to verify."""
    bare = with_header(signed(name), HEADERS[name][0])

    assert Rejected(Reason.SIGNATURE_MISSING) == verdict(name, bare)


@pytest.mark.parametrize("name", HEADERS)
def test_two_signature_headers_are_refused(name: str) -> None:
    """SC-63: two signature headers are refused even when both are right."""
    header = HEADERS[name][0]
    twice = with_header(signed(name), header, *[signature_of(signed(name), name)] * 2)

    assert Rejected(Reason.SIGNATURE_REPEATED) == verdict(name, twice)


def test_two_names_of_one_header_are_a_repeat() -> None:
    """SC-63: svix-signature beside webhook-signature is two signatures, not a choice."""
    given = signed("svix")
    both = with_header(given, b"webhook-signature", signature_of(given, "svix"))

    assert Rejected(Reason.SIGNATURE_REPEATED) == verdict("svix", both)


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize(
    "value", [b"", b"v1,", b"v1=", b"sha256=", b"v0=", b"t=1780000000,v1=", b","]
)
def test_an_empty_signature_is_malformed(name: str, value: bytes) -> None:
    """SC-02: an empty value, or a prefix with nothing behind it, is refused."""
    given = with_header(signed(name), HEADERS[name][0], value)

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(name, given)


@pytest.mark.parametrize("name", HEADERS)
def test_a_random_signature_of_the_right_length_is_a_mismatch(name: str) -> None:
    """SC-03: a well-formed signature of somebody else is refused."""
    given = signed(name, secret=OTHER_SECRET)

    assert Rejected(Reason.SIGNATURE_MISMATCH) == verdict(name, given)


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("cut", [8, 16, 31, -1])
def test_a_truncated_signature_is_malformed(name: str, cut: int) -> None:
    """SC-08: no prefix of the right signature is accepted."""
    whole = signature_of(signed(name), name)
    start = whole.rfind(b"=", 0, -2) + 1 if b"=" in whole[:-2] else 3
    short = whole[: start + cut] if cut > 0 else whole[:-1]

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        name, with_header(signed(name), HEADERS[name][0], short)
    )


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("tail", [b"0", b"00", b" ", b"\t", b"\x00", b"\n", b"=", b"\xe9"])
def test_anything_after_the_signature_is_malformed(name: str, tail: bytes) -> None:
    """SC-09, SC-11, F04: trailing bytes, white space, NUL and bytes beyond ASCII are refused."""
    whole = signature_of(signed(name), name)

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        name, with_header(signed(name), HEADERS[name][0], whole + tail)
    )


@pytest.mark.parametrize("name", ["github", "slack", "stripe", "timestamp-body"])
def test_upper_case_hex_is_malformed(name: str) -> None:
    """SC-07: the providers send lower case, so upper case is another text and refused."""
    prefix, _, digits = signature_of(signed(name), name).rpartition(b"=")

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        name, with_header(signed(name), HEADERS[name][0], prefix + b"=" + digits.upper())
    )


@pytest.mark.parametrize("name", ["shopify", "standard-webhooks", "svix"])
def test_base64_has_one_spelling(name: str) -> None:
    """SC-10: junk, missing padding, the URL alphabet and stray padding bits are refused."""
    # A body whose signature holds + and /, so that the URL alphabet is another text.
    bodies = (b'{"n":%d}' % n for n in range(1000))
    given = next(r for b in bodies if {*b"+/"} <= {*signature_of(r := signed(name, b), name)})
    whole = signature_of(given, name)
    last = whole[-2:-1]
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    stray = alphabet[alphabet.index(last) + 1 : alphabet.index(last) + 2]
    twins = [
        whole.rstrip(b"="),
        whole[:10] + b"!" + whole[10:],
        whole[:10] + b"\n" + whole[10:],
        whole.replace(b"+", b"-").replace(b"/", b"_"),
        whole[:-2] + stray + b"=",
        whole + b"=",
    ]

    found = [verdict(name, with_header(given, HEADERS[name][0], twin)) for twin in twins]

    assert isinstance(verdict(name, given), Verified)
    assert [Rejected(Reason.SIGNATURE_MALFORMED)] * len(twins) == found


@pytest.mark.parametrize(
    "around",
    [
        b"foo %b",
        b"v1,AAA %b",
        b"v1a,AAAA %b v2,AAAA",
        b"  %b",
        b"v1 %b",
        b",,, %b",
        b"\xff,\xff %b",
    ],
)
def test_bad_neighbours_do_not_spoil_a_good_signature(around: bytes) -> None:
    """F05: entries that make no sense are skipped, one right signature is enough."""
    given = signed("standard-webhooks")
    value = around % signature_of(given, "standard-webhooks")

    assert isinstance(
        verdict("standard-webhooks", with_header(given, b"webhook-signature", value)), Verified
    )


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("name", ["stripe", "standard-webhooks"])
def test_each_of_several_signatures_is_tried(name: str, order: int) -> None:
    """F06: during a rotation the header holds two signatures, in either order."""
    header = HEADERS[name][0]
    preset = load_preset(name)
    both = ring(preset, *(SECRET, OTHER_SECRET)[::order])
    given = request(sign(BODY, preset, both, NOW, event_id="msg_1"))

    assert isinstance(verdict(name, given), Verified)
    assert given.values(header)[0].count(b"v1") == 2


@pytest.mark.parametrize("order", [1, -1])
def test_each_of_several_keys_is_tried(order: int) -> None:
    """F06, F07: with two live keys either is accepted, and the one that matched is named."""
    found = verdict("github", signed("github"), *(SECRET, OTHER_SECRET)[::order])

    assert isinstance(found, Verified)
    assert ("k1" if order == 1 else "k2") == found.key_id


def test_the_ninth_signature_is_not_tried() -> None:
    """SC-12: of a long list the first eight are looked at; the work is bounded."""
    given = signed("standard-webhooks")
    good = signature_of(given, "standard-webhooks")
    bad = signature_of(signed("standard-webhooks", secret=OTHER_SECRET), "standard-webhooks")

    def at(place: int) -> Verified | Rejected:
        listed = b" ".join([bad] * (place - 1) + [good] + [bad] * 90)
        return verdict("standard-webhooks", with_header(given, b"webhook-signature", listed))

    assert isinstance(at(8), Verified)
    assert Rejected(Reason.SIGNATURE_MISMATCH) == at(9)


def test_an_overlong_signature_header_is_refused_unread() -> None:
    """SC-12: 64 KB of signatures are refused even when a right one leads them."""
    given = signed("standard-webhooks")
    value = signature_of(given, "standard-webhooks") + b" v1,AAAA" * 8192

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        "standard-webhooks", with_header(given, b"webhook-signature", value)
    )


def test_the_older_algorithm_is_no_fallback() -> None:
    """SC-13: a right SHA-1 signature, in its own header or under our prefix, is refused."""
    sha1 = b"sha1=" + hmac.new(SECRET.encode(), BODY, "sha1").hexdigest().encode()
    bare = with_header(signed("github"), b"x-hub-signature-256")

    assert Rejected(Reason.SIGNATURE_MISSING) == verdict(
        "github", with_header(bare, b"x-hub-signature", sha1)
    )
    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        "github", with_header(bare, b"x-hub-signature-256", sha1)
    )


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


@pytest.mark.parametrize("label", [b"v2", b"v0", b"V1", b"", b"none", b"v1a", b"v1 "])
def test_another_version_is_refused(label: bytes) -> None:
    """SC-15: the right MAC under a version that the key does not answer is refused."""
    given = signed("standard-webhooks")
    value = signature_of(given, "standard-webhooks").replace(b"v1", label, 1)

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        "standard-webhooks", with_header(given, b"webhook-signature", value)
    )


@pytest.mark.parametrize(("name", "header"), STAMPED)
def test_no_timestamp_is_refused(name: str, header: bytes) -> None:
    """F19, SC-24: a scheme with a timestamp refuses a request from which it was removed."""
    assert Rejected(Reason.TIMESTAMP_MISSING) == verdict(name, with_header(signed(name), header))


@pytest.mark.parametrize(("name", "header"), STAMPED)
def test_two_timestamps_are_refused(name: str, header: bytes) -> None:
    """SC-24: two timestamps are refused, the same twice too."""
    stamp = str(NOW).encode()

    assert Rejected(Reason.TIMESTAMP_REPEATED) == verdict(
        name, with_header(signed(name), header, stamp, stamp)
    )


@pytest.mark.parametrize("value", [b"t=%d,t=%d,%b", b"t=%d,t=1%d,%b"])
def test_two_timestamps_in_the_signature_are_refused(value: bytes) -> None:
    """SC-24: a second t= in Stripe's header is refused."""
    given = signed("stripe")
    v1 = signature_of(given, "stripe").partition(b",")[2]

    assert Rejected(Reason.TIMESTAMP_REPEATED) == verdict(
        "stripe", with_header(given, b"stripe-signature", value % (NOW, NOW, v1))
    )


@pytest.mark.parametrize(("name", "header"), STAMPED)
@pytest.mark.parametrize(
    "stamp",
    [
        b"",
        b"1e9",
        b" 1780000000",
        b"1780000000 ",
        b"+1780000000",
        b"-1780000000",
        b"1_780_000_000",
        b"1780000000.0",
        b"01780000000",
        b"0x6a18",
        b"\xef\xbc\x91780000000",
        b"1" * 20,
        b"\xe9",
        b"1780000000\x00",
        b"nan",
    ],
)
def test_a_timestamp_has_one_spelling(name: str, header: bytes, stamp: bytes) -> None:
    """SC-24, SC-11: anything but plain ASCII digits is refused, whatever int() would make of it."""
    assert Rejected(Reason.TIMESTAMP_MALFORMED) == verdict(
        name, with_header(signed(name), header, stamp)
    )


@pytest.mark.parametrize("name", ["standard-webhooks", "slack", "stripe", "svix", "timestamp-body"])
def test_the_tolerance_holds_on_both_sides(name: str) -> None:
    """F20, F21, SC-22, SC-23: 300 s either way are accepted, 301 s are not."""
    found = [verdict(name, signed(name), now=NOW + age) for age in (300, -300, 301, -301)]

    assert isinstance(found[0], Verified)
    assert isinstance(found[1], Verified)
    assert [Rejected(Reason.TIMESTAMP_TOO_OLD), Rejected(Reason.TIMESTAMP_IN_FUTURE)] == found[2:]


def test_a_timestamp_in_milliseconds_is_in_the_future() -> None:
    """SC-24: milliseconds where seconds are due are refused, however right the signature is."""
    given = signed("slack", at=NOW * 1000)

    assert Rejected(Reason.TIMESTAMP_MALFORMED) == verdict("slack", given)


def test_a_forged_stale_request_is_a_mismatch() -> None:
    """F20: only an authentic request is recorded as late; a forged one is recorded as forged."""
    old = signed("slack", at=NOW - 9999, secret=OTHER_SECRET)

    assert Rejected(Reason.SIGNATURE_MISMATCH) == verdict("slack", old)


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


@pytest.mark.parametrize("change", ["missing", "empty", "repeated"])
def test_required_headers_stand_once_with_a_value(change: str) -> None:
    """SC-63: Shopify's domain header is there exactly once and says something."""
    values = {"missing": [], "empty": [b""], "repeated": [b"a", b"a"]}[change]
    given = with_header(signed("shopify"), b"x-shopify-shop-domain", *values)
    reason = Reason.HEADER_REPEATED if change == "repeated" else Reason.HEADER_MISSING

    assert Rejected(reason) == verdict("shopify", given)


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


def test_a_key_answers_its_own_version_only() -> None:
    """SC-15, quirk 36: a right signature of one kind of key under the label of another is refused."""
    kind = {"algorithm": "hmac-sha256", "form": "utf8"}
    table = {
        "name": "two",
        "signed": "{body}",
        "retry_horizon_s": 60,
        "signature": {"from": "header:x-sig", "layout": "list", "encoding": "hex"},
        "secret": [
            {**kind, "version": "v1", "prefix": "one_"},
            {**kind, "version": "v2", "prefix": "two_"},
        ],
    }
    preset = parse_preset(table, "test")
    keys = ring(preset, "one_0123456789abcdef", "two_fedcba9876543210")
    mac = hmac.new(b"fedcba9876543210", BODY, "sha256").hexdigest().encode()
    found = [
        verify(request([(b"x-sig", v + b"," + mac)]), preset, keys, NOW) for v in (b"v2", b"v1")
    ]

    assert isinstance(found[0], Verified)
    assert Rejected(Reason.SIGNATURE_MISMATCH) == found[1]
