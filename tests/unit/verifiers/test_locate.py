"""Locators: one grammar for everything that points into a request."""

import pytest

from tests.support.vectors import request
from verifiers.document import Document
from verifiers.locate import LocatorError, parse_locator

BODY = b'{"data":{"id":"job_1","a/b":"slash","m~n":"tilde"}}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("body:/data/id", "job_1"),
        ("body:/data/a~1b", "slash"),
        ("body:/data/m~0n", "tilde"),
        ("body:/data/none", None),
        ("header:x-job", "job_2"),
        ("header:x-twice", None),
        ("header:x-none", None),
        ("header:x-latin", None),
    ],
)
def test_a_locator_reads_one_value(text: str, expected: str | None) -> None:
    """A header counts when it stands once and is ASCII; a pointer follows RFC 6901."""
    headers = [(b"x-job", b"job_2"), (b"x-twice", b"a"), (b"x-twice", b"a"), (b"x-latin", b"\xe9")]
    given = request(headers, BODY)

    assert expected == parse_locator(text).read(given, Document(given.body))


def test_one_document_serves_many_locators() -> None:
    """A body is parsed once, however many values are read from it."""
    document = Document(BODY)
    first = parse_locator("body:/data/id").read(request([], BODY), document)
    root = document._root

    assert first == "job_1"
    assert document.at(("data", "a/b")) == "slash"
    assert root is document._root


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id",
        "query:",
        "query:a b",
        "form:a#b",
        "signature:a#/b",
        "cookie:x",
        "header:",
        "header:X-Job",
        "header:a b",
        "body:",
        "body:id",
        "body:/a~2",
        "body:/a~",
    ],
)
def test_a_wrong_locator_is_refused(text: str) -> None:
    """What is outside the grammar is an error when it is read, not a value that is never found."""
    with pytest.raises(LocatorError):
        parse_locator(text)
