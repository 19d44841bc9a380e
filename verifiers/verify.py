"""Is this request what it claims? The answer, and the evidence for it.

`verify` is total and pure: any bytes at all give a verdict, never an exception. Checks are made
in the order of `verifiers.verdict.Check`, and the first that fails is the reason. The signature
comes before the clock, so `timestamp_too_old` says that an authentic request came late (a
replay), and no forgery is ever recorded under that name.
"""

from dataclasses import dataclass

from verifiers.content import Field
from verifiers.document import Document, Readability
from verifiers.encoding import decode
from verifiers.keys import Key, KeyRing
from verifiers.layout import SIGNATURES_MAX, Entries, entries
from verifiers.locate import Locator, Place
from verifiers.preset import ID, SIGNATURE, TIMESTAMP, TYPE, Preset
from verifiers.replay import event_key, is_usable_id
from verifiers.request import RawRequest
from verifiers.verdict import Flag, Reason, Rejected, Verified


def verify(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> Verified | Rejected:
    """Return the verdict on `request` at `now` (unix seconds)."""
    claim = read_claim(request, preset, keys)
    if isinstance(claim, Reason):
        return Rejected(claim)
    key = _match(claim, preset, keys, now)
    if isinstance(key, Reason):
        return Rejected(key)
    if preset.timestamp is not None and claim.at is not None:
        reason = preset.timestamp.judge(claim.at, now)
        if reason is not None:
            return Rejected(reason)
    return _evidence(request, preset, key, claim)


@dataclass(slots=True)
class Claim:
    """What a request says about itself, well formed and not yet believed.

    `signatures` holds (version, raw signature); `values` the fields of the signed content.
    """

    signatures: Entries
    values: dict[Field, bytes]
    at: int | None
    found: list[bytes | None]


def read_claim(request: RawRequest, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what the request claims, or why that cannot be read."""
    found, repeated = _collect(request, preset)
    value = found[SIGNATURE]
    if value is None:
        return Reason.SIGNATURE_MISSING
    reason = _unmet(request, preset, found, repeated)
    if reason is not None:
        return reason
    parts = entries(preset.layout, preset.prefix, value)
    signatures = _signatures(parts, preset, keys)
    if not signatures:
        return Reason.SIGNATURE_MALFORMED
    values: dict[Field, bytes] = {"body": request.body}
    at = None
    if preset.timestamp is not None:
        text = _timestamp_text(parts, preset.timestamp.places[0], found, repeated)
        if isinstance(text, Reason):
            return text
        at = preset.timestamp.parse(text)
        if at is None:
            return Reason.TIMESTAMP_MALFORMED
        values["timestamp"] = text
    reason = _read_id(preset, found, repeated, values)
    return reason or Claim(signatures, values, at, found)


def _collect(request: RawRequest, preset: Preset) -> tuple[list[bytes | None], set[int]]:
    """Return the value in each slot, and the slots that were filled more than once."""
    found: list[bytes | None] = [None] * preset.slot_count
    repeated: set[int] = set()
    slot_of = preset.slots.get
    for name, value in request.headers:
        slot = slot_of(name)
        if slot is not None:
            if found[slot] is not None:
                repeated.add(slot)
            found[slot] = value
    return found, repeated


def _unmet(
    request: RawRequest, preset: Preset, found: list[bytes | None], repeated: set[int]
) -> Reason | None:
    if SIGNATURE in repeated:
        return Reason.SIGNATURE_REPEATED
    for slot, _, _ in preset.required:
        if slot in repeated:
            return Reason.HEADER_REPEATED
        if not found[slot]:
            return Reason.HEADER_MISSING
    return Reason.BODY_EMPTY if preset.body_required and not request.body else None


def _signatures(parts: Entries, preset: Preset, keys: KeyRing) -> Entries:
    """Return the first signatures of a version that a key answers; unreadable ones drop out."""
    named = [part for part in parts if part[0] in keys.sizes][:SIGNATURES_MAX]
    signatures = []
    for version, text in named:
        raw = decode(preset.encoding, text)
        if raw is not None and len(raw) == keys.sizes[version]:
            signatures.append((version, raw))
    return signatures


def _timestamp_text(
    parts: Entries, place: Locator, found: list[bytes | None], repeated: set[int]
) -> bytes | Reason:
    if place.place is Place.SIGNATURE:
        texts = [text for label, text in parts if label == place.name]
        if len(texts) > 1:
            return Reason.TIMESTAMP_REPEATED
        return texts[0] if texts else Reason.TIMESTAMP_MISSING
    if TIMESTAMP in repeated:
        return Reason.TIMESTAMP_REPEATED
    text = found[TIMESTAMP]
    return Reason.TIMESTAMP_MISSING if text is None else text


def _read_id(
    preset: Preset, found: list[bytes | None], repeated: set[int], values: dict[Field, bytes]
) -> Reason | None:
    """Put a header id among `values`; it must be there, and cut in one way, when it is signed."""
    if ID in repeated:
        return Reason.ID_REPEATED
    text = found[ID]
    if "id" not in preset.signed.fields:
        return None
    if text is None:
        return Reason.ID_MISSING
    ends_at = preset.signed.id_ends_at
    if not text or (ends_at is not None and ends_at in text):
        return Reason.ID_MALFORMED
    values["id"] = text
    return None


def _match(claim: Claim, preset: Preset, keys: KeyRing, now: int) -> Key | Reason:
    """Return the key that made one of the signatures."""
    content = preset.signed.render(claim.values)
    for key in keys.live(now):
        if _made(key, content, claim.signatures):
            return key
    if not keys.timeless:
        for key in keys.others(now):
            if _made(key, content, claim.signatures):
                return Reason.KEY_NOT_YET_VALID if key.is_early(now) else Reason.KEY_EXPIRED
    return Reason.SIGNATURE_MISMATCH


def _made(key: Key, content: bytes, signatures: Entries) -> bool:
    own = [raw for version, raw in signatures if version == key.version]
    return bool(own) and key.prepared.matches(content, own)


def _evidence(request: RawRequest, preset: Preset, key: Key, claim: Claim) -> Verified:
    document = Document(request.body)
    flags: list[Flag] = []
    event_id = _event_id(preset, claim, document, flags)
    event_type = _event_type(preset, claim, document, flags)
    return Verified(
        key.id,
        event_key(preset, event_id, claim.values),
        event_id,
        event_type,
        claim.at,
        tuple(flags),
        document,
    )


def _event_id(preset: Preset, claim: Claim, document: Document, flags: list[Flag]) -> str | None:
    if not preset.event_id:
        return None
    text = _text(preset.event_id[0], claim.found[ID], document, flags)
    if text is None:
        flags.append(Flag.ID_MISSING)
        return None
    if not is_usable_id(text):
        flags.append(Flag.ID_UNUSABLE)
        return None
    return text


def _event_type(preset: Preset, claim: Claim, document: Document, flags: list[Flag]) -> str | None:
    if not preset.event_type:
        return None
    text = _text(preset.event_type[0], claim.found[TYPE], document, flags)
    return text if text is not None and is_usable_id(text) else None


def _text(place: Locator, value: bytes | None, document: Document, flags: list[Flag]) -> str | None:
    """Return the text at `place`; `value` is that of its header."""
    if place.place is Place.HEADER:
        return None if value is None else value.decode("latin-1")
    text = document.at(place.pointer)
    if document.state is not Readability.READABLE:
        ambiguous = document.state is Readability.AMBIGUOUS
        flag = Flag.AMBIGUOUS_JSON if ambiguous else Flag.BODY_UNREADABLE
        if flag not in flags:
            flags.append(flag)
    return text
