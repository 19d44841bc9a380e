"""How signatures stand in a value."""

import pytest

from verifiers.layout import VALUE_BYTES_MAX, Entries, Layout, compose, entries


@pytest.mark.parametrize(
    ("layout", "prefix", "value", "expected"),
    [
        (Layout.BARE, b"sha256=", b"sha256=ab", [(b"", b"ab")]),
        (Layout.BARE, b"sha256=", b"ab", []),
        (Layout.BARE, b"", b"ab", [(b"", b"ab")]),
        (Layout.PAIRS, b"", b"t=1,v1=ab,v1=cd", [(b"t", b"1"), (b"v1", b"ab"), (b"v1", b"cd")]),
        (Layout.PAIRS, b"", b"t,v1=a=b,=,", [(b"v1", b"a=b"), (b"", b"")]),
        (Layout.LIST, b"", b"v1,ab v1a,cd", [(b"v1", b"ab"), (b"v1a", b"cd")]),
        (Layout.LIST, b"", b" v1 v1,a,b", [(b"v1", b"a,b")]),
        (Layout.LIST, b"", b"v1,ab ", []),
        (Layout.LIST, b"", b"", []),
    ],
)
def test_a_value_is_cut_into_entries(
    layout: Layout, prefix: bytes, value: bytes, expected: Entries
) -> None:
    """F05: a piece without its separator is no entry, and spoils none."""
    assert expected == entries(layout, prefix, value)


@pytest.mark.parametrize("layout", list(Layout))
def test_a_value_over_the_cap_is_not_cut(layout: Layout) -> None:
    """SC-12: the work on one header is bounded."""
    assert entries(layout, b"", b"v1,a=" + b"b" * VALUE_BYTES_MAX) == []


@pytest.mark.parametrize("layout", [Layout.PAIRS, Layout.LIST])
def test_what_is_composed_is_cut_again(layout: Layout) -> None:
    """Composing is the mirror of cutting."""
    pairs = [(b"v1", b"ab"), (b"v2", b"cd")]

    assert pairs == entries(layout, b"", compose(layout, b"", pairs))
