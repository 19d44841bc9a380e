"""Batches whose items are each signed (Adyen) or each carry the token (Microsoft Graph).

`each` points to the list; places that begin with `item:` are read within one item. Every item
must be right: one that is not spoils the request, because an event is one request.
"""

from verifiers.claim import Claim, signatures_of
from verifiers.keys import KeyRing
from verifiers.layout import Entries  # noqa: TC001  # beside the others
from verifiers.preset import BODY, Preset
from verifiers.reading import Reading
from verifiers.reason import Reason

# More than any provider puts into one request.
ITEMS_MAX = 1000


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what the items of a request claim."""
    items = reading.document.value(preset.options.pointer)
    if not isinstance(items, list) or not 0 < len(items) <= ITEMS_MAX:
        return Reason.SIGNATURE_MISSING
    found: list[bytes | None] = [None] * preset.slot_count
    found[BODY] = reading.body
    candidates: list[tuple[bytes, Entries]] = []
    for item in items:
        reading.item = item
        value = reading.at(preset.signature[0])
        if not value:
            return Reason.SIGNATURE_MISSING
        signatures = signatures_of(preset.layout.entries(value), preset, keys)
        if not signatures:
            return Reason.SIGNATURE_MALFORMED
        content = preset.signed.render(reading.value) if preset.signed.fields else b""
        if content is None:
            return Reason.CONTENT_MISSING
        candidates.append((content, signatures))
    return Claim(candidates[0][1], found, None, candidates=candidates, every=True)
