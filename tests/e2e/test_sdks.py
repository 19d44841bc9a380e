"""Requests that the providers' official Python libraries sign are accepted by a running gateway."""

import datetime as dt
import json
import time
from collections.abc import Iterator

import pytest
import standardwebhooks
import stripe

from tests.support.installation import Installation
from tests.support.signing import new_secret
from tests.support.wire import request

pytestmark = pytest.mark.e2e

#: Stripe's secret is used as the text that it is, prefix and all.
STRIPE_SECRET = "whsec_5f2d0c9b1e7a4d3f8c6b"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Run a gateway with a source for each library."""
    with Installation(tmp_path_factory.mktemp("sdks") / "it") as installation:
        installation.source("standard")
        reference = installation.keep_secret("stripe", STRIPE_SECRET)
        installation.section(
            '[sources.stripe]\npreset = "stripe"\n'
            f'keys = [{{ id = "k1", secret = "{reference}" }}]\n'
        )
        yield installation.start()


def _stripe_header(payload: str, at: int, secret: str) -> str:
    digest = stripe.WebhookSignature._compute_signature(f"{at}.{payload}", secret)
    return f"t={at},v1={digest}"


@pytest.mark.parametrize(
    ("secret", "status"), [(STRIPE_SECRET, 200), ("whsec_another", 401)], ids=["right", "wrong"]
)
def test_the_stripe_library_signs_what_we_accept(
    gateway: Installation, secret: str, status: int
) -> None:
    """Stripe's own signing makes a request that we accept; with another secret it is refused."""
    payload = json.dumps(
        {"id": f"evt_{status}", "object": "event", "type": "charge.succeeded"}, indent=2
    )
    header = _stripe_header(payload, int(time.time()), secret)
    # The library's own check, so that the helper above is known to be right.
    assert stripe.Webhook.construct_event(payload, header, secret).id == f"evt_{status}"
    raw = request("POST", "/in/stripe", [("Stripe-Signature", header)], payload.encode())
    assert gateway.post(raw).status == status
    stored = [event["provider_event_id"] for event in gateway.events("stripe")]
    assert (f"evt_{status}" in stored) == (status == 200)


def test_the_standard_webhooks_library_signs_what_we_accept(gateway: Installation) -> None:
    """The library's signature over id, time and body is accepted, and its body kept."""
    secret = gateway.senders["standard"].secret
    now = dt.datetime.now(dt.UTC)
    body = '{"type":"invoice.paid","text":"caf\u00e9"}'
    signature = standardwebhooks.Webhook(secret).sign("msg_1", now, body)
    headers = [
        ("webhook-id", "msg_1"),
        ("webhook-timestamp", str(int(now.timestamp()))),
        ("webhook-signature", signature),
    ]
    answer = gateway.post(request("POST", "/in/standard", headers, body.encode()))
    (event,) = gateway.events("standard")
    assert answer.status == 200
    assert (event["provider_event_id"], event["event_type"]) == ("msg_1", "invoice.paid")
    assert gateway.body(event["event_id"]) == body.encode()


def test_the_standard_webhooks_library_with_another_secret_is_refused(
    gateway: Installation,
) -> None:
    """A signature of the library with a secret that is not ours is refused."""
    now = dt.datetime.now(dt.UTC)
    signature = standardwebhooks.Webhook(new_secret()).sign("msg_2", now, "{}")
    headers = [
        ("webhook-id", "msg_2"),
        ("webhook-timestamp", str(int(now.timestamp()))),
        ("webhook-signature", signature),
    ]
    assert gateway.post(request("POST", "/in/standard", headers, b"{}")).status == 401


def test_our_independent_sender_agrees_with_the_library(gateway: Installation) -> None:
    """The sender that all end-to-end tests use signs as the official library does."""
    sender = gateway.senders["standard"]
    now = int(time.time())
    signed = sender.sign(b'{"n":1}', at=now)
    moment = dt.datetime.fromtimestamp(now, dt.UTC)
    library = standardwebhooks.Webhook(sender.secret).sign(signed.event_id, moment, '{"n":1}')
    assert signed.signature == library
