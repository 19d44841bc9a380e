"""Is this request what it claims? The answer, and the evidence for it.

`verify` is total and pure: any bytes at all give a verdict, never an exception. Checks are made
in the order of `verifiers.verdict.Check`, and the first that fails is the reason. The signature
comes before the clock, so `timestamp_too_old` says that an authentic request came late (a
replay), and no forgery is ever recorded under that name.
"""

from verifiers.claim import Claim, read, read_claim
from verifiers.encoding import equal
from verifiers.keys import Key, KeyRing
from verifiers.layout import Entries
from verifiers.locate import is_form
from verifiers.preset import BODY, Match, Preset
from verifiers.reading import Reading
from verifiers.reason import Reason
from verifiers.request import RawRequest
from verifiers.verdict import Rejected, Verified

__all__ = ["Claim", "read_claim", "verify"]


def verify(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> Verified | Rejected:
    """Return the verdict on `request` at `now` (unix seconds)."""
    reading = Reading(request, request.body)
    if preset.scheme == "none":
        return _unsigned(reading, preset, keys)
    claim = read(reading, preset, keys)
    if isinstance(claim, Reason):
        if claim is Reason.SIGNATURE_MISSING and preset.otherwise and keys.otherwise:
            return verify(request, preset.otherwise, keys.otherwise, now)
        return Rejected(claim)
    key = _match(claim, preset, keys, now)
    if isinstance(key, Reason):
        return Rejected(key)
    reason = None
    if preset.matches or claim.after is not None:
        reason = _disagreement(claim, reading, preset, key, now)
    if reason is None and preset.timestamp is not None and claim.at is not None:
        reason = preset.timestamp.judge(claim.at, now)
    if reason is not None:
        return Rejected(reason)
    return Verified(key.id, preset, reading, claim)


def _match(claim: Claim, preset: Preset, keys: KeyRing, now: int) -> Key | Reason:
    """Return the key that made one of the signatures."""
    candidates = claim.candidates
    if candidates is None and not preset.of_key and claim.content_of is None:
        candidates = _candidates(claim, preset)
        if not candidates:
            return Reason.CONTENT_MISSING
    live = keys.live(now, claim.key_name)
    for key in live:
        if _made(key, claim, preset, candidates):
            return key
    if not keys.timeless:
        for key in keys.others(now):
            if _made(key, claim, preset, candidates):
                return Reason.KEY_NOT_YET_VALID if key.is_early(now) else Reason.KEY_EXPIRED
    if not live and (preset.published is not None or claim.key_name is not None):
        return Reason.KEY_UNKNOWN
    return Reason.SIGNATURE_MISMATCH


def _candidates(claim: Claim, preset: Preset) -> list[tuple[bytes, Entries]]:
    """Return the contents that may have been signed, each with all signatures."""
    if len(preset.contents) == 1:
        content = preset.contents[0].render(claim.found)
        return [] if content is None else [(content, claim.signatures)]
    contents = [content.render(claim.found) for content in preset.contents]
    return [(content, claim.signatures) for content in contents if content is not None]


def _made(
    key: Key, claim: Claim, preset: Preset, candidates: list[tuple[bytes, Entries]] | None
) -> bool:
    """Whether the key made the signature that the request needs, or all of them."""
    if key.needs is not None and not _has(claim, key):
        return False
    if candidates is None:
        candidates = _candidates_of(key, claim, preset)
    version, sizes = key.version, key.signature_bytes
    for content, signatures in candidates:
        own = [
            raw for label, raw in signatures
            if label == version and (not sizes or len(raw) == sizes)
        ]  # fmt: skip
        right = bool(own) and key.prepared.matches(content, own)
        if right is not claim.every:  # one that is right is enough, or one that is wrong too many
            return right
    return claim.every and bool(candidates)


def _candidates_of(key: Key, claim: Claim, preset: Preset) -> list[tuple[bytes, Entries]]:
    """Return the contents for a key, where a part of the key is in them."""
    if claim.content_of is not None:
        content = claim.content_of(key)
        return [] if content is None else [(content, claim.signatures)]
    fill_from_key(claim, preset, key)
    return _candidates(claim, preset)


def fill_from_key(claim: Claim, preset: Preset, key: Key) -> None:
    """Put the parts of a key into their slots."""
    for slot, part in preset.of_key:
        claim.found[slot] = key.part(part)


def _has(claim: Claim, key: Key) -> bool:
    return key.needs is not None and key.needs[1] in (claim.found[key.needs[0]] or b"")


def _disagreement(
    claim: Claim, reading: Reading, preset: Preset, key: Key, now: int
) -> Reason | None:
    """Return why what is signed is of another request than this, or None."""
    fill_from_key(claim, preset, key)
    if not all(_agrees(match, claim, reading) for match in preset.matches):
        return Reason.CONTENT_MISMATCH
    return None if claim.after is None else claim.after(key, now)


def _agrees(match: Match, claim: Claim, reading: Reading) -> bool:
    given = reading.at(match.place)
    if given is None:
        absent = not reading.body or is_form(reading.request)
        return match.optional or (match.unless_form and absent)
    wanted = match.wanted.render(claim.found)
    return wanted is not None and equal(given, wanted)


def _unsigned(reading: Reading, preset: Preset, keys: KeyRing) -> Verified | Rejected:
    """Accept what nobody signed as the hint that it is; the key ring says that this is wanted."""
    if not keys.unverified:
        return Rejected(Reason.SIGNATURE_MISSING)
    if preset.body_required and not reading.body:
        return Rejected(Reason.BODY_EMPTY)
    found: list[bytes | None] = [None] * preset.slot_count
    found[BODY] = reading.body
    for name, value in reading.request.headers:
        slot = preset.slots.get(name)
        if slot is not None:
            found[slot] = value
    return Verified("", preset, reading, Claim([], found, None, covers_body=False))
