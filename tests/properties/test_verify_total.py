"""`verify` is total: any bytes at all give a verdict."""

import base64
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.vectors import (
    KINDS,
    NOW,
    PLAIN,
    SECRET,
    SIGNED,
    URL,
    ring,
    sample,
    signed,
    with_header,
)
from verifiers.document import Document
from verifiers.explain import explain
from verifiers.keys import SecretError, build_key_ring
from verifiers.locate import LocatorError, parse_locator
from verifiers.preset import load_preset
from verifiers.request import RawRequest
from verifiers.sign import sign, sign_request
from verifiers.verdict import Rejected, Verified
from verifiers.verify import verify

QUICK = settings(max_examples=200, deadline=None)

JSON_BODY = b'{"signature":{"token":"t"},"notificationItems":[{}],"value":[{},{}]}'
FORM_BODY = (
    b"timestamp=1&payload=%7B%7D&bt_payload=x"
    b"&json=%7B%22event%22%3A%7B%22event_time%22%3A%221%22%2C%22event_type%22%3A%22a%22%7D%7D"
)

# Whose requests are not made here: the provider alone says where its certificate is, or the
# message is more than a signature around a body.
KEYS_ONLY_CHECK = {
    "apple-app-store",
    "aws-sns",
    "dingtalk",
    "http-message-signatures",
    "paypal",
    "wecom",
}

NAMES = sorted({name for preset in SIGNED for name in load_preset(preset).slots})

# Values that come near the grammar, and values that do not.
pieces = st.sampled_from(
    [
        b"v1",
        b"v1a",
        b"t",
        b"=",
        b",",
        b" ",
        b"sha256=",
        b"v0=",
        b"%d" % NOW,
        b"A" * 43 + b"=",
        b"ab" * 32,
    ]
)
values = st.one_of(
    st.binary(max_size=80),
    st.lists(pieces, max_size=12).map(b"".join),
    st.sampled_from([b"", b"%d" % NOW, b"9" * 5000]),
)
names = st.one_of(st.sampled_from(NAMES), st.binary(max_size=20))
requests = st.builds(
    RawRequest,
    st.just("POST"),
    st.text(max_size=20),
    st.lists(st.tuples(names, values), max_size=12).map(tuple),
    st.binary(max_size=200),
)

json_like = st.recursive(
    st.one_of(
        st.sampled_from(["NaN", "1e999", "-0", '"\\ud800"', "9" * 400, "true", '"x"', "tru", ""]),
        st.text(max_size=8).map(lambda text: f'"{text}"'),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]"),
        st.lists(
            st.tuples(st.sampled_from(["id", "Id", "type", "a", "\u017f"]), inner), max_size=4
        ).map(lambda items: "{" + ",".join(f'"{k}":{v}' for k, v in items) + "}"),
    ),
    max_leaves=20,
)

forms = st.lists(
    st.tuples(
        st.sampled_from(["sig", "json", "payload", "bt_signature", "bt_payload", "p_signature"]),
        st.sampled_from(["", "{", "%7B%22event%22%3A1%7D", "a%7Cb", "%zz", "+"]),
    ),
    max_size=5,
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs).encode())


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@QUICK
@given(st.sampled_from(SIGNED), requests, st.integers(-(10**12), 10**13))
def test_any_request_gets_a_verdict(name: str, request: RawRequest, now: int) -> None:
    """SC-10, SC-11, F04: arbitrary headers and bodies are refused, never an exception."""
    preset = load_preset(name)
    keys = ring(preset)

    assert isinstance(verify(request, preset, keys, now), Rejected)
    assert isinstance(explain(request, preset, keys, now, (sample(name),)), list)


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(SIGNED), st.data())
def test_any_values_where_a_preset_looks_get_a_verdict(name: str, data: st.DataObject) -> None:
    """SC-10: each preset's own headers, fields and pointers filled with anything at all."""
    preset = load_preset(name)
    keys = ring(preset)
    body = data.draw(st.one_of(st.binary(max_size=60), json_like.map(_octets), forms))
    kinds = st.sampled_from([b"application/json", b"application/x-www-form-urlencoded"])
    headers = [(header, data.draw(values)) for header in preset.slots if data.draw(st.booleans())]
    headers.append((b"content-type", data.draw(kinds)))
    url = URL + data.draw(st.sampled_from(["", "?", "?sig=ab&timestamp=1", "?a=%ff&a=\udcff"]))
    request = RawRequest("POST", url, tuple(headers), body)
    found = verify(request, preset, keys, NOW)

    assert isinstance(found, Verified | Rejected)
    assert len(found.checks(preset)) == len(preset.checks)


@QUICK
@given(
    st.sampled_from(KINDS),
    st.one_of(st.binary(max_size=300), json_like.map(lambda t: t.encode("utf-8", "surrogatepass"))),
)
@example(("stripe", SECRET), b'{"id":' + b"9" * 5000 + b"}")
@example(("stripe", SECRET), b"[" * 200_000)
@example(("slack", SECRET), b'{"event":{"type":"\\ud800"}}')
def test_any_signed_body_is_verified(kind: tuple[str, str], body: bytes) -> None:
    """SC-36: whatever an authentic sender signs is accepted as evidence, with a usable key."""
    name, secret = kind
    body = body or b"x"  # Shopify's receivers want a body
    preset = load_preset(name)
    found = verify(signed(name, body, secret=secret), preset, ring(preset, secret), NOW)

    assert isinstance(found, Verified)
    assert found.event_key.text.isascii()
    assert found.event_key.text.isprintable()
    assert found.event_id is None or set(found.event_id) <= set(string.printable) - set(
        string.whitespace
    )


@QUICK
@given(st.sampled_from(KINDS), st.sampled_from(NAMES), st.lists(values, max_size=3))
def test_any_change_of_a_header_gets_a_verdict(
    kind: tuple[str, str], name: bytes, changed: list[bytes]
) -> None:
    """A right request with one header replaced by anything gets a verdict and an explanation."""
    preset = load_preset(kind[0])
    keys = ring(preset, kind[1])
    request = with_header(signed(kind[0], secret=kind[1]), name, *changed)
    found = verify(request, preset, keys, NOW)

    assert isinstance(found, Verified | Rejected)
    assert len(found.checks(preset)) == len(preset.checks)
    assert isinstance(explain(request, preset, keys, NOW, (kind[1],)), list)


@QUICK
@given(
    st.sampled_from(SIGNED),
    st.text(max_size=60),
    st.sampled_from(["", "whsec_", "whpk_", "whsk_", "a:b:", "{", "-----BEGIN PUBLIC KEY-----"]),
)
def test_any_secret_is_a_key_or_a_secret_error(name: str, text: str, prefix: str) -> None:
    """F08: a secret is used or refused at start-up; no other exception, and no key without bytes."""
    try:
        keys = build_key_ring(load_preset(name), [("k", prefix + text, None, None)])
    except SecretError as error:
        assert len(text) < 12 or text not in str(error)  # noqa: PT017  # a bare except would hide others
    else:
        keyless = load_preset(name).published is not None and not keys.keys
        least = min(form.bytes_min for form in load_preset(name).secrets)
        assert keyless or len(keys.keys[0].material) >= max(least, 1)


@QUICK
@given(
    st.sampled_from([n for n in PLAIN if not load_preset(n).secrets[0].algorithm.is_public]),
    st.binary(min_size=16, max_size=64),
    st.binary(max_size=300),
)
def test_any_key_signs_what_it_verifies(name: str, material: bytes, body: bytes) -> None:
    """`verify(sign(x))` holds for every preset, key and body."""
    preset = load_preset(name)
    form = preset.secrets[0]
    text = base64.b64encode(material).decode() if form.form == "base64" else material.hex()
    keys = ring(preset, form.separator.join([*(f"a-{part}" for part in form.parts[:-1]), text]))
    body = body or b"x"
    headers = sign(body, preset, keys, NOW, event_id="msg_1", event_type="a.b", url=URL)
    request = RawRequest("POST", URL, tuple(headers), body)

    assert isinstance(verify(request, preset, keys, NOW), Verified)
    assert isinstance(verify(request, preset, ring(preset, sample(name, 1)), NOW), Rejected)


@pytest.mark.parametrize("name", SIGNED)
def test_every_preset_can_be_signed_or_says_why_not(name: str) -> None:
    """`verify(sign_request(x))` holds wherever the key material allows it."""
    preset = load_preset(name)
    keys = ring(preset)
    form = (b"content-type", b"application/x-www-form-urlencoded")
    json_body = RawRequest("POST", URL, ((b"content-type", b"application/json"),), JSON_BODY)
    form_body = RawRequest("POST", URL, (form,), FORM_BODY)
    found = []
    for bare in (json_body, form_body):
        try:
            made = sign_request(bare, preset, keys, NOW, event_id="msg_1", event_type="a.b")
        except ValueError:  # the other kind of body is wanted
            continue
        except TypeError:
            assert name in KEYS_ONLY_CHECK
            return
        found.append(verify(made, preset, keys, NOW))

    assert name not in KEYS_ONLY_CHECK
    assert [v for v in found if isinstance(v, Verified)]


@QUICK
@given(st.binary(max_size=300), st.lists(st.text(max_size=3), max_size=4).map(tuple))
def test_any_body_and_pointer_give_text_or_nothing(body: bytes, pointer: tuple[str, ...]) -> None:
    """SC-36: reading a value out of any body never raises."""
    found = Document(body).at(pointer)

    assert found is None or isinstance(found, str)


@QUICK
@given(st.text(max_size=30))
def test_any_text_is_a_locator_or_a_locator_error(text: str) -> None:
    """The locator grammar has one exception, and what it accepts it can write again."""
    for candidate in (text, f"body:/{text}", f"header:{text}"):
        try:
            assert parse_locator(candidate).text == candidate
        except LocatorError as error:
            assert str(error)  # noqa: PT017  # likewise
