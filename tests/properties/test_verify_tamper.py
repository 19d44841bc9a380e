"""Whatever is changed in a signed request, it is refused."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.vectors import KINDS, NOW, ring, signed
from verifiers.locate import Place
from verifiers.preset import Preset, load_preset
from verifiers.request import RawRequest
from verifiers.verdict import Reason, Rejected, Verified
from verifiers.verify import verify

QUICK = settings(max_examples=400, deadline=None)

bodies = st.binary(min_size=1, max_size=200)


def flip(raw: bytes, bit: int) -> bytes:
    """Return `raw` with one bit flipped."""
    changed = bytearray(raw)
    changed[bit // 8 % len(raw)] ^= 1 << bit % 8
    return bytes(changed)


def signed_headers(preset: Preset) -> list[bytes]:
    """Return the headers whose bytes are signed, or are the signature."""
    names = [preset.signature[0].name]
    if preset.timestamp is not None and preset.timestamp.places[0].place is Place.HEADER:
        names.append(preset.timestamp.places[0].name)
    if "id" in preset.signed.fields:
        names.append(preset.event_id[0].name)
    return names


@QUICK
@given(st.sampled_from(KINDS), bodies, st.integers(0, 10_000))
def test_a_flipped_bit_of_the_body_is_refused(kind: tuple[str, str], body: bytes, bit: int) -> None:
    """SC-32: every bit of the body is covered."""
    name, secret = kind
    preset = load_preset(name)
    good = signed(name, body, secret=secret)
    bad = RawRequest(good.method, good.url, good.headers, flip(body, bit))

    assert isinstance(verify(good, preset, ring(preset, secret), NOW), Verified)
    assert Rejected(Reason.SIGNATURE_MISMATCH) == verify(bad, preset, ring(preset, secret), NOW)


@QUICK
@given(st.sampled_from(KINDS), st.integers(0, 10), st.integers(0, 10_000))
def test_a_flipped_bit_of_a_signed_header_is_refused(
    kind: tuple[str, str], which: int, bit: int
) -> None:
    """SC-03, SC-24: every bit of signature, timestamp and signed id is covered."""
    name, secret = kind
    preset = load_preset(name)
    names = signed_headers(preset)
    chosen = names[which % len(names)]
    good = signed(name, secret=secret)
    headers = tuple((n, flip(v, bit) if n == chosen else v) for n, v in good.headers)
    bad = RawRequest(good.method, good.url, headers, good.body)

    assert isinstance(verify(bad, preset, ring(preset, secret), NOW), Rejected)


@QUICK
@given(st.sampled_from(KINDS), st.integers(-(10**10), 10**10))
def test_a_shifted_clock_is_refused(kind: tuple[str, str], shift_s: int) -> None:
    """F20, F21, SC-22, SC-23: beyond the tolerance is refused, within it is accepted."""
    name, secret = kind
    preset = load_preset(name)
    found = verify(signed(name, secret=secret), preset, ring(preset, secret), NOW + shift_s)
    rule = preset.timestamp
    fresh = rule is None or -rule.future_s <= shift_s <= rule.past_s

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
    bad = RawRequest(good.method, good.url, good.headers, body)

    assert isinstance(verify(bad, preset, ring(preset, secret), NOW), Rejected)


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
