"""The journal's encoding: one fact, one encoding, and back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.domain.journal import Value, decode, encode

_NAMES = st.text(st.characters(max_codepoint=127), max_size=40)
_VALUES = st.none() | st.integers(-(2**63), 2**63 - 1) | st.binary() | st.text()
_FACTS = st.tuples(_NAMES, st.dictionaries(_NAMES, _VALUES, max_size=6))


@given(_FACTS)
@example(("k", {"lone surrogate": "\ud800", "NUL": "\0", "empty": "", "none": None, "least": -1}))
def test_round_trip(fact: tuple[str, dict[str, Value]]) -> None:
    """What was encoded is decoded again, type by type."""
    kind, fields = decode(encode(*fact))

    assert fact == (kind, fields)
    assert [type(fact[1][name]) for name in fields] == [type(value) for value in fields.values()]


@given(_FACTS, _FACTS)
@example(("a", {"b": "1"}), ("a", {"b": b"1"}))
@example(("a", {"b": "", "c": None}), ("a", {"b": None, "c": ""}))
@example(("a", {"bc": "d"}), ("a", {"b": "cd"}))
def test_injective(one: tuple[str, dict[str, Value]], other: tuple[str, dict[str, Value]]) -> None:
    """Two facts never share an encoding."""
    assert (one == other) == (encode(*one) == encode(*other))


def test_order_of_fields_is_no_difference() -> None:
    """Fields stand in the order of their names, however they were given."""
    assert encode("k", {"a": 1, "b": 2}) == encode("k", {"b": 2, "a": 1})


def test_format() -> None:
    """The bytes are as the module's text says: entries are hashed, so they never change."""
    entry = encode("event.accepted", {"n": 258, "s": "h\u00e9", "b": b"\x00\xff", "z": None})

    assert entry == (
        b"\x01\x0eevent.accepted\x00\x04"
        b"\x01bB\x00\x00\x00\x02\x00\xff"
        b"\x01nI\x00\x00\x00\x00\x00\x00\x01\x02"
        b"\x01sS\x00\x00\x00\x03h\xc3\xa9"
        b"\x01zN"
    )


@given(st.binary(max_size=60))
def test_decode_is_strict(data: bytes) -> None:
    """Whatever decodes is exactly what `encode` makes of it; all else is a ValueError."""
    try:
        kind, fields = decode(data)
    except ValueError:
        return
    assert encode(kind, fields) == data


@given(_FACTS, st.data())
def test_cut_or_lengthened(fact: tuple[str, dict[str, Value]], data: st.DataObject) -> None:
    """An entry that lost its end, or got something behind it, does not decode."""
    entry = encode(*fact)
    cut = data.draw(st.integers(0, len(entry) - 1))

    for wrong in (entry[:cut], entry + b"\x00"):
        with pytest.raises(ValueError, match=r"journal entry|codec"):
            decode(wrong)


@pytest.mark.parametrize(
    "entry",
    [
        b"",
        b"\x02\x01k\x00\x00",
        b"\x01\x01k\x00\x01\x01aX",
        # Fields out of order, and one field twice: not canonical.
        b"\x01\x01k\x00\x02\x01bN\x01aN",
        b"\x01\x01k\x00\x02\x01aN\x01aN",
    ],
)
def test_not_canonical(entry: bytes) -> None:
    """Another version, an unknown type and another order of fields are refused."""
    with pytest.raises(ValueError, match="journal entry"):
        decode(entry)
