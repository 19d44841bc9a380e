"""What a request says about itself, well formed and not yet believed.

`read_claim` takes a request apart as its preset says and gives the first reason for which that
cannot be done. Nothing is compared with a key here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from verifiers.encoding import decode
from verifiers.keys import KeyRing
from verifiers.layout import SIGNATURES_MAX, Entries
from verifiers.locate import Place
from verifiers.preset import BODY, ID, KEY_NAME, SIGNATURE, TIMESTAMP, Preset, Published
from verifiers.reading import Reading, inflated
from verifiers.reason import Reason
from verifiers.request import RawRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from verifiers.keys import Key


@dataclass(slots=True)
class Claim:
    """A request, read.

    `signatures` holds (version, raw signature); `found` the values by slot; `at` unix seconds.
    Schemes of their own say more: `candidates` are contents with their signatures, where they are
    not the preset's `signed`, and `every` one of them must be right; `content_of` gives the
    content for a key, where that has a part in it; `after` is asked once the signature is right;
    `covers_body` and `signed_id` say what it covers, where that is not the same for every request.
    """

    signatures: Entries
    found: list[bytes | None]
    at: int | None
    key_name: bytes | None = None
    candidates: list[tuple[bytes, Entries]] | None = None
    every: bool = False
    content_of: "Callable[[Key], bytes | None] | None" = None
    after: "Callable[[Key, int], Reason | None] | None" = None
    covers_body: bool | None = None


def read_claim(request: RawRequest, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what the request claims, or why that cannot be read."""
    reading = Reading(request, request.body)
    return read(reading, preset, keys)


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what a request claims; `reading` then holds what was read on the way."""
    if preset.decoded:
        body = inflated(reading.request)
        if body is None:
            return Reason.BODY_UNDECODABLE
        reading.body = body
    if preset.read is not None:
        claim: Claim | Reason = preset.read(reading, preset, keys)
        return claim
    return _read_signature(reading, preset, keys)


def _read_signature(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    found, repeated = collect(reading, preset)
    value = found[SIGNATURE]
    if preset.several:
        value, parts = _pooled(reading, preset)
    else:
        parts = preset.layout.entries(value) if value is not None else []
    if value is None:
        return Reason.SIGNATURE_MISSING
    reason = unmet(reading, preset, found, repeated)
    if reason is not None:
        return reason
    signatures = signatures_of(parts, preset, keys)
    if not signatures:
        return Reason.SIGNATURE_MALFORMED
    if preset.labelled:
        _label(preset, parts, found)
    at = None
    rule = preset.timestamp
    if rule is not None:
        reason = _find_timestamp(preset, parts, found, repeated)
        if reason is not None:
            return reason
        at = rule.parse(found[TIMESTAMP] or b"")
        if at is None:
            return Reason.TIMESTAMP_MALFORMED
    reason = _doubtful_id(preset, found, repeated)
    if reason is None and preset.published is not None and not trusted(reading, preset.published):
        reason = Reason.KEY_URL_UNTRUSTED
    return reason or Claim(signatures, found, at, found[KEY_NAME])


def collect(reading: Reading, preset: Preset) -> tuple[list[bytes | None], set[int]]:
    """Return the value in each slot, and the slots that were filled more than once."""
    found: list[bytes | None] = [None] * preset.slot_count
    repeated: set[int] = set()
    slot_of = preset.slots.get
    for name, value in reading.request.headers:
        slot = slot_of(name)
        if slot is not None:
            if found[slot] is not None:
                repeated.add(slot)
            found[slot] = value
    found[BODY] = reading.body
    for slot, field in preset.derived:
        found[slot] = reading.value(field)
    return found, repeated


def unmet(
    reading: Reading, preset: Preset, found: list[bytes | None], repeated: set[int]
) -> Reason | None:
    """Return why the request lacks what every genuine one has, or None."""
    if repeated:
        if SIGNATURE in repeated and not preset.several:
            return Reason.SIGNATURE_REPEATED
        for slot in preset.single:
            if slot in repeated and slot not in (TIMESTAMP, ID):
                return Reason.HEADER_REPEATED
    for slot, _, _ in preset.required:
        if not found[slot]:
            return Reason.HEADER_MISSING
    return Reason.BODY_EMPTY if preset.body_required and not reading.body else None


def trusted(reading: Reading, published: Published) -> bool:
    """Whether the address that the request names for its key is the provider's, if it names one."""
    if published.url_from is None:
        return True
    url = reading.at(published.url_from)
    pattern = published.url_pattern
    return url is not None and pattern.fullmatch(url.decode("utf-8", "replace")) is not None


def signatures_of(parts: Entries, preset: Preset, keys: KeyRing) -> Entries:
    """Return the first signatures of a version that a key answers; unreadable ones drop out."""
    sizes_of, encoding = keys.sizes, preset.encoding
    signatures: Entries = []
    looked_at = 0
    for version, text in parts:
        sizes = sizes_of.get(version)
        if sizes is None or looked_at >= SIGNATURES_MAX:
            continue
        looked_at += 1
        raw = decode(encoding, text)
        if raw and (not sizes or len(raw) in sizes):
            signatures.append((version, raw))
    return signatures


def _pooled(reading: Reading, preset: Preset) -> tuple[bytes | None, Entries]:
    """Return one value and the entries of all, where several headers may each hold a signature."""
    names = [place.name for place in preset.signature]
    values = [value for name, value in reading.request.headers if name in names]
    parts = [part for value in values[:SIGNATURES_MAX] for part in preset.layout.entries(value)]
    return (values[0] if values else None), parts


def _label(preset: Preset, parts: Entries, found: list[bytes | None]) -> None:
    """Fill the slots of labels of the signature value; a label that stands twice fills none."""
    for slot, wanted in preset.labelled:
        texts = [text for label, text in parts if label == wanted]
        found[slot] = texts[0] if len(texts) == 1 else None


def _find_timestamp(
    preset: Preset, parts: Entries, found: list[bytes | None], repeated: set[int]
) -> Reason | None:
    """Put the text of the timestamp into its slot."""
    assert preset.timestamp is not None
    place = preset.timestamp.places[0]
    if place.place is Place.SIGNATURE:
        texts = [text for label, text in parts if label == place.name]
        if len(texts) > 1:
            return Reason.TIMESTAMP_REPEATED
        found[TIMESTAMP] = texts[0] if texts else None
    if TIMESTAMP in repeated:
        return Reason.TIMESTAMP_REPEATED
    return Reason.TIMESTAMP_MISSING if found[TIMESTAMP] is None else None


def _doubtful_id(preset: Preset, found: list[bytes | None], repeated: set[int]) -> Reason | None:
    """Return why a header id will not do; it must be cut in one way where it is signed."""
    if ID in repeated:
        return Reason.ID_REPEATED
    if not preset.id_in_content:
        return None
    text = found[ID]
    if text is None:
        return Reason.ID_MISSING
    ends_at = preset.signed.id_ends_at
    return Reason.ID_MALFORMED if not text or (ends_at is not None and ends_at in text) else None
