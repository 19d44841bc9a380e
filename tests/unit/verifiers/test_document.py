"""The body, read with suspicion."""

import json
import sys

import pytest

from verifiers.document import BYTES_MAX, DEPTH_MAX, PARTS_MAX, Document, Readability


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"a":{"b":1},"c":{"b":1}}',
        b'[{"a":1},{"a":2}]',
        b'{"Aa":1,"Ab":2}',
        b'{"\\u0061":1,"b":2}',
        b' {"a" : "}{][" } ',
        b"[" * DEPTH_MAX + b"]" * DEPTH_MAX,
        b'["' + b"[" * 5000 + b'"]',
        b'["' + b'\\"[' * 5000 + b'"]',
    ],
)
def test_plain_json_is_readable(body: bytes) -> None:
    """Keys may repeat in different objects, and brackets in strings are no nesting."""
    assert Document(body).state == Readability.READABLE


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":1}',
        b'{"a":1,"\\u0061":2}',
        b'{"a":1,"A":2}',
        b'{"x":[{"status":1,"\xc5\xbftatus":2}]}',
        b'{"k":1,"\xe2\x84\xaa":2}',
        '{"straße":1,"STRASSE":2}'.encode(),
    ],
)
def test_a_key_twice_is_ambiguous(body: bytes) -> None:
    """F17, SC-35: the same key, escaped, in another case, or with letters that fold together."""
    assert Document(body).state == Readability.AMBIGUOUS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nope",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1}x',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":"\xff"}',
        '{"a":1}'.encode("utf-16-le"),
        '{"a":1}'.encode("utf-32"),
        b'{"a":"\x01"}',
        b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1),
        b'{"a":' * 100_000,
        b'["]",' * 500 + b'"["]' * 500,
    ],
)
def test_what_is_not_bounded_json_is_unreadable(body: bytes) -> None:
    """SC-36: NaN, other encodings, deep nesting and plain rubbish give a state, no exception."""
    assert Document(body).state == Readability.UNREADABLE


def test_depth_does_not_depend_on_the_caller() -> None:
    """SC-36: deep in the stack the same body is as readable as at its top."""
    body = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX

    def at_depth(levels: int) -> Readability:
        return at_depth(levels - 1) if levels else Document(body).state

    assert at_depth(sys.getrecursionlimit() // 2) == Readability.READABLE


def test_strings_cannot_hide_depth() -> None:
    """Closing brackets in strings do not make a deep body look shallow."""
    deep = b'["]",' * 500 + b"0" + b"]" * 500

    assert len(json.loads(b'["]",' * 50 + b"0" + b"]" * 50)) == 2
    assert Document(deep).state == Readability.UNREADABLE


def test_a_body_over_the_cap_is_not_parsed() -> None:
    """SC-54: the event loop is not held by a parse of a huge body."""
    assert Document(b'"' + b"x" * BYTES_MAX + b'"').state == Readability.UNREADABLE


@pytest.mark.parametrize("piece", [b"{}", b"[]", b"1", b'"\\n"'])
def test_a_body_of_too_many_parts_is_not_parsed(piece: bytes) -> None:
    """SC-54: what a parse costs is bounded by what is in a body, not only by its bytes."""
    few, many = ([piece] * count for count in (PARTS_MAX // 4, PARTS_MAX))
    assert Document(b"[" + b",".join(few) + b"]").state == Readability.READABLE
    assert Document(b"[" + b",".join(many) + b",1]").state == Readability.UNREADABLE


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        (("id",), "evt_1"),
        (("data", "n"), "9007199254740993"),
        (("data", "f"), "1.10"),
        (("items", "1", "id"), "b"),
        (("",), "empty"),
        (("items", "01", "id"), None),
        (("items", "-1", "id"), None),
        (("items", "２", "id"), None),  # noqa: RUF001  # full width on purpose
        (("items", "2"), None),
        (("items", "9" * 5000), None),
        (("data",), None),
        (("yes",), None),
        (("nothing",), None),
        (("id", "x"), None),
        (("absent",), None),
    ],
)
def test_a_pointer_gives_text_or_nothing(pointer: tuple[str, ...], expected: str | None) -> None:
    """Strings and numbers are text as written; everything else is nothing."""
    body = b"""{"id":"evt_1","data":{"n":9007199254740993,"f":1.10},"items":[{"id":"a"},{"id":"b"}],
               "":"empty","yes":true,"nothing":null}"""

    assert expected == Document(body).at(pointer)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"at":1,"x":2,"x":3}', "1"),
        (b'{"at":1,"x":{"y":2,"Y":3}}', "1"),
        (b'{"at":1,"At":2}', None),
        (b'{"at":1,"at":1}', None),
        (b'{"at":1,"x":2,"x":3} tail', None),
        (b'[{"x":2,"x":3}', None),
        (b'{"at":1}', "1"),
        (b"\xff", None),
    ],
)
def test_what_all_readers_agree_on_is_certain(body: bytes, expected: str | None) -> None:
    """A key that stands twice elsewhere leaves a value certain; broken JSON leaves none."""
    assert Document(body).certain(("at",)) == expected
