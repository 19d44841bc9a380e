"""The verdict on signatures, headers and bodies."""

import hmac

import pytest

from tests.support.vectors import (
    BODY,
    HEADERS,
    KINDS,
    NOW,
    OTHER_SECRET,
    SECRET,
    request,
    ring,
    signature_of,
    signed,
    verdict,
    with_header,
)
from verifiers.preset import load_preset, parse_preset
from verifiers.sign import sign
from verifiers.verdict import Reason, Rejected, Verified
from verifiers.verify import verify


@pytest.mark.parametrize(("name", "secret"), KINDS)
def test_a_signed_request_is_verified(name: str, secret: str) -> None:
    """What is signed with the source's key is accepted, and the key is named."""
    found = verdict(name, signed(name, secret=secret), secret)

    assert isinstance(found, Verified)
    assert found.key_id == "k1"


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


@pytest.mark.parametrize("label", [b"v2", b"v0", b"V1", b"", b"none", b"v1a", b"v1 "])
def test_another_version_is_refused(label: bytes) -> None:
    """SC-15: the right MAC under a version that the key does not answer is refused."""
    given = signed("standard-webhooks")
    value = signature_of(given, "standard-webhooks").replace(b"v1", label, 1)

    assert Rejected(Reason.SIGNATURE_MALFORMED) == verdict(
        "standard-webhooks", with_header(given, b"webhook-signature", value)
    )


@pytest.mark.parametrize("change", ["missing", "empty", "repeated"])
def test_required_headers_stand_once_with_a_value(change: str) -> None:
    """SC-63: Shopify's domain header is there exactly once and says something."""
    values = {"missing": [], "empty": [b""], "repeated": [b"a", b"a"]}[change]
    given = with_header(signed("shopify"), b"x-shopify-shop-domain", *values)
    reason = Reason.HEADER_REPEATED if change == "repeated" else Reason.HEADER_MISSING

    assert Rejected(reason) == verdict("shopify", given)


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
