"""The answers of the public listener: complete messages that say nothing more than they must."""

import json

import pytest

from gateway import answers
from gateway.answers import Answer
from verifiers.preset import Ack

PROBLEMS = {
    401: answers.REFUSED,
    404: answers.UNKNOWN_SOURCE,
    405: answers.WRONG_METHOD,
    413: answers.TOO_LARGE,
    415: answers.UNSUPPORTED,
    503: answers.UNAVAILABLE,
}


def headers(answer: Answer) -> dict[bytes, bytes]:
    """Return an answer's headers, none of which may stand twice."""
    pairs = answer.start["headers"]
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("status", PROBLEMS)
def test_a_refusal_is_a_problem_document(status: int) -> None:
    """Status, length and media type fit, and the document holds nothing but the status."""
    answer = PROBLEMS[status]
    document = json.loads(answer.body["body"])
    assert answer.start["status"] == status
    assert sorted(document) == ["status", "title", "type"]
    assert document["status"] == status
    assert headers(answer)[b"content-type"] == b"application/problem+json"
    assert headers(answer)[b"content-length"] == str(len(answer.body["body"])).encode()


@pytest.mark.parametrize(
    ("status", "name"), [(401, b"www-authenticate"), (405, b"allow"), (503, b"retry-after")]
)
def test_a_refusal_says_what_http_wants_of_it(status: int, name: bytes) -> None:
    """RFC 9110 asks for a challenge, the methods, and R4 for a time to come back."""
    assert headers(PROBLEMS[status])[name]


@pytest.mark.parametrize("status", [405, 413, 415])
def test_an_unread_body_ends_the_connection(status: int) -> None:
    """What is refused before its body was read must not be taken for the next request."""
    assert headers(PROBLEMS[status])[b"connection"] == b"close"


@pytest.mark.parametrize(
    ("ack", "status", "body", "expected"),
    [
        (
            Ack(200, b"ok", "text/plain"),
            200,
            b"ok",
            {b"content-type": b"text/plain", b"content-length": b"2"},
        ),
        (Ack(200, b"", None), 200, b"", {b"content-length": b"0"}),
        (Ack(204, b"", None), 204, b"", {}),
    ],
)
def test_the_acknowledgement_is_what_the_provider_expects(
    ack: Ack, status: int, body: bytes, expected: dict[bytes, bytes]
) -> None:
    """Status, body and type are the preset's; 204 has neither body nor length."""
    answer = answers.acknowledgement(ack)
    assert (answer.start["status"], answer.body["body"]) == (status, body)
    assert headers(answer) == expected
