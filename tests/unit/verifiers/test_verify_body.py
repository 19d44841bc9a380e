"""A signature over fields or a URL does not make another kind of body true."""

import base64
import hashlib
import hmac
from dataclasses import replace

import pytest

from tests.support.vectors import SECRET, ring, vectors
from verifiers.locate import FIELDS_MAX
from verifiers.preset import load_preset
from verifiers.request import RawRequest
from verifiers.vectors import Vector
from verifiers.verdict import Reason, Rejected, Verified
from verifiers.verify import verify

NOW = 1_780_000_000
URL = "https://hooks.example.test/in/twilio?a=1"
FORM = (b"content-type", b"application/x-www-form-urlencoded")
JSON = (b"content-type", b"application/json")
ALL = list(vectors())


def bare(slug: str) -> Vector:
    """Return an accepted vector without a body."""
    return next(v for v in ALL if v.slug == slug and v.accept and not v.request.body)


def twilio(url: str, body: bytes, kind: tuple[bytes, bytes]) -> RawRequest:
    """Return a request whose signature is right for the URL alone."""
    mac = hmac.new(SECRET.encode(), url.encode(), hashlib.sha1).digest()
    signature = (b"x-twilio-signature", base64.b64encode(mac))
    return RawRequest("POST", url, (signature, kind), body)


@pytest.mark.parametrize("slug", ["plivo", "vonage-sms"])
@pytest.mark.parametrize("headers", [(JSON,), ()])
def test_a_signed_url_does_not_cover_a_json_body(
    slug: str, headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    """F12: a captured request without a body cannot be sent again with one beside its fields."""
    vector = bare(slug)
    request = vector.request
    kept = tuple(pair for pair in request.headers if pair[0] != b"content-type")
    other = replace(request, headers=(*kept, *headers), body=b'{"paid":true}')

    assert isinstance(verify(request, vector.preset(), vector.keys(), vector.now), Verified)
    assert Rejected(Reason.CONTENT_MISSING) == verify(
        other, vector.preset(), vector.keys(), vector.now
    )


def test_a_json_body_needs_its_hash_in_the_url() -> None:
    """F12: one captured URL does not authenticate any body: the hash must be there, and right."""
    preset, body = load_preset("twilio"), b'{"paid":true}'
    right = f"{URL}&bodySHA256={hashlib.sha256(body).hexdigest()}"
    keys = ring(preset, SECRET)

    assert isinstance(verify(twilio(right, body, JSON), preset, keys, NOW), Verified)
    for url in (URL, right + "0", right + "&bodySHA256=x"):
        assert Rejected(Reason.CONTENT_MISMATCH) == verify(
            twilio(url, body, JSON), preset, keys, NOW
        )


def test_a_form_that_cannot_be_read_is_not_an_empty_one() -> None:
    """F12: more fields than are read do not turn into none, which a signed URL would cover."""
    preset = load_preset("twilio")
    body = b"&".join([b"paid=1"] * (FIELDS_MAX + 1))

    assert Rejected(Reason.CONTENT_MISSING) == verify(
        twilio(URL, body, FORM), preset, ring(preset, SECRET), NOW
    )


def test_a_changed_body_of_a_checksum_makes_a_weak_event() -> None:
    """PayPal signs a CRC: whoever has one delivery can find another body, so none is believed."""
    vector = next(v for v in ALL if v.slug == "paypal" and v.accept)
    found = verify(vector.request, vector.preset(), vector.keys(), vector.now)

    assert isinstance(found, Verified)
    assert found.event_key.kind == "weak"
