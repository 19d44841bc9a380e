"""`verify` is total: any bytes at all give a verdict."""

import base64
import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.vectors import KINDS, NOW, OTHER_SECRET, SECRET, ring, signed, with_header
from verifiers.document import Document
from verifiers.explain import explain
from verifiers.keys import SecretError, build_key_ring
from verifiers.locate import LocatorError, parse_locator
from verifiers.preset import load_preset, preset_names
from verifiers.request import RawRequest
from verifiers.sign import sign
from verifiers.verdict import Rejected, Verified
from verifiers.verify import verify

QUICK = settings(max_examples=200, deadline=None)

NAMES = sorted({name for preset in preset_names() for name in load_preset(preset).slots})

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


@QUICK
@given(st.sampled_from(KINDS), requests, st.integers(-(10**12), 10**13))
def test_any_request_gets_a_verdict(kind: tuple[str, str], request: RawRequest, now: int) -> None:
    """SC-10, SC-11, F04: arbitrary headers and bodies are refused, never an exception."""
    preset = load_preset(kind[0])

    assert isinstance(verify(request, preset, ring(preset, kind[1]), now), Rejected)


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
    st.sampled_from(preset_names()),
    st.text(max_size=60),
    st.sampled_from(["", "whsec_", "whpk_", "whsk_"]),
)
def test_any_secret_is_a_key_or_a_secret_error(name: str, text: str, prefix: str) -> None:
    """F08: a secret is used or refused at start-up; no other exception, and no key without bytes."""
    try:
        keys = build_key_ring(load_preset(name), [("k", prefix + text, None, None)])
    except SecretError as error:
        assert len(text) < 12 or text not in str(error)  # noqa: PT017  # a bare except would hide others
    else:
        assert len(keys.keys[0].material) >= 16


@QUICK
@given(
    st.sampled_from(preset_names()), st.binary(min_size=16, max_size=64), st.binary(max_size=300)
)
def test_any_key_signs_what_it_verifies(name: str, material: bytes, body: bytes) -> None:
    """`verify(sign(x))` holds for every preset, key and body."""
    preset = load_preset(name)
    decoded = preset.secrets[0].form == "base64"
    text = base64.b64encode(material).decode() if decoded else material.hex()
    keys = ring(preset, text)
    body = body or b"x"
    headers = sign(body, preset, keys, NOW, event_id="msg_1", event_type="a.b")
    request = RawRequest("POST", "", tuple(headers), body)

    assert isinstance(verify(request, preset, keys, NOW), Verified)
    assert isinstance(verify(request, preset, ring(preset, OTHER_SECRET), NOW), Rejected)


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
