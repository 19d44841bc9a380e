"""Every registration challenge that we know of gets exactly the answer its provider wants."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from verifiers.handshake import HandedOver, Outcome, Refused, Reply, ToConfirm, meet
from verifiers.keys import KeyRing, PublishedDocument, build_key_ring, with_published
from verifiers.preset import Preset, load_preset
from verifiers.request import RawRequest
from verifiers.vectors import secret_text
from verifiers.verdict import Verified
from verifiers.verify import verify

NOW = 1_780_000_000
CASES = json.loads(Path(__file__).with_name("handshakes.json").read_text())
_SETTINGS = ("verify_token", "verification_token", "topics", "allowed_origins")
#: Ordinary events whose acknowledgement has a text of its own.
_EVENTS = {"dropbox-sign", "alipay"}
_TOKEN = {"type": "shared_token", "secret": "a-secret-that-plays-no-part"}
_TYPES = {"discord": "ed25519_public_key", "braintree": "braintree_keys"}


def _id(case: dict[str, Any]) -> str:
    return f"{case['slug']}/{case['name']}"


def _request(case: dict[str, Any]) -> RawRequest:
    found = case["request"]
    headers = tuple((name.lower().encode(), value.encode()) for name, value in found["headers"])
    body = base64.b64decode(found["body_base64"])
    return RawRequest(found["method"], found["url"], headers, body)


def _settings(case: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    found = {name: case["config"][name] for name in _SETTINGS if name in case["config"]}
    return {name: (v,) if isinstance(v, str) else tuple(v) for name, v in found.items()}


def _keys(case: dict[str, Any], preset: Preset) -> KeyRing:
    """Return the key of the configuration, or one that plays no part."""
    config = case["config"]
    if preset.unsigned:
        return build_key_ring(preset, [], accept_unverified=True)
    if config.get("type") == "x509_certificate":
        document = json.loads(_request(case).body)
        published = PublishedDocument(document["SigningCertURL"], config["certificate_pem"])
        return with_published(build_key_ring(preset, []), preset, [published])
    if case["slug"] == "ebay":
        return KeyRing((), {}, timeless=True)  # its proof is a digest without a key
    if "encrypt_key" in config:
        text = config["encrypt_key"]
    elif set(config) <= set(_SETTINGS):
        text = "0123456789abcdef" * 4
    else:
        text = secret_text(preset, {"type": _TYPES.get(case["slug"], "hmac_secret"), **config})
    return build_key_ring(preset, [("k1", text, None, None)], allow_short=True)


def _met(case: dict[str, Any]) -> Outcome | None:
    preset = load_preset(case["slug"])
    return meet(_request(case), preset, _keys(case, preset), _settings(case), NOW)


def _reply(outcome: Outcome | None) -> Reply:
    """Return what is sent: a refusal has a status only, and a secret that is awaited its answer."""
    if isinstance(outcome, HandedOver):
        return outcome.reply
    if isinstance(outcome, Refused):
        return Reply(outcome.status, (), b"")
    assert isinstance(outcome, Reply), outcome
    return outcome


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["slug"] not in _EVENTS and c["slug"] != "aws-sns"], ids=_id
)
def test_a_challenge_is_answered_exactly(case: dict[str, Any]) -> None:
    """Status, body, JSON, content type and headers are those the provider documents (F28)."""
    expected, reply = case["expect_response"], _reply(_met(case))
    headers = {name.decode(): value.decode() for name, value in reply.headers}
    statuses = expected["status"] if isinstance(expected["status"], list) else [expected["status"]]

    assert reply.status in statuses
    if "body" in expected:
        assert expected["body"] == reply.body.decode()
    if "json" in expected:
        assert expected["json"] == json.loads(reply.body)
        assert headers["content-type"] == "application/json"
    if "content_type" in expected:
        assert expected["content_type"] == headers["content-type"]
    if "must_have_header" in expected:
        name, value = expected["must_have_header"]
        assert value == headers[name.lower()]
    wanted = {name.lower(): value for name, value in expected.get("headers", {}).items()}
    assert wanted == {name: headers.get(name) for name in wanted}
    assert not {name.lower() for name in expected.get("absent_headers", ())} & set(headers)


@pytest.mark.parametrize("case", [c for c in CASES if c["slug"] in _EVENTS], ids=_id)
def test_an_event_is_acknowledged_with_the_words_its_provider_wants(case: dict[str, Any]) -> None:
    """Alipay and Dropbox Sign read the body of the answer; it stands in the preset."""
    expected, preset = case["expect_response"], load_preset(case["slug"])
    verdict = verify(_request(case), preset, _keys(case, preset), NOW)

    assert isinstance(verdict, Verified)
    assert _met(case) is None
    assert expected["status"] == preset.ack.status
    assert expected.get("body", expected.get("body_contains")) == preset.ack.body.decode()


def test_a_subscription_is_left_to_a_person() -> None:
    """SNS's confirmation is verified, nothing is fetched, and it goes on as an event (F33)."""
    [case] = [c for c in CASES if c["slug"] == "aws-sns"]
    preset = load_preset("aws-sns")

    assert isinstance(_met(case), ToConfirm)
    assert isinstance(verify(_request(case), preset, _keys(case, preset), NOW), Verified)
    assert case["expect_response"]["status"] == preset.ack.status
