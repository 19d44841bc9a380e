"""Explanations name what went wrong, and never give away a secret."""

import base64
import hmac
import json

import pytest

from tests.support.vectors import (
    BODY,
    NOW,
    OTHER_SECRET,
    SECRET,
    request,
    ring,
    signed,
    vectors,
    with_header,
)
from verifiers.explain import explain
from verifiers.keys import build_key_ring
from verifiers.near_miss import Finding
from verifiers.preset import load_preset
from verifiers.request import RawRequest
from verifiers.vectors import Vector
from verifiers.verify import verify


def findings(name: str, given: RawRequest, secret: str = SECRET, now: int = NOW) -> list[Finding]:
    """Return what is said about a request."""
    preset = load_preset(name)
    return explain(given, preset, ring(preset, secret), now, (secret,))


def said(name: str, given: RawRequest, secret: str = SECRET, now: int = NOW) -> str:
    """Return everything that is said about a request as one text."""
    return " | ".join(f"{f.seen} -> {f.fix}" for f in findings(name, given, secret, now))


def body_of(given: RawRequest, body: bytes) -> RawRequest:
    """Return the request with another body under the old signature."""
    return RawRequest(given.method, given.url, given.headers, body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (BODY + b"\n", "without the white space at its end"),
        (BODY[:-1], "another secret, or over other bytes"),
        (json.dumps(json.loads(BODY)).encode(), "another spelling of the same JSON"),
        (b"\xef\xbb\xbf" + BODY, "without its byte order mark"),
    ],
)
def test_a_changed_body_is_recognised(body: bytes, words: str) -> None:
    """F01: a line break, a re-serialised body or a byte order mark is named."""
    assert words in said("github", body_of(signed("github"), body))
    assert len(findings("github", body_of(signed("github"), body))) == 1


def test_a_lost_line_break_is_recognised() -> None:
    """A body that lost its last line break on the way to a file is named."""
    given = signed("github", BODY + b"\r\n")

    assert "with CRLF at its end" in said("github", body_of(given, BODY))


def test_a_renamed_header_is_recognised() -> None:
    """A signature under nearly the right name is named."""
    given = signed("stripe")
    other = with_header(
        with_header(given, b"stripe-signature"),
        b"x-stripe-signature",
        given.values(b"stripe-signature")[0],
    )

    assert "'x-stripe-signature'" in said("stripe", other)


def test_another_preset_is_recognised() -> None:
    """A signature header of another provider names its preset."""
    assert "the preset 'github'" in said("stripe", signed("github"))


def test_a_secret_in_another_form_is_recognised() -> None:
    """Quirk 10: the literal text used where the decoded secret is due, and the reverse, is named."""
    content = b"msg_1.%d." % NOW + BODY
    literal = base64.b64encode(hmac.new(SECRET.encode(), content, "sha256").digest())
    given = with_header(signed("standard-webhooks"), b"webhook-signature", b"v1," + literal)
    decoded = hmac.new(base64.b64decode(SECRET[6:]), b"%d." % NOW + BODY, "sha256").hexdigest()
    swapped = request([(b"stripe-signature", f"t={NOW},v1={decoded}".encode())])

    assert "read as utf8" in said("standard-webhooks", given)
    assert "read as base64 without its prefix" in said("stripe", swapped)


def test_the_clock_is_named_in_seconds() -> None:
    """A late request says by how much, and that its signature is right."""
    late = said("slack", signed("slack"), now=NOW + 400)
    early = said("slack", signed("slack"), now=NOW - 400)

    assert "made 400 s before now, 300 s are allowed" in late
    assert "made 400 s after now, 300 s are allowed" in early


def test_milliseconds_are_recognised() -> None:
    """A timestamp in the other unit is named."""
    assert "counts in milliseconds" in said("slack", signed("slack", at=NOW * 1000))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"v2,AAAA", "labels ['v2']"),
        (b"v1,AAAA,v1,AAAA", "separated by commas"),
        (b"v1,AAAA ", "white space"),
    ],
)
def test_a_misshapen_signature_is_described(value: bytes, words: str) -> None:
    """Versions, separators and white space are named."""
    given = with_header(signed("standard-webhooks"), b"webhook-signature", value)

    assert words in said("standard-webhooks", given)


def test_an_expired_key_is_named() -> None:
    """The old secret in use is told apart from a wrong one."""
    preset = load_preset("github")
    keys = build_key_ring(preset, [("old", SECRET, None, NOW - 1)])

    assert "has expired" in explain(signed("github"), preset, keys, NOW)[0].seen


def test_accepted_requests_explain_their_flags() -> None:
    """An accepted request has nothing to mend; a flag is put into words."""
    assert findings("stripe", signed("stripe")) == []
    assert "stands twice" in said("stripe", signed("stripe", b'{"id":"a","id":"b"}'))


@pytest.mark.parametrize("vector", [v for v in vectors() if not v.accept], ids=lambda v: v.name)
def test_every_refusal_is_explained_without_secrets(vector: Vector) -> None:
    """Every refused vector gets a finding; none holds the secret or an expected signature."""
    preset, keys = vector.preset(), vector.keys()
    before = verify(vector.request, preset, keys, vector.now)
    found = explain(vector.request, preset, keys, vector.now, (vector.secret,))
    text = " ".join(f.seen + f.fix for f in found)

    assert found
    assert len(vector.secret) < 12 or vector.secret not in text  # "other" is a word, too
    assert before == verify(vector.request, preset, keys, vector.now)
    assert len(found) == len(set(found))


def test_a_foreign_secret_is_not_taken_for_a_near_miss() -> None:
    """A forgery is called one: no near miss is invented."""
    (finding,) = findings("github", signed("github", secret=OTHER_SECRET))

    assert finding.seen == "the signature is made with another secret, or over other bytes"


def test_a_number_of_thousands_of_digits_is_no_obstacle() -> None:
    """SC-36: a body that the standard parser refuses is explained all the same."""
    body = b'{"id":' + b"9" * 5000 + b"}"

    assert "another secret, or over other bytes" in said("github", body_of(signed("github"), body))
