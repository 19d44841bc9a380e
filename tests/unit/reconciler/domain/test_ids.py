"""Names: of the things we make, and those from outside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.domain.ids import NAME_CHARACTERS_MAX, RANDOM_BYTES, is_name, make_id

_RANDOM = st.binary(min_size=RANDOM_BYTES, max_size=RANDOM_BYTES)
_INSTANTS = st.integers(0, 2**48 - 1)


def test_form() -> None:
    """A prefix, then 26 characters of Crockford's base 32: 48 bits of time, 80 of randomness."""
    assert make_id("evt", 0, bytes(10)) == "evt_" + "0" * 26
    assert make_id("evt", 2**48 - 1, b"\xff" * 10) == "evt_7" + "z" * 25
    assert make_id("op", 1, bytes(9) + b"\x01") == "op_0000000001" + "0" * 15 + "1"


@given(_INSTANTS, _INSTANTS, _RANDOM, _RANDOM)
def test_sorts_by_time(early: int, late: int, one: bytes, other: bytes) -> None:
    """Of two instants the earlier one's name sorts first, whatever the random bytes."""
    if early < late:
        assert make_id("evt", early, one) < make_id("evt", late, other)


@given(_INSTANTS, _INSTANTS, _RANDOM, _RANDOM)
def test_injective(now: int, then: int, one: bytes, other: bytes) -> None:
    """Another instant or other random bytes make another name, the same ones the same."""
    assert ((now, one) == (then, other)) == (make_id("e", now, one) == make_id("e", then, other))


def test_never_looks_like_another_letter() -> None:
    """No name holds i, l, o or u, which are misread or spell words."""
    names = {make_id("x", value << 20, bytes([value] * 10))[2:] for value in range(256)}

    assert not set("ilou") & set("".join(names))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("j", True),
        ("job 1/\N{SNOWMAN}", True),
        ("x" * NAME_CHARACTERS_MAX, True),
        ("x" * (NAME_CHARACTERS_MAX + 1), False),
        ("", False),
        ("a\nb", False),
        ("a\x00", False),
        ("\x1b[2J", False),
        ("\N{RIGHT-TO-LEFT OVERRIDE}x", False),
        ("\ud800", False),
    ],
)
def test_names_from_outside(text: str, expected: bool) -> None:
    """A name is short and printable, so that no store, header, log or terminal minds it."""
    assert expected == is_name(text)
