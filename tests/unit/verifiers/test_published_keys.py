"""Keys that a provider publishes, and what a request may say about them."""

import json
from dataclasses import replace

import pytest

from tests.support.vectors import vectors
from verifiers.keys import (
    KeyRing,
    PublishedDocument,
    SecretError,
    build_key_ring,
    shared_keys,
    with_published,
)
from verifiers.preset import load_preset
from verifiers.vectors import Vector
from verifiers.verdict import Reason, Rejected, Verified
from verifiers.verify import verify

ALL = list(vectors())


def first(slug: str) -> Vector:
    """Return the first accepted vector of a provider."""
    return next(v for v in ALL if v.slug == slug and v.accept)


def fal(*documents: str) -> KeyRing:
    """Return the ring of a source of fal.ai with these sets fetched."""
    preset = load_preset("fal")
    found = [PublishedDocument(None, text) for text in documents]
    return with_published(build_key_ring(preset, []), preset, found)


def jwks(slug: str) -> str:
    """Return the set of keys of a provider's vector."""
    return json.dumps(first(slug).key["jwks"])


def test_published_keys_need_no_secret() -> None:
    """A source may start without any key where the provider publishes them; nothing is accepted."""
    vector, preset = first("fal"), load_preset("fal")

    assert Rejected(Reason.KEY_UNKNOWN) == verify(
        vector.request, preset, build_key_ring(preset, []), vector.now
    )


def test_a_fetched_set_makes_requests_acceptable() -> None:
    """Each key of a set without names is tried."""
    vector = first("fal")

    assert isinstance(
        verify(vector.request, load_preset("fal"), fal(jwks("fal")), vector.now), Verified
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"keys":[]}',
        '{"keys":{}}',
        '{"keys":[1,null,{"kty":"EC"},{"kty":"OKP","crv":"Ed25519","x":1}]}',
        '{"keys":[{"kid":1,"kty":"RSA","n":"AQAB","e":"AQAB"}]}',
        "[" * 9999,
        '{"keys":' + "[" * 9999,
    ],
)
def test_a_broken_set_holds_no_key(text: str) -> None:
    """Whatever was fetched never raises; it makes nothing acceptable."""
    assert fal(text).keys == ()


def test_pems_by_name_are_keys_by_name() -> None:
    """Google publishes certificates, and Dyte a key, as the members of an object."""
    pem = first("wise").key["public_key_pem"]
    preset = load_preset("dyte")
    document = PublishedDocument(None, json.dumps({"k1": pem, "note": "x"}))
    ring = with_published(build_key_ring(preset, []), preset, [document])

    assert [key.name for key in ring.keys] == [b"k1"]


def test_a_new_set_takes_the_place_of_the_old_one() -> None:
    """What is no longer published is no longer believed."""
    preset, ring = load_preset("fal"), fal(jwks("fal"))
    emptied = with_published(ring, preset, [PublishedDocument(None, '{"keys":[]}')])

    assert emptied.keys == ()


def test_a_set_that_everybody_holds_is_no_shared_key() -> None:
    """SC-04: two sources of one provider with published keys are not a mistake."""
    assert shared_keys({"a": fal(jwks("fal")), "b": fal(jwks("fal"))}) == []


def paypal(url: str, webhook_id: str = "1JE4291016473214C") -> KeyRing:
    """Return the ring of a source of PayPal with the certificate at `url` fetched."""
    preset = load_preset("paypal")
    ring = build_key_ring(preset, [("k1", webhook_id, None, None)])
    pem = first("paypal").key["certificate_pem"]
    return with_published(ring, preset, [PublishedDocument(url, pem)])


URL = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270"


def test_a_fetched_certificate_is_tied_to_what_the_operator_gave() -> None:
    """The webhook id is the operator's, the certificate the provider's; both are needed."""
    vector, preset = first("paypal"), load_preset("paypal")
    good = verify(vector.request, preset, paypal(URL), vector.now)

    assert isinstance(good, Verified)
    assert good.weak  # a CRC is all that covers the body
    assert Rejected(Reason.SIGNATURE_MISMATCH) == verify(
        vector.request, preset, paypal(URL, "ANOTHER"), vector.now
    )


def test_a_certificate_of_another_address_is_not_tried() -> None:
    """The request names the address of its key, and only that key counts."""
    vector = first("paypal")

    assert Rejected(Reason.KEY_UNKNOWN) == verify(
        vector.request, load_preset("paypal"), paypal(URL + "x"), vector.now
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://api.paypal.com/v1/notifications/certs/CERT-1",
        "https://api.paypal.com.evil.test/v1/notifications/certs/CERT-1",
        "https://evil.test/https://api.paypal.com/v1/notifications/certs/CERT-1",
        "https://apixpaypal.com/v1/notifications/certs/CERT-1",
        "https://api.paypal.com/v1/notifications/certs/CERT-1\n",
        "https://api.paypal.com@evil.test/v1/notifications/certs/CERT-1",
        "",
    ],
)
def test_a_foreign_address_is_refused_before_any_fetch(url: str) -> None:
    """F18: only the provider's own host, by https, in the form that it uses."""
    vector, name = first("paypal"), b"paypal-cert-url"
    headers = tuple((n, url.encode() if n == name else v) for n, v in vector.request.headers)
    found = verify(
        replace(vector.request, headers=headers), load_preset("paypal"), paypal(URL), vector.now
    )

    assert Rejected(Reason.KEY_URL_UNTRUSTED) == found


def test_a_key_of_another_name_is_not_tried() -> None:
    """A token names its key; another one is not tried, and the reason says so."""
    vector = next(v for v in ALL if v.slug == "plaid" and v.name == "reject-unknown-kid")

    assert Rejected(Reason.KEY_UNKNOWN) == verify(
        vector.request, vector.preset(), vector.keys(), vector.now
    )


@pytest.mark.parametrize("name", ["mollie-classic", "gumroad"])
def test_what_nobody_signs_needs_the_operators_word(name: str) -> None:
    """A source of an unsigned provider does not start by itself, and takes no key."""
    preset = load_preset(name)

    with pytest.raises(SecretError, match="accept_unverified"):
        build_key_ring(preset, [])
    with pytest.raises(SecretError, match="signs nothing"):
        build_key_ring(preset, [("k", "x" * 20, None, None)], accept_unverified=True)


def test_what_nobody_signs_is_a_weak_and_flagged_event() -> None:
    """Its verdict says that nobody signed it."""
    vector, preset = first("mollie-classic"), load_preset("mollie-classic")
    ring = build_key_ring(preset, [], accept_unverified=True)
    found = verify(vector.request, preset, ring, vector.now)

    assert isinstance(found, Verified)
    assert (found.weak, "unsigned" in found.flags, found.event_key.kind) == (True, True, "weak")
    closed = replace(ring, unverified=False)
    assert isinstance(verify(vector.request, preset, closed, vector.now), Rejected)
