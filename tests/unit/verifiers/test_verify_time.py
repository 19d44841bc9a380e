"""The verdict on timestamps."""

import pytest

from tests.support.vectors import (
    NOW,
    OTHER_SECRET,
    STAMPED,
    signature_of,
    signed,
    verdict,
    with_header,
)
from verifiers.verdict import Reason, Rejected, Verified


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
