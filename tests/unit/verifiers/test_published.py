"""Which address a request's keys may be fetched from, and what may stand there."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.key_server import SigningKey, jwks
from verifiers.preset import Preset, load_preset
from verifiers.published import KEYS_MAX, address, key_ids, trusted_address
from verifiers.request import RawRequest

SNS = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-01d0.pem"
PAYPAL = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42"
SIGNING = SigningKey("k1")


def sns(url: Any) -> RawRequest:
    """Return a message that names the address of its certificate."""
    return RawRequest(
        "POST", "https://a.test/in/x", (), json.dumps({"SigningCertURL": url}).encode()
    )


def fal() -> Preset:
    """Return a preset with an address of its own."""
    return load_preset("fal")


def test_an_address_of_the_preset_is_the_same_for_every_request() -> None:
    """Where the preset knows the address, nothing in a request has a say."""
    published = fal().published
    assert published is not None
    assert published.url == address(sns(SNS), fal())


def test_an_address_in_the_message() -> None:
    """An address that is the provider's as a whole is taken as it is."""
    headers = ((b"paypal-cert-url", PAYPAL.encode()),)

    assert address(sns(SNS), load_preset("aws-sns")) == SNS
    assert address(RawRequest("POST", "/", headers, b"{}"), load_preset("paypal")) == PAYPAL


@pytest.mark.parametrize(
    "url",
    [
        SNS.replace("https", "http"),
        SNS.replace(".com/", ".com:444/"),
        SNS.replace(".com/", ".com.evil.test/"),
        SNS.replace("sns.", "user@sns."),
        SNS.replace("sns.", "evil.test/sns."),
        SNS.replace("sns.eu-west-1.", "sns.evil.test#."),
        SNS.replace("amazonaws.com", "amazonaws-com.test"),
        SNS.replace("amazonaws.com", "amazonawsxcom"),
        SNS + "?x=1",
        SNS + "\n",
        " " + SNS,
        SNS.replace("Simple", "../Simple"),
        SNS.replace("01d0", "0" * 3000),
        SNS.replace("sns", "\u0455ns"),
        "",
        None,
        7,
        [SNS],
    ],
)
def test_an_address_that_is_not_sure_is_none(url: Any) -> None:
    """Look-alike hosts, plain http, ports, users and the rest are never asked (F18, SC-16)."""
    assert address(sns(url), load_preset("aws-sns")) is None


def test_an_address_that_is_named_twice_is_none() -> None:
    """A request that names two addresses names none."""
    body = f'{{"SigningCertURL": "{SNS}", "SigningCertURL": "{SNS}"}}'.encode()

    assert address(RawRequest("POST", "/", (), body), load_preset("aws-sns")) is None


def test_a_preset_without_published_keys_has_no_address() -> None:
    """Nothing is ever fetched for a provider that publishes nothing."""
    assert address(sns(SNS), load_preset("stripe")) is None


def test_a_fixed_address_is_exact() -> None:
    """A document from another address than the preset's, or only like it, is not the preset's."""
    named = load_preset("aws-sns").published
    assert named is not None
    assert trusted_address(named, SNS)
    assert not trusted_address(named, SNS + "?x=1")
    published = fal().published
    assert published is not None
    assert trusted_address(published, published.url)
    assert not trusted_address(published, published.url + "/")


def test_key_ids() -> None:
    """The keys of a set are found by their names, those of other kinds are passed over."""
    keys = json.loads(jwks(SIGNING, SigningKey("k2")))["keys"]
    content = json.dumps({"keys": [*keys, {"kty": "oct", "k": "AA", "kid": "k3"}]}).encode()

    assert key_ids(fal(), "https://x.test", content) == ("k1", "k2")


GOOD = SIGNING.jwk()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"\xff\xfe",
        b"[]",
        b"null",
        b'{"keys": {}}',
        b'{"keys": [7]}',
        b'{"keys": null}',
        b'{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": 7}]}',
        b"[" * 100_000,
        json.dumps({"keys": [{**GOOD, "kid": 7}]}).encode(),
        json.dumps({"keys": [{**GOOD, "kid": "\ud800"}]}).encode(),
        json.dumps({"keys": [{**GOOD, "kid": "a\nb"}]}).encode(),
        json.dumps({"keys": [{**GOOD, "x": GOOD["x"] + "AAAA"}]}).encode(),
        json.dumps({"keys": [GOOD] * (KEYS_MAX + 1)}).encode(),
        pytest.param(json.dumps(GOOD).encode(), id="a key without its set"),
    ],
)
def test_garbage_has_no_keys(content: bytes) -> None:
    """Whatever is not exactly a set of keys is none, and never an exception."""
    assert key_ids(fal(), "https://x.test", content) == ()


@pytest.mark.parametrize("name", ["fal", "aws-sns", "paypal", "shipstation", "google-pubsub"])
@given(
    st.binary(max_size=200)
    | st.recursive(
        st.none() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["keys", "kid", "kty", "x", "n", "e", "crv"]), inner)
        ),
        max_leaves=9,
    ).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_judged(name: str, content: bytes) -> None:
    """No document whatsoever makes the judgement raise."""
    assert isinstance(key_ids(load_preset(name), SNS, content), tuple)
