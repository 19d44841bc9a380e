"""Why a request was refused, and what would mend it.

Explaining goes through the same `verify` again with one thing changed at a time (a header under
another name, the secret in another form, the body with a line break) and reports each change that
would have made the request acceptable. It is for a person who holds the secret, offline; it never
changes a verdict, and its lines hold neither secret nor expected signature.
"""

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches

from verifiers.keys import KeyRing
from verifiers.layout import Kind
from verifiers.locate import Locator, Place
from verifiers.near_miss import Finding, near_misses, signature_value
from verifiers.preset import Preset, load_preset, preset_names
from verifiers.request import RawRequest
from verifiers.timestamp import Unit
from verifiers.verdict import Flag, Reason, Verified
from verifiers.verify import Claim, read_claim, verify


def explain(
    request: RawRequest, preset: Preset, keys: KeyRing, now: int, secrets: tuple[str, ...] = ()
) -> list[Finding]:
    """Return what is remarkable about the request, the likeliest first; empty when nothing is.

    `secrets` are the texts behind `keys`; with them, other forms of the secret are tried too.
    """
    verdict = verify(request, preset, keys, now)
    if isinstance(verdict, Verified):
        return [_FLAGS[flag] for flag in verdict.flags]
    findings = list(_by_reason(request, preset, keys, now, verdict.reason))
    if verdict.reason in (Reason.SIGNATURE_MISMATCH, Reason.SIGNATURE_MALFORMED):
        findings += near_misses(request, preset, keys, now, secrets)
    return list(dict.fromkeys(findings)) or [_PLAIN[verdict.reason]]


def _by_reason(
    request: RawRequest, preset: Preset, keys: KeyRing, now: int, reason: Reason
) -> Iterator[Finding]:
    if reason in _MISSING:
        yield from _other_names(request, _places(preset, reason))
    if reason is Reason.SIGNATURE_MISSING:
        yield from _other_presets(request, preset)
    if reason is Reason.SIGNATURE_MALFORMED:
        yield from _misshapen(request, preset, keys)
    if reason in (Reason.TIMESTAMP_TOO_OLD, Reason.TIMESTAMP_IN_FUTURE):
        yield from _clock(request, preset, keys, now)
    if reason is Reason.TIMESTAMP_MALFORMED:
        yield from _milliseconds(request, preset, keys)


_MISSING = frozenset({Reason.SIGNATURE_MISSING, Reason.TIMESTAMP_MISSING, Reason.ID_MISSING})


def _places(preset: Preset, reason: Reason) -> tuple[Locator, ...]:
    if reason is Reason.SIGNATURE_MISSING:
        return preset.signature
    if reason is Reason.ID_MISSING:
        return preset.event_id
    return preset.timestamp.places if preset.timestamp is not None else ()


def _other_names(request: RawRequest, places: tuple[Locator, ...]) -> Iterator[Finding]:
    """Report headers whose names are nearly those that the preset reads."""
    wanted = [place.name.decode() for place in places if place.place is Place.HEADER]
    names = {name.decode("latin-1") for name, _ in request.headers}
    for name in sorted(names.difference(wanted)):
        if get_close_matches(name, wanted, cutoff=0.8):
            yield Finding(
                f"there is a header {name!r}",
                f"this preset reads {wanted[0]!r} only; does a proxy rename headers?",
            )


def _other_presets(request: RawRequest, preset: Preset) -> Iterator[Finding]:
    names = {name for name, _ in request.headers}
    wanted = {place.name for place in preset.signature}
    for other in preset_names():
        found = [p.name for p in load_preset(other).signature if p.name in names]
        if found and found[0] not in wanted:
            yield Finding(
                f"the header {found[0].decode()!r} belongs to the preset {other!r}",
                f"set preset = {other!r} for this source, or check who sends to it",
            )


def _misshapen(request: RawRequest, preset: Preset, keys: KeyRing) -> Iterator[Finding]:
    value = signature_value(request, preset)
    if value != value.strip() or b"\t" in value:
        yield Finding(
            "white space stands around the signature", "send and forward the value unchanged"
        )
    if preset.layout.kind is Kind.LIST and value.count(b",v") > value.count(b" v"):
        yield Finding(
            "signatures are separated by commas",
            "they are separated by spaces; a proxy has joined two header lines",
        )
    parts = preset.layout.entries(value)
    fields = {place.name for place in (preset.timestamp.places if preset.timestamp else ())}
    given = {label for label, _ in parts} - fields
    labels = sorted(label.decode("latin-1") for label in given)
    if labels and given.isdisjoint(keys.sizes):
        known = ", ".join(sorted(version.decode() for version in keys.sizes))
        yield Finding(
            f"no usable signature among the labels {labels}",
            f"the keys of this source answer {known} only; another label is never accepted",
        )
    if preset.layout.kind is Kind.BARE and not parts:
        yield Finding(
            "the signature does not begin with the expected prefix",
            f"it must begin with {preset.layout.prefix.decode()!r}; another algorithm is not"
            " accepted",
        )


def _clock(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> Iterator[Finding]:
    claim = read_claim(request, preset, keys)
    rule = preset.timestamp
    if not isinstance(claim, Claim) or claim.at is None or rule is None:
        return
    off_s = now - claim.at
    direction, allowed_s = ("before", rule.past_s) if off_s > 0 else ("after", rule.future_s)
    yield Finding(
        f"the signature is right; it was made {abs(off_s)} s {direction} now, {allowed_s} s are"
        " allowed",
        "a replay, a request that waited in a queue, or a clock that is off: compare both clocks"
        " with NTP; to check a capture, give its time (--at)",
    )


def _milliseconds(request: RawRequest, preset: Preset, keys: KeyRing) -> Iterator[Finding]:
    rule = preset.timestamp
    if rule is None or rule.unit not in _OTHER_UNIT:
        return
    other = replace(preset, timestamp=replace(rule, unit=_OTHER_UNIT[rule.unit]))
    if isinstance(read_claim(request, other, keys), Claim):
        yield Finding(
            f"the timestamp is no number of {_UNITS[rule.unit]}",
            f"the sender counts in {_UNITS[_OTHER_UNIT[rule.unit]]}; the preset wants"
            f" {_UNITS[rule.unit]}",
        )


_UNITS = {Unit.SECONDS: "seconds", Unit.MILLISECONDS: "milliseconds"}
_OTHER_UNIT = {Unit.SECONDS: Unit.MILLISECONDS, Unit.MILLISECONDS: Unit.SECONDS}

_FLAGS = {
    Flag.ID_MISSING: Finding(
        "accepted, but without an event id", "deduplication uses the digest of what is signed"
    ),
    Flag.ID_UNUSABLE: Finding(
        "accepted, but the event id is not 1 to 255 printable ASCII characters",
        "deduplication uses the digest of what is signed",
    ),
    Flag.AMBIGUOUS_JSON: Finding(
        "accepted, but a JSON key stands twice (perhaps in another case)",
        "no id or type is taken from the body; ask the sender to mend it",
    ),
    Flag.UNSIGNED: Finding(
        "accepted, though the provider signs nothing",
        "it is a hint that anybody could send; only the status read says what is true",
    ),
    Flag.BODY_UNREADABLE: Finding(
        "accepted, but the body is not JSON that can be read safely",
        "no id or type is taken from the body",
    ),
}

_PLAIN = {
    Reason.SIGNATURE_MISSING: Finding(
        "there is no signature", "check that the sender has a secret for this endpoint"
    ),
    Reason.SIGNATURE_REPEATED: Finding(
        "the signature header stands twice", "exactly one is accepted; does a proxy add one?"
    ),
    Reason.HEADER_MISSING: Finding(
        "a header that the provider always sends is missing", "does a proxy strip headers?"
    ),
    Reason.HEADER_REPEATED: Finding(
        "a header that must stand once stands twice", "does a proxy add headers?"
    ),
    Reason.BODY_EMPTY: Finding("the body is empty", "this provider never sends an empty one"),
    Reason.SIGNATURE_MALFORMED: Finding(
        "the signature cannot be read", "only its canonical text and exact length are accepted"
    ),
    Reason.TIMESTAMP_MISSING: Finding(
        "there is no timestamp", "without one a capture could be replayed for ever"
    ),
    Reason.TIMESTAMP_REPEATED: Finding("there are two timestamps", "exactly one is accepted"),
    Reason.TIMESTAMP_MALFORMED: Finding(
        "the timestamp is not written as the provider writes it",
        "its text must be canonical: of a number ASCII digits without sign, space or zeros",
    ),
    Reason.ID_MISSING: Finding("there is no event id", "it is part of what is signed"),
    Reason.ID_REPEATED: Finding("there are two event ids", "exactly one is accepted"),
    Reason.ID_MALFORMED: Finding(
        "the event id is empty or contains the separator of the signed content",
        "such an id could be shifted into the body; it is never accepted",
    ),
    Reason.BODY_UNDECODABLE: Finding(
        "the body cannot be decompressed",
        "its content-encoding must be gzip or deflate, whole, and not too large",
    ),
    Reason.CONTENT_MISSING: Finding(
        "something that is signed is not in the request",
        "compare the preset's `signed` with the request; was it changed on the way?",
    ),
    Reason.KEY_UNKNOWN: Finding(
        "the request names a key that is not held",
        "the provider's published keys may have to be fetched anew",
    ),
    Reason.KEY_URL_UNTRUSTED: Finding(
        "the request wants its key to be fetched from an address that is not the provider's",
        "nothing is fetched from there; this is how a forgery looks",
    ),
    Reason.CONTENT_MISMATCH: Finding(
        "the signature is right, but what it covers speaks of another request",
        "a token or URL for another body, endpoint or application; compare what is configured",
    ),
    Reason.SIGNATURE_MISMATCH: Finding(
        "the signature is made with another secret, or over other bytes",
        "compare the secret with the provider's page; then capture the raw body before any parser",
    ),
    Reason.KEY_EXPIRED: Finding(
        "the signature is right for a key that has expired", "the sender still uses the old secret"
    ),
    Reason.KEY_NOT_YET_VALID: Finding(
        "the signature is right for a key that is not valid yet", "bring its not_before forward"
    ),
    Reason.TIMESTAMP_TOO_OLD: Finding("the timestamp is too old", "compare the clocks"),
    Reason.TIMESTAMP_IN_FUTURE: Finding("the timestamp is in the future", "compare the clocks"),
}
