"""Signing is the mirror of verifying."""

import datetime as dt
import json
import shutil
import subprocess
import time

import pytest
import standardwebhooks
import stripe

from tests.support.vectors import BODY, NOW, OTHER_SECRET, PRIVATE_KEY, SECRET, request, ring
from verifiers.keys import build_key_ring
from verifiers.preset import load_preset
from verifiers.request import RawRequest
from verifiers.sign import sign
from verifiers.verdict import Verified
from verifiers.verify import verify


def test_stripes_library_accepts_what_we_sign() -> None:
    """The official library verifies our signature, so our reading of the scheme is theirs."""
    now = int(time.time())
    body = b'{"id":"evt_1","object":"event","type":"a.b"}'
    ((_, value),) = sign(
        body, load_preset("stripe"), ring(load_preset("stripe")), now, event_id="e"
    )

    assert stripe.WebhookSignature.verify_header(body.decode(), value.decode(), SECRET, 300)


def test_we_accept_what_stripes_library_signs() -> None:
    """The signature that the official library computes is accepted."""
    content = f"{NOW}.{BODY.decode()}"
    value = f"t={NOW},v1={stripe.WebhookSignature._compute_signature(content, SECRET)}"
    preset = load_preset("stripe")
    given = request([(b"stripe-signature", value.encode())])

    assert isinstance(verify(given, preset, ring(preset), NOW), Verified)


@pytest.mark.parametrize("secret", [SECRET, SECRET.removeprefix("whsec_")])
def test_the_reference_library_and_we_agree(secret: str) -> None:
    """The Standard Webhooks library accepts what we sign, and we what it signs."""
    now = int(time.time())
    preset = load_preset("standard-webhooks")
    library = standardwebhooks.Webhook(secret)
    ours = sign(BODY, preset, ring(preset, secret), now, event_id="msg_1")
    theirs = library.sign("msg_1", dt.datetime.fromtimestamp(now, dt.UTC), BODY.decode())
    given = request(
        [
            (b"webhook-id", b"msg_1"),
            (b"webhook-timestamp", b"%d" % now),
            (b"webhook-signature", theirs.encode()),
        ]
    )

    assert library.verify(BODY, {k.decode(): v.decode() for k, v in ours}) == json.loads(BODY)
    assert isinstance(verify(given, preset, ring(preset, secret), now), Verified)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl command")
@pytest.mark.parametrize("name", ["github", "timestamp-body"])
def test_openssl_makes_the_same_mac(name: str) -> None:
    """An independent tool computes the value that we send."""
    preset = load_preset(name)
    headers = dict(sign(BODY, preset, ring(preset), NOW, event_id="e", event_type="a.b"))
    content = BODY if name == "github" else b"%d." % NOW + BODY
    done = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", SECRET, "-r"],
        input=content,
        capture_output=True,
        check=True,
    )

    assert b"sha256=" + done.stdout.split()[0] == headers[preset.signature[0].name]


def test_timestamp_body_sends_three_headers() -> None:
    """D1: X-Webhook-Event, X-Webhook-Timestamp and X-Webhook-Signature, and nothing else."""
    preset = load_preset("timestamp-body")
    headers = sign(BODY, preset, ring(preset), NOW, event_id="e", event_type="ai.task.failed")

    assert [n for n, _ in headers] == [
        b"x-webhook-event",
        b"x-webhook-timestamp",
        b"x-webhook-signature",
    ]
    assert headers[0][1] == b"ai.task.failed"


def test_a_rotation_signs_with_each_live_key() -> None:
    """During a rotation receivers with the old and with the new secret both accept."""
    preset = load_preset("standard-webhooks")
    both = ring(preset, SECRET, OTHER_SECRET)
    given = request(sign(BODY, preset, both, NOW, event_id="msg_1"))

    for secret in (SECRET, OTHER_SECRET):
        assert isinstance(verify(given, preset, ring(preset, secret), NOW), Verified)


def test_a_bare_layout_signs_with_the_last_live_key() -> None:
    """Where one signature fits, the newest live key makes it."""
    preset = load_preset("github")
    entries = [("old", SECRET, None, NOW), ("new", OTHER_SECRET, NOW + 1, None)]
    keys = build_key_ring(preset, entries)

    def key_of(now: int) -> str:
        given = request(sign(BODY, preset, keys, now, event_id="e"))
        found = verify(given, preset, keys, now)
        assert isinstance(found, Verified)
        return found.key_id

    assert [key_of(NOW), key_of(NOW + 1)] == ["old", "new"]


@pytest.mark.parametrize("event_id", ["", "a b", "a\r\nx-evil: 1", "é", "a.b", "x" * 256])
def test_an_id_that_would_not_be_accepted_is_not_sent(event_id: str) -> None:
    """SC-72, SC-74: ids with dots, line breaks or beyond ASCII are refused before they are signed."""
    preset = load_preset("standard-webhooks")

    with pytest.raises(ValueError, match="id"):
        sign(BODY, preset, ring(preset), NOW, event_id=event_id)


def test_a_type_cannot_add_a_header() -> None:
    """SC-74: a line break in the type is refused."""
    preset = load_preset("timestamp-body")

    with pytest.raises(ValueError, match="types"):
        sign(BODY, preset, ring(preset), NOW, event_id="e", event_type="a\r\nx: y")


def test_a_public_key_cannot_sign() -> None:
    """A key that can only check says so."""
    preset = load_preset("standard-webhooks")
    public = "whpk_muw3UDiHveA5vlCoLkYDmnmG1fQjZo3Uo9UHdGcXLws="

    with pytest.raises(TypeError, match="public key"):
        sign(BODY, preset, ring(preset, public), NOW, event_id="e")


def test_no_live_key_signs_nothing() -> None:
    """An expired ring signs nothing rather than something that nobody accepts."""
    preset = load_preset("github")
    keys = build_key_ring(preset, [("old", SECRET, None, NOW - 1)])

    with pytest.raises(ValueError, match="no key is live"):
        sign(BODY, preset, keys, NOW, event_id="e")


def test_shopify_needs_a_body() -> None:
    """What Shopify's receivers refuse is not signed."""
    preset = load_preset("shopify")

    with pytest.raises(ValueError, match="needs a body"):
        sign(b"", preset, ring(preset), NOW, event_id="e")


def test_a_single_key_signs_too() -> None:
    """A key without its ring may be given; a public and a private key of one pair agree."""
    preset = load_preset("standard-webhooks")
    private = ring(preset, PRIVATE_KEY)
    headers = sign(BODY, preset, private.keys[0], NOW, event_id="msg_1")

    assert isinstance(
        verify(RawRequest("POST", "", tuple(headers), BODY), preset, private, NOW), Verified
    )
