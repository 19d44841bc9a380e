"""The mirror of `verify`: the headers that make a request acceptable.

For deliveries of our own and for testing endpoints. What is signed here, `verify` accepts; a
property test holds that for every preset. A scheme whose key can only check raises TypeError.
"""

from verifiers.content import Field
from verifiers.encoding import encode
from verifiers.keys import Key, KeyRing
from verifiers.layout import Entries, Layout, compose
from verifiers.locate import Place
from verifiers.preset import ID, TYPE, Preset
from verifiers.replay import is_usable_id


def sign(
    body: bytes,
    preset: Preset,
    keys: KeyRing | Key,
    now: int,
    *,
    event_id: str,
    event_type: str | None = None,
) -> list[tuple[bytes, bytes]]:
    """Return the header pairs for `body`, signed at `now` (unix seconds).

    Each live key of a ring signs where the layout has room for several, else the last one.
    ValueError when the preset cannot carry `event_id` or no key is live. The body is sent as it
    is: where a provider puts id and type into the body, they are the caller's to write.
    """
    for text in (event_id, event_type):
        if text is not None and not is_usable_id(text):
            raise ValueError("ids and types are 1 to 255 printable ASCII characters, no space")
    values: dict[Field, bytes] = {"body": body, "id": event_id.encode()}
    if preset.timestamp is not None:
        values["timestamp"] = preset.timestamp.write(now)
    if preset.signed.id_ends_at and preset.signed.id_ends_at in values["id"]:
        raise ValueError(f"the id contains {preset.signed.id_ends_at.decode()!r}")
    if preset.body_required and not body:
        raise ValueError(f"{preset.name} needs a body")
    headers = _information(preset, event_id, event_type)
    entries = _signatures(preset, keys, now, values)
    if preset.timestamp is not None:
        place = preset.timestamp.places[0]
        if place.place is Place.SIGNATURE:
            entries.insert(0, (place.name, values["timestamp"]))
        else:
            headers.append((place.name, values["timestamp"]))
    value = compose(preset.layout, preset.prefix, entries)
    headers.append((preset.signature[0].name, value))
    return headers


def _information(
    preset: Preset, event_id: str, event_type: str | None
) -> list[tuple[bytes, bytes]]:
    """Return the headers beside signature and timestamp: id, type, and the required ones."""
    known = {ID: event_id.encode(), TYPE: event_type.encode() if event_type else None}
    headers = {}
    for slot, places in ((ID, preset.event_id), (TYPE, preset.event_type)):
        value = known[slot]
        if places and places[0].place is Place.HEADER and value is not None:
            headers[places[0].name] = value
    for _, name, sample in preset.required:
        headers.setdefault(name, sample)
    return list(headers.items())


def _signatures(
    preset: Preset, keys: KeyRing | Key, now: int, values: dict[Field, bytes]
) -> Entries:
    signers = (keys,) if isinstance(keys, Key) else keys.live(now)
    if not signers:
        raise ValueError("no key is live")
    if preset.layout is Layout.BARE:
        signers = signers[-1:]
    content = preset.signed.render(values)
    return [(k.version, encode(preset.encoding, k.prepared.sign(content))) for k in signers]
