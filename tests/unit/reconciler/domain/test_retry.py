"""Retry-After in every form that servers send, and the backoff without it."""

import pytest

from reconciler.domain.retry import RETRY_AFTER_CAP_MS, backoff_ms, retry_after_ms

#: Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
NOW = 784_111_777_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0),
        ("120", 120_000),
        ("007", 7_000),
        (" 5\t", 5_000),
        (b"30", 30_000),
        ("99999999999", RETRY_AFTER_CAP_MS),
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30_000),
        ("Sunday, 06-Nov-94 08:50:07 GMT", 30_000),
        ("Sun Nov  6 08:50:07 1994", 30_000),
        ("Sun, 06 Nov 1994 08:49:60 GMT", 23_000),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", RETRY_AFTER_CAP_MS),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Wednesday, 06-Nov-46 08:49:37 GMT", 0),
    ],
)
def test_lawful_values(value: str | bytes, expected: int) -> None:
    """Seconds and the three HTTP-date forms are obeyed, clamped to [0, cap]."""
    assert expected == retry_after_ms([value], NOW)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "-1",
        "+1",
        "1.5",
        "10, 20",
        "0x10",
        "1e3",
        "1_0",
        "1 0",
        "\uff11\uff12",
        "١٢",
        "²",
        "soon",
        "Sun, 06 Nov 1994 08:50:07 -0000",
        "Sun, 06 Nov 1994 08:50:07 +0000",
        "Sun, 06 Nov 1994 08:50:07 UTC",
        "Sun, 06 Nov 1994 08:50:07",
        "Sun, 6 Nov 1994 08:50:07 GMT",
        "Sun, 31 Nov 1994 08:50:07 GMT",
        "Sun, 29 Feb 1995 08:50:07 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT",
        "sun, 06 nov 1994 08:50:07 gmt",
        "Sun Nov 06 08:50:07 1994 GMT",
        "1994-11-06T08:50:07Z",
        "9" * 4096,
        "x" * 4096,
        b"\xff\xfe",
        b"10\x00",
        "10\n",
    ],
)
def test_unlawful_values(value: str | bytes) -> None:
    """Everything that is not exactly one of the forms is no instruction."""
    assert retry_after_ms([value], NOW) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], None), (["10", "20"], None), (["10", b"10"], 10_000), (["10", "soon"], None)],
)
def test_repeated_headers(values: list[str | bytes], expected: int | None) -> None:
    """No header says nothing, and neither do two that disagree."""
    assert expected == retry_after_ms(values, NOW)


def test_two_digit_years_are_near() -> None:
    """A two-digit year means the one that is not more than 50 years ahead (RFC 9110, 5.6.7)."""
    in_1999 = 946_684_799_000 - 30_000

    assert retry_after_ms(["Saturday, 01-Jan-00 00:00:00 GMT"], in_1999) == 31_000


def test_cap_is_the_callers() -> None:
    """The caller's cap bounds what a provider may ask for."""
    assert retry_after_ms(["3600"], NOW, cap_ms=60_000) == 60_000


def test_backoff_doubles_to_the_cap() -> None:
    """With jitter at its upper end the wait doubles with each attempt until the cap."""
    waits = [backoff_ms(n, base_ms=1000, cap_ms=8000, jitter=0.999_999) for n in range(6)]

    assert waits == [999, 1999, 3999, 7999, 7999, 7999]


def test_backoff_has_a_floor() -> None:
    """Jitter of zero still waits half of the base: it never hot-loops."""
    assert [backoff_ms(n, base_ms=1000, cap_ms=8000, jitter=0.0) for n in (0, 5)] == [500, 500]


@pytest.mark.parametrize("attempt", [10**6, 10**30, -5])
def test_backoff_with_absurd_attempts(attempt: int) -> None:
    """Any attempt number gives a wait within bounds, and without a huge integer on the way."""
    assert 1 <= backoff_ms(attempt, base_ms=1000, cap_ms=8000, jitter=0.5) <= 8000
