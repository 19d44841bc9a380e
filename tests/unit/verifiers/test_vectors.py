"""Vector files are read strictly."""

import json
from typing import Any

import pytest

from tests.support.vectors import files
from verifiers.vectors import VectorError, failures, parse_vectors


def file() -> dict[str, Any]:
    """Return the text of a vector file as a document."""
    text = next(f for f in files() if f.stem == "github").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    found["vectors"] = found["vectors"][:1]
    return found


def test_a_wrong_verdict_is_reported() -> None:
    """A vector that says accept and is refused fails with the reason, and the other way round."""
    document = file()
    document["vectors"] += [{**document["vectors"][0], "expect": "reject"}]
    document["vectors"] += [{**document["vectors"][0], "headers": []}]

    found = [failure for _, failure in failures(parse_vectors(json.dumps(document), "f"))]

    assert found == [
        "accepted, must be refused",
        "refused (signature_missing), must be accepted",
    ]


def test_an_unknown_preset_is_a_failure() -> None:
    """A file about a provider that we do not know fails, it is not skipped."""
    document = {**file(), "slug": "nobody"}

    ((_, failure),) = failures(parse_vectors(json.dumps(document), "f"))

    assert "'nobody' is unknown" in failure


@pytest.mark.parametrize(
    "change",
    [
        {"expect": "maybe"},
        {"key": {"secret": "x"}},
        {"body_base64": "%%%"},
        {"headers": [["only-a-name"]]},
        {"now": None},
    ],
)
def test_what_is_not_understood_is_an_error(change: dict[str, Any]) -> None:
    """A vector outside the format names the file, it is not skipped."""
    document = file()
    document["vectors"][0].update(change)

    with pytest.raises(VectorError, match=r"^f\.json: "):
        parse_vectors(json.dumps(document), "f.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"slug": "github"}', "[" * 100_000])
def test_another_file_is_an_error(text: str) -> None:
    """Any other file is refused with its name."""
    with pytest.raises(VectorError, match=r"^f\.json: not a vector file"):
        parse_vectors(text, "f.json")


def test_header_values_are_bytes() -> None:
    """A value beyond latin-1 is its UTF-8 bytes, as it would come over the wire."""
    document = file()
    document["vectors"][0]["headers"] += [["X-Name", "caf\u00e9"], ["X-Sign", "\u2713"]]
    (vector,) = parse_vectors(json.dumps(document), "f")

    assert vector.request.values(b"x-name") == [b"caf\xe9"]
    assert vector.request.values(b"x-sign") == [b"\xe2\x9c\x93"]
