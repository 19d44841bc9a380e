"""Handshakes: what is echoed, what is refused, and what a table may say."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC
from hypothesis import given, settings
from hypothesis import strategies as st

from verifiers.handshake import HandedOver, Outcome, Refused, Reply, ToConfirm, Unmet, meet
from verifiers.keys import Entry, KeyRing, build_key_ring
from verifiers.preset import Preset, PresetError, load_preset, parse_preset, preset_names
from verifiers.request import RawRequest
from verifiers.sealed import open_wecom
from verifiers.verdict import Reason

NOW = 1_780_000_000
SECRET = "a-secret-of-the-tests-that-is-long-enough"
OLD = "an-older-secret-of-the-tests-long-enough"
URL = "https://hooks.example.test/in/x"


def ring(preset: Preset, *secrets: str) -> KeyRing:
    """Return keys that are always live, the newest last."""
    entries: list[Entry] = [(f"k{n}", text, None, None) for n, text in enumerate(secrets)]
    return build_key_ring(preset, entries)


def ask(name: str, request: RawRequest, *secrets: str, **given: tuple[str, ...]) -> Outcome | None:
    """Meet a request with a built-in preset."""
    preset = load_preset(name)
    return meet(request, preset, ring(preset, *(secrets or (SECRET,))), given, NOW)


def got(query: str) -> RawRequest:
    """Return a GET."""
    return RawRequest("GET", f"{URL}?{query}", (), b"")


def posted(body: Any, *headers: tuple[bytes, bytes]) -> RawRequest:
    """Return a POST of JSON."""
    return RawRequest("POST", URL, headers, json.dumps(body).encode())


def by_slack(body: Any, secret: str = SECRET) -> RawRequest:
    """Return a POST that Slack signed."""
    raw = json.dumps(body).encode()
    mac = hmac.new(secret.encode(), f"v0:{NOW}:".encode() + raw, hashlib.sha256).hexdigest()
    headers = (
        (b"x-slack-request-timestamp", str(NOW).encode()),
        (b"x-slack-signature", f"v0={mac}".encode()),
    )
    return RawRequest("POST", URL, headers, raw)


# ---------------------------------------------------------------- echoes


def test_an_echo_is_plain_text_that_no_browser_reads_otherwise() -> None:
    """A challenge comes back as text/plain with nosniff (F28, SC-81)."""
    reply = ask("dropbox", got("challenge=abc"))

    headers = ((b"content-type", b"text/plain"), (b"x-content-type-options", b"nosniff"))
    assert Reply(200, headers, b"abc") == reply


@pytest.mark.parametrize(
    "challenge",
    ["", "%3Cscript%3E", "a%0d%0ab", "%ff", "%C3%A9", "%00", "%7f", "a" * 1025],
    ids=["empty", "tag", "line", "byte", "letter", "nul", "delete", "long"],
)
def test_nothing_else_is_echoed(challenge: str) -> None:
    """A challenge is at most 1024 printable ASCII characters without angle brackets (SC-81)."""
    assert Refused(Unmet.UNREADABLE, 401) == ask("dropbox", got(f"challenge={challenge}"))


def test_a_challenge_that_stands_twice_is_none() -> None:
    """What could be read in two ways is not answered."""
    assert ask("dropbox", got("challenge=a&challenge=b")) is None


def test_no_header_is_made_from_lines() -> None:
    """A header that is echoed cannot begin another header."""
    request = RawRequest("POST", URL, ((b"validation-token", b"a\r\nset-cookie: b"),), b"")

    assert Refused(Unmet.UNREADABLE, 401) == ask("ringcentral", request)


def test_a_large_body_is_no_handshake() -> None:
    """What is larger than 16 KiB is an event and is not parsed for its sake."""
    body = {"type": "url_verification", "challenge": "x", "pad": "a" * (16 << 10)}

    assert ask("slack", by_slack(body)) is None


# ---------------------------------------------------------------- signed ones


def test_a_signed_challenge_is_answered_after_verification() -> None:
    """Slack's url_verification needs a signature over the whole body (F28)."""
    body = {"type": "url_verification", "challenge": "abc", "token": "legacy"}
    forged = by_slack(body, OLD)

    reply = ask("slack", by_slack(body))
    assert isinstance(reply, Reply)
    assert (reply.status, reply.body) == (200, b"abc")
    assert Refused(Reason.SIGNATURE_MISMATCH, 401) == ask("slack", forged)
    assert Refused(Reason.SIGNATURE_MISSING, 401) == ask("slack", posted(body))


def test_an_event_is_no_handshake() -> None:
    """An ordinary event goes its ordinary way."""
    assert ask("slack", by_slack({"type": "event_callback", "challenge": "abc"})) is None


def zoomed(secret: str) -> RawRequest:
    """Return Zoom's validation, signed."""
    raw = json.dumps({"event": "endpoint.url_validation", "payload": {"plainToken": "t"}}).encode()
    mac = hmac.new(secret.encode(), f"v0:{NOW}:".encode() + raw, hashlib.sha256).hexdigest()
    headers = (
        (b"x-zm-request-timestamp", str(NOW).encode()),
        (b"x-zm-signature", f"v0={mac}".encode()),
    )
    return RawRequest("POST", URL, headers, raw)


@pytest.mark.parametrize("secret", [OLD, SECRET])
def test_a_validation_is_proved_with_the_key_that_signed_it(secret: str) -> None:
    """Zoom asks again every three days, also in the middle of a rotation (F30)."""
    reply = ask("zoom", zoomed(secret), OLD, SECRET)

    assert isinstance(reply, Reply)
    proof = hmac.new(secret.encode(), b"t", hashlib.sha256).hexdigest()
    assert {"plainToken": "t", "encryptedToken": proof} == json.loads(reply.body)


def test_an_unsigned_check_is_proved_with_the_newest_key() -> None:
    """X asks every hour and does not say with which secret (F30)."""
    reply = ask("linkedin", got("challengeCode=c"), OLD, SECRET)

    assert isinstance(reply, Reply)
    proof = hmac.new(SECRET.encode(), b"c", hashlib.sha256).hexdigest()
    assert proof == json.loads(reply.body)["challengeResponse"]


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize("query", ["hub.mode=unsubscribe&hub.topic=t", "hub.mode=subscribe"])
def test_only_what_was_asked_for_is_confirmed(query: str) -> None:
    """Neither an unsubscription nor a subscription without a topic is confirmed."""
    found = ask("websub", got(f"{query}&hub.challenge=c"), topics=("t",))

    assert Refused(Unmet.REFUSED, 404) == found


def test_an_unset_setting_matches_nothing() -> None:
    """Without a verify token an empty one is not right by accident."""
    query = "hub.mode=subscribe&hub.verify_token=&hub.challenge=1"

    assert Refused(Unmet.REFUSED, 403) == ask("meta", got(query))
    assert Refused(Unmet.REFUSED, 403) == ask("meta", got(query), verify_token=("",))


def test_an_origin_that_is_allowed_is_told_so() -> None:
    """CloudEvents' OPTIONS is answered with the origin, and with the method that is taken."""
    request = RawRequest("OPTIONS", URL, ((b"webhook-request-origin", b"e.example"),), b"")
    reply = ask("cloudevents", request, allowed_origins=("other.example", "e.example"))

    assert isinstance(reply, Reply)
    headers = dict(reply.headers)
    assert (headers[b"webhook-allowed-origin"], headers[b"allow"]) == (b"e.example", b"POST")


# ---------------------------------------------------------------- secrets, subscriptions


def test_a_secret_that_is_handed_over_is_not_shown() -> None:
    """The outcome holds the secret for whoever waits for it; its repr does not."""
    found = ask("notion", posted({"verification_token": "secret_abc"}))

    assert isinstance(found, HandedOver)
    assert (found.secret, found.reply.body) == (b"secret_abc", b"")
    assert "secret_abc" not in repr(found)


@pytest.mark.parametrize("name", ["asana", "notion"])
def test_an_event_cannot_plant_a_secret(name: str) -> None:
    """A request with a signature is an event, whatever else it holds."""
    preset = load_preset(name)
    header = (preset.signature[0].name, b"00")
    body = {"verification_token": "secret_abc"}

    assert ask(name, posted(body, header, (b"x-hook-secret", b"abc"))) is None


def test_an_unsigned_subscription_is_refused() -> None:
    """SNS's confirmation is believed only with a signature: no address of a stranger (F33)."""
    body = {"Type": "SubscriptionConfirmation", "SubscribeURL": "http://169.254.169.254/latest"}
    preset = load_preset("aws-sns")
    found = meet(posted(body), preset, ring(preset), {}, NOW)

    assert isinstance(found, Refused)
    assert not isinstance(found, ToConfirm)


@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1", True),
        ("https://sns.eu-west-1.amazonaws.com.evil.example/?Action=ConfirmSubscription&T=1", False),
        ("http://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1", False),
        ("https://sns.eu-west-1.amazonaws.com/?Action=DeleteTopic&Token=1", False),
        ("http://169.254.169.254/", False),
    ],
)
def test_an_address_to_confirm_is_the_providers(url: str, right: bool) -> None:
    """Host and action of SNS's address are pinned (F33)."""
    [rule] = load_preset("aws-sns").handshakes
    assert rule.confirm_pattern is not None

    assert right is (rule.confirm_pattern.fullmatch(url) is not None)


# ---------------------------------------------------------------- total


@settings(max_examples=200)
@given(
    st.sampled_from([name for name in preset_names() if load_preset(name).handshakes]),
    st.sampled_from(["GET", "HEAD", "OPTIONS", "POST"]),
    st.text(max_size=40),
    st.binary(max_size=200),
)
def test_no_request_raises(name: str, method: str, query: str, body: bytes) -> None:
    """Any bytes give an outcome or none; a reply is never longer than it may be."""
    preset = load_preset(name)
    challenge = {rule.challenge.name for rule in preset.handshakes if rule.challenge}
    headers = tuple((n, body[:50]) for n in challenge if n)
    request = RawRequest(method, f"{URL}?{query}", headers, body)
    found = meet(request, preset, KeyRing((), {}, timeless=True), {}, NOW)

    assert found is None or not isinstance(found, Reply) or len(found.body) <= 2048


# ---------------------------------------------------------------- grammar

TABLE: dict[str, Any] = {
    "name": "own",
    "signed": "{body}",
    "retry_horizon_s": 0,
    "signature": {"from": "header:x-s", "encoding": "hex"},
    "secret": {"algorithm": "hmac-sha256", "form": "utf8"},
}


def own(**handshake: Any) -> Preset:
    """Return a private scheme with this handshake."""
    return parse_preset({**TABLE, "handshake": handshake}, "own.toml")


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"methd": "GET"}, "did you mean 'method'"),
        ({"method": "PUT"}, "'PUT' is unknown"),
        ({"method": "GET", "text": "{chalenge}"}, "unknown field {chalenge}"),
        ({"method": "GET", "text": "{challenge}"}, "handshake.challenge: is required"),
        ({"method": "GET", "challenge": "query:c", "text": "{proof}"}, "handshake.proof"),
        ({"method": "GET", "challenge": "claim:/c"}, "cannot stand here"),
        ({}, "handshake.when: is required"),
        ({"method": "GET", "status": 404}, "must be 200 to 299"),
        ({"method": "GET", "refused": 200}, "must be 400 to 499"),
        ({"method": "GET", "headers": {"Set-Cookie": "x"}}, "no header name in lower case"),
        ({"when": {"body:/a": 1}}, "must be a text, true"),
        ({"when": {"body:/a": True}, "confirm": "body:/u", "confirm_pattern": "https://a\\.b/.*"},
         "only a signed request"),
        ({"signed": True, "when": {"body:/a": True}, "confirm": "body:/u",
          "confirm_pattern": "https://a.b/.*"}, "an exact host"),
        ({"method": "GET", "must": {"query:a": "{token}"}}, "unknown field {token}"),
        ({"method": "GET", "text": "a", "json": {"a": "b"}}, "either text or json"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused(table: dict[str, Any], told: str) -> None:
    """Every mistake is named before anything listens."""
    with pytest.raises(PresetError, match=r"own\.toml") as caught:
        own(**table)

    assert told in str(caught.value)


def test_what_a_handshake_needs_is_known() -> None:
    """Settings follow from the fields that are used."""
    preset = own(method="GET", challenge="query:c", must={"query:t": "{verify_token}"})

    assert [rule.settings for rule in preset.handshakes] == [("verify_token",)]
    assert [rule.summary for rule in preset.handshakes] == ["GET echo"]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("https://a.example/?Action=Confirm", ToConfirm()),
        ("https://a.example.evil.example/?Action=Confirm", Refused(Unmet.REFUSED, 401)),
        ("http://169.254.169.254/", Refused(Unmet.REFUSED, 401)),
        (["x"], Refused(Unmet.UNREADABLE, 401)),
    ],
)
def test_even_a_signed_address_is_pinned(address: Any, found: Outcome) -> None:
    """A genuine request with an address elsewhere is not given to an operator to open (F33)."""
    preset = own(
        signed=True,
        when={"body:/type": "confirm"},
        confirm="body:/url",
        confirm_pattern=r"https://a\.example/\?Action=Confirm",
    )
    raw = json.dumps({"type": "confirm", "url": address}).encode()
    mac = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest().encode()
    request = RawRequest("POST", URL, ((b"x-s", mac),), raw)

    assert found == meet(request, preset, ring(preset, SECRET), {}, NOW)


@pytest.mark.parametrize(("receiver", "plain"), [("us", b"echo"), ("them", None)])
def test_a_sealed_text_for_another_receiver_is_not_opened(receiver: str, plain: Any) -> None:
    """WeCom's message ends with the receiver's id, which must be ours."""
    key = bytes(range(32))
    text = b"r" * 16 + (4).to_bytes(4, "big") + b"echo" + b"us"
    text += bytes([32 - len(text) % 32]) * (32 - len(text) % 32)
    sealing = Cipher(AES(key), CBC(key[:16])).encryptor()
    sealed = base64.b64encode(sealing.update(text) + sealing.finalize())
    parts = {"aes_key": base64.b64encode(key).rstrip(b"="), "receiver_id": receiver.encode()}

    assert plain == open_wecom(parts.get, sealed)
