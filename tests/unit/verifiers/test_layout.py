"""How signatures stand in a value."""

import base64

import pytest

from verifiers.layout import VALUE_BYTES_MAX, Entries, Kind, Layout

PAIRS = Layout(Kind.PAIRS)
LIST = Layout(Kind.LIST, separator=b" ", equals=b",")
PADDLE = Layout(Kind.PAIRS, separator=b";")
SPACED = Layout(Kind.PAIRS, spaces=True)
SINCH = Layout(Kind.PAIRS, b"application ", equals=b":")
RECURLY = Layout(Kind.POSITIONAL, first=b"t")
PLIVO = Layout(Kind.PLAIN_LIST)
EBAY = Layout(Kind.JSON_BASE64)


def ebay(text: bytes) -> bytes:
    """Return a value as eBay writes it."""
    return base64.b64encode(text)


@pytest.mark.parametrize(
    ("layout", "value", "expected"),
    [
        (Layout(Kind.BARE, b"sha256="), b"sha256=ab", [(b"", b"ab")]),
        (Layout(Kind.BARE, b"sha256="), b"ab", []),
        (Layout(Kind.BARE), b"ab", [(b"", b"ab")]),
        (PAIRS, b"t=1,v1=ab,v1=cd", [(b"t", b"1"), (b"v1", b"ab"), (b"v1", b"cd")]),
        (PAIRS, b"t,v1=a=b,=,", [(b"v1", b"a=b"), (b"", b"")]),
        (PAIRS, b"t=1, v1=ab", [(b"t", b"1"), (b" v1", b"ab")]),
        (SPACED, b"t=1, v1=ab", [(b"t", b"1"), (b"v1", b"ab")]),
        (PADDLE, b"ts=1;h1=ab", [(b"ts", b"1"), (b"h1", b"ab")]),
        (PADDLE, b"ts=1,h1=ab", [(b"ts", b"1,h1=ab")]),
        (SINCH, b"application k:ab", [(b"k", b"ab")]),
        (SINCH, b"k:ab", []),
        (LIST, b"v1,ab v1a,cd", [(b"v1", b"ab"), (b"v1a", b"cd")]),
        (LIST, b" v1 v1,a,b", [(b"v1", b"a,b")]),
        (LIST, b"v1,ab ", []),
        (LIST, b"", []),
        (RECURLY, b"1,ab,cd", [(b"t", b"1"), (b"", b"ab"), (b"", b"cd")]),
        (RECURLY, b"1ab", [(b"t", b"1ab")]),
        (PLIVO, b"ab,cd", [(b"", b"ab"), (b"", b"cd")]),
        (EBAY, ebay(b'{"kid":"k","n":1,"x":[]}'), [(b"kid", b"k"), (b"n", b"1")]),
        (EBAY, ebay(b'{"kid":"k","kid":"l"}'), []),
        (EBAY, ebay(b"[1]"), []),
        (EBAY, b"zzzz!", []),
    ],
)
def test_a_value_is_cut_into_entries(layout: Layout, value: bytes, expected: Entries) -> None:
    """F05: a piece without its separator is no entry, and spoils none."""
    assert expected == layout.entries(value)


@pytest.mark.parametrize("kind", list(Kind))
def test_a_value_over_the_cap_is_not_cut(kind: Kind) -> None:
    """SC-12: the work on one header is bounded."""
    assert Layout(kind).entries(b"v1,a=" + b"b" * VALUE_BYTES_MAX) == []


@pytest.mark.parametrize("layout", [PAIRS, LIST, PADDLE, SINCH, EBAY])
def test_what_is_composed_is_cut_again(layout: Layout) -> None:
    """Composing is the mirror of cutting."""
    pairs = [(b"v1", b"ab"), (b"v2", b"cd")]

    assert pairs == layout.entries(layout.compose(pairs))


@pytest.mark.parametrize("layout", [RECURLY, PLIVO, Layout(Kind.BARE, b"x=")])
def test_what_is_composed_without_labels_is_cut_again(layout: Layout) -> None:
    """Composing is the mirror of cutting where only the place says what is what."""
    pairs = [(layout.first, b"ab")]

    assert pairs == layout.entries(layout.compose(pairs))
