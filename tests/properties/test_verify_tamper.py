"""Whatever is changed in a signed request, it is refused."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.vectors import KINDS, NOW, ring, sample, signed, vectors
from verifiers.encoding import Encoding
from verifiers.locate import Place
from verifiers.preset import Preset, load_preset
from verifiers.request import RawRequest
from verifiers.vectors import Vector
from verifiers.verdict import Reason, Rejected, Verified
from verifiers.verify import verify

QUICK = settings(max_examples=600, deadline=None)

bodies = st.binary(min_size=1, max_size=200)
# What is beside the signature in these headers is not signed, and not looked at.
WRAPPED = {"ebay", "keygen"}
WHOLE = [kind for kind in KINDS if kind[0] not in WRAPPED]
CLOCKED = [kind for kind in KINDS if load_preset(kind[0]).scheme == "signature"]


def flip(raw: bytes, bit: int) -> bytes:
    """Return `raw` with one bit flipped."""
    changed = bytearray(raw)
    changed[bit // 8 % len(raw)] ^= 1 << bit % 8
    return bytes(changed)


def same_text(preset: Preset, one: bytes, other: bytes) -> bool:
    """Tell whether two texts are one signature: case does not count where a preset says so."""
    return preset.encoding is Encoding.HEX_ANY_CASE and one.lower() == other.lower()


def signed_headers(preset: Preset) -> list[bytes]:
    """Return the headers whose bytes are signed, or are the signature."""
    names = [preset.signature[0].name]
    if preset.timestamp is not None and preset.timestamp.places[0].place is Place.HEADER:
        names.append(preset.timestamp.places[0].name)
    places = [field.place for field in preset.signed.fields if field.place is not None]
    names += [place.name for place in places if place.place is Place.HEADER]
    if "id" in preset.signed.words:
        names.append(preset.event_id[0].name)
    return names


@QUICK
@given(st.sampled_from(KINDS), bodies, st.integers(0, 10_000))
def test_a_flipped_bit_of_the_body_is_refused(kind: tuple[str, str], body: bytes, bit: int) -> None:
    """SC-32: every bit of the body is covered."""
    name, secret = kind
    preset = load_preset(name)
    good = signed(name, body, secret=secret)
    bad = replace(good, body=flip(body, bit))
    found = verify(bad, preset, ring(preset, secret), NOW)

    assert isinstance(verify(good, preset, ring(preset, secret), NOW), Verified)
    assert isinstance(found, Rejected)
    assert found.reason in (Reason.SIGNATURE_MISMATCH, Reason.CONTENT_MISMATCH)


@QUICK
@given(st.sampled_from(WHOLE), st.integers(0, 10), st.integers(0, 10_000))
def test_a_flipped_bit_of_a_signed_header_is_refused(
    kind: tuple[str, str], which: int, bit: int
) -> None:
    """SC-03, SC-24: every bit of signature, timestamp and signed headers is covered."""
    name, secret = kind
    preset = load_preset(name)
    names = signed_headers(preset)
    chosen = names[which % len(names)]
    good = signed(name, secret=secret)
    headers = tuple((n, flip(v, bit) if n == chosen else v) for n, v in good.headers)
    bad = replace(good, headers=headers)
    pairs = zip(good.headers, headers, strict=True)

    if not any(one != two and same_text(preset, one[1], two[1]) for one, two in pairs):
        assert isinstance(verify(bad, preset, ring(preset, secret), NOW), Rejected)


@QUICK
@given(st.sampled_from(CLOCKED), st.integers(-(10**10), 10**10))
def test_a_shifted_clock_is_refused(kind: tuple[str, str], shift_s: int) -> None:
    """F20, F21, SC-22, SC-23: beyond the tolerance is refused, within it is accepted."""
    name, secret = kind
    preset = load_preset(name)
    found = verify(signed(name, secret=secret), preset, ring(preset, secret), NOW + shift_s)
    rule = preset.timestamp
    timeless = rule is None or not rule.judged
    fresh = timeless or (rule is not None and -rule.future_s <= shift_s <= rule.past_s)

    assert isinstance(found, Verified) is fresh
    if isinstance(found, Rejected):
        late = Reason.TIMESTAMP_TOO_OLD if shift_s > 0 else Reason.TIMESTAMP_IN_FUTURE
        assert late == found.reason


@QUICK
@given(st.sampled_from(KINDS), st.binary(min_size=1, max_size=8), st.booleans())
def test_anything_beside_the_body_is_refused(
    kind: tuple[str, str], more: bytes, before: bool
) -> None:
    """SC-32: nothing can be put before or behind a signed body."""
    name, secret = kind
    preset = load_preset(name)
    good = signed(name, secret=secret)
    body = more + good.body if before else good.body + more

    assert isinstance(verify(replace(good, body=body), preset, ring(preset, secret), NOW), Rejected)


@QUICK
@given(st.sampled_from(["standard-webhooks", "svix"]), bodies, st.integers(1, 40))
def test_the_cut_between_the_fields_cannot_be_moved(name: str, body: bytes, moved: int) -> None:
    """F27, SC-28: no other cut of the same signed bytes into id, timestamp and body is accepted."""
    preset = load_preset(name)
    good = signed(name, b"%d." % NOW + body, event_id="msg")
    content = b"msg.%d.%d." % (NOW, NOW) + body
    for end in range(1, min(moved, len(content) - 1)):
        rest = content[end + 1 :]
        stamp, _, tail = rest.partition(b".")
        if content[end : end + 1] != b"." or content[:end] == b"msg":
            continue
        values = {preset.event_id[0].name: content[:end]}
        if preset.timestamp is not None:
            values[preset.timestamp.places[0].name] = stamp
        headers = tuple((n, values.get(n, v)) for n, v in good.headers)

        assert isinstance(
            verify(RawRequest("POST", "", headers, tail), preset, ring(preset), NOW), Rejected
        )


# ---------------------------------------------------------------- what providers really signed

FIRST = {v.slug: v for v in reversed(list(vectors())) if v.accept}
IN_HEADERS = [
    vector
    for vector in FIRST.values()
    if vector.preset().signature
    and vector.slug not in WRAPPED
    and vector.request.values(vector.preset().signature[0].name)
]
COVERING = [v for v in FIRST.values() if "body" in v.preset().signed.covering]


@pytest.mark.parametrize("vector", IN_HEADERS, ids=lambda v: v.slug)
def test_every_bit_of_a_real_signature_counts(vector: Vector) -> None:
    """SC-03: a signature that the provider made is refused with any bit changed."""
    preset, keys = vector.preset(), vector.keys()
    name = preset.signature[0].name
    value = vector.request.values(name)[0]
    for bit in range(0, 8 * len(value), 1 if len(value) < 200 else 7):
        changed = flip(value, bit)
        headers = tuple((n, changed if n == name else v) for n, v in vector.request.headers)
        found = verify(replace(vector.request, headers=headers), preset, keys, vector.now)

        assert isinstance(found, Rejected) or same_text(preset, value, changed)


@pytest.mark.parametrize("vector", COVERING, ids=lambda v: v.slug)
def test_every_bit_of_a_really_signed_body_counts(vector: Vector) -> None:
    """SC-32: a body that the provider signed is refused with any bit changed."""
    preset, keys = vector.preset(), vector.keys()
    body = vector.request.body
    canonical = "canonical" in preset.signed.text  # where a change of spelling is no change
    for bit in range(0, 8 * len(body), 5 if len(body) < 300 else 37):
        bad = replace(vector.request, body=flip(body, bit))
        found = verify(bad, preset, keys, vector.now)

        assert isinstance(found, Rejected) or canonical


@pytest.mark.parametrize("name", [n for n in sorted(FIRST) if not load_preset(n).unsigned])
def test_another_key_refuses_what_a_provider_signed(name: str) -> None:
    """F07: under a key that the provider does not have, its requests are refused."""
    vector = FIRST[name]
    preset = vector.preset()
    other = ring(preset, sample(preset.name, 1))

    assert isinstance(verify(vector.request, preset, other, vector.now), Rejected)
