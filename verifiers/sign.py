"""The mirror of `verify`: what makes a request acceptable.

For deliveries of our own and for testing endpoints. What is signed here, `verify` accepts; a
property test holds that for every preset. A scheme whose key can only check raises TypeError.
"""

import json
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

from verifiers.claim import collect
from verifiers.document import Document, value_at
from verifiers.encoding import encode
from verifiers.keys import Key, KeyRing
from verifiers.layout import Entries, Kind
from verifiers.locate import Locator, Place, is_form
from verifiers.preset import ID, KEY_NAME, TIMESTAMP, TYPE, Preset
from verifiers.reading import Reading
from verifiers.replay import is_usable_id
from verifiers.request import RawRequest

Headers = list[tuple[bytes, bytes]]


def sign(
    body: bytes,
    preset: Preset,
    keys: KeyRing | Key,
    now: int,
    *,
    event_id: str,
    event_type: str | None = None,
    url: str = "",
) -> Headers:
    """Return the header pairs for `body`, signed at `now` (unix seconds), sent by POST to `url`.

    Each live key of a ring signs where the layout has room for several, else the last one.
    ValueError when the preset cannot carry `event_id`, no key is live, or the signature stands
    elsewhere than in headers (see `sign_request`). The body is sent as it is: where a provider
    puts id and type into the body, they are the caller's to write.
    """
    bare = RawRequest("POST", url, (), body)
    signed = sign_request(bare, preset, keys, now, event_id=event_id, event_type=event_type)
    if signed.body != body or signed.url != url:
        raise ValueError(f"{preset.name} does not carry its signature in headers alone")
    return list(signed.headers)


def sign_request(
    request: RawRequest,
    preset: Preset,
    keys: KeyRing | Key,
    now: int,
    *,
    event_id: str,
    event_type: str | None = None,
) -> RawRequest:
    """Return `request` with everything that makes it acceptable; raises as `sign` does.

    Where signature or timestamp stand in the body or the query, these are written anew.
    """
    for text in (event_id, event_type):
        if text is not None and not is_usable_id(text):
            raise ValueError("ids and types are 1 to 255 printable ASCII characters, no space")
    if preset.body_required and not request.body:
        raise ValueError(f"{preset.name} needs a body")
    signers = (keys,) if isinstance(keys, Key) else keys.live(now)
    signers = tuple(key for key in signers if key.needs is None)
    if not signers and not preset.unsigned:
        raise ValueError("no key is live")
    prepared = _informed(request, preset, signers, event_id, event_type)
    if preset.unsigned:
        return prepared
    if preset.published is not None and preset.published.url_from is not None:
        raise TypeError(f"{preset.name} names its certificate by an address, which is not ours")
    prepared = _naming_key(prepared, preset, signers[-1])
    if preset.scheme == "items":
        return _signed_items(prepared, preset, signers[-1])
    if preset.scheme != "signature":
        return _signed_otherwise(prepared, preset, signers[-1], now)
    if preset.layout.kind in (Kind.BARE, Kind.JSON_BASE64):
        signers = signers[-1:]
    return _signed(prepared, preset, signers, now)


def _informed(
    request: RawRequest,
    preset: Preset,
    signers: tuple[Key, ...],
    event_id: str,
    event_type: str | None,
) -> RawRequest:
    """Return the request with what stands beside signature and timestamp: ids, required headers."""
    known = {ID: event_id.encode(), TYPE: event_type.encode() if event_type else None}
    headers: dict[bytes, bytes] = {}
    for slot, places in ((ID, preset.event_id), (TYPE, preset.event_type)):
        value = known[slot]
        if places and places[0].place is Place.HEADER and value is not None:
            headers[places[0].name] = value
    for slot, name, sample in preset.required:
        if preset.slots.get(name) == slot:
            headers.setdefault(name, sample)
    ends_at = preset.signed.id_ends_at
    if ends_at and ends_at in headers.get(preset.event_id[0].name, b""):
        raise ValueError(f"the id contains {ends_at.decode()!r}")
    given = {name for name, _ in request.headers}
    pairs = tuple((n, v) for n, v in headers.items() if n not in given)
    informed = RawRequest(request.method, request.url, request.headers + pairs, request.body)
    return _matching(informed, preset, signers)


def _matching(request: RawRequest, preset: Preset, signers: tuple[Key, ...]) -> RawRequest:
    """Return the request with what must stand beside a signature for one key."""
    for match in preset.matches:
        reading = Reading(request, request.body)
        if reading.at(match.place) is not None or match.optional:
            continue
        if match.unless_form and (is_form(request) or not request.body):
            continue
        found = _values(reading, preset, signers[-1] if signers else None)
        value = match.wanted.render(found)
        if value is not None:
            request = _put(request, match.place, value)
    return request


def _naming_key(request: RawRequest, preset: Preset, key: Key) -> RawRequest:
    """Return the request with the header that names the key, where a preset has one."""
    if key.name is None or KEY_NAME not in preset.slots.values():
        return request
    header = next(name for name, slot in preset.slots.items() if slot == KEY_NAME)
    return RawRequest(
        request.method, request.url, (*request.headers, (header, key.name)), request.body
    )


def _values(reading: Reading, preset: Preset, key: Key | None) -> list[bytes | None]:
    found, _ = collect(reading, preset)
    for slot, part in preset.of_key:
        found[slot] = key.part(part) if key else None
    return found


def _signed(request: RawRequest, preset: Preset, signers: tuple[Key, ...], now: int) -> RawRequest:
    rule = preset.timestamp
    stamp = rule.write(now) if rule is not None else None
    entries: Entries = []
    if rule is not None and stamp is not None:
        place = rule.places[0]
        if place.place is Place.SIGNATURE:
            entries.append((place.name, stamp))
        else:
            request = _put(request, place, stamp)
    for field in preset.signed.fields:
        if field.place is not None and field.place.place is Place.QUERY:
            request = _filled(request, field.place, b"%d" % now)
    name = signers[-1].name
    for slot, label in preset.labelled:
        if label not in dict(entries):
            entries.append((label, name or b"-" if slot == KEY_NAME else b"%d" % now))
    reading = Reading(request, request.body)
    for key in signers:
        found = _values(reading, preset, key)
        found[TIMESTAMP] = stamp
        for slot, label in preset.labelled:
            found[slot] = dict(entries)[label]
        content = preset.contents[0].render(found)
        if content is None:
            raise ValueError(f"{preset.name} signs something that this request does not have")
        signature = encode(preset.encoding, key.prepared.sign(content))
        entries.append((key.version, signature))
    value = preset.layout.compose(entries)
    return _put(request, preset.signature[0], value)


def _filled(request: RawRequest, place: Locator, value: bytes) -> RawRequest:
    """Return the request with something at a place of the query that is signed."""
    there = Reading(request, request.body).at(place) is not None
    return request if there else _put(request, place, value)


def _signed_items(request: RawRequest, preset: Preset, key: Key) -> RawRequest:
    """Return the request with each item of its batch signed."""
    document = _object(request.body)
    items = value_at(document, preset.options.pointer)
    if not isinstance(items, list) or not items:
        raise ValueError(f"{preset.name} needs a list at {preset.options.text}")
    for item in items:
        reading = Reading(request, request.body)
        reading.item = Document(json.dumps(item).encode()).value(())
        content = preset.signed.render(reading.value) or b""
        signature = encode(preset.encoding, key.prepared.sign(content))
        _set(item, preset.signature[0].pointer, preset.layout.compose([(key.version, signature)]))
    body = json.dumps(document, separators=(",", ":")).encode()
    return RawRequest(request.method, request.url, request.headers, body)


def _signed_otherwise(request: RawRequest, preset: Preset, key: Key, now: int) -> RawRequest:
    if preset.scheme != "jwt":
        raise TypeError(f"requests of {preset.name} cannot be made here")
    from verifiers.schemes.jwt import claims_for  # noqa: PLC0415
    from verifiers.schemes.jwt import sign as sign_token  # noqa: PLC0415

    found = _values(Reading(request, request.body), preset, key)
    header: dict[str, Any] = {"alg": key.version.decode(), "typ": "JWT"}
    if key.name is not None:
        header["kid"] = key.name.decode()
    rule = preset.options
    if rule.payload == "detached-raw":
        header |= {"b64": False, "crit": ["b64"]}
    payload = request.body
    place = preset.signature[0]
    if rule.payload == "inside" and place.place is not Place.RAW:
        payload = json.dumps(claims_for(rule, found, now), separators=(",", ":")).encode()
    token = sign_token(key, json.dumps(header, separators=(",", ":")).encode(), payload, rule)
    if place.place is Place.RAW:
        return RawRequest(request.method, request.url, request.headers, token)
    return _put(request, place, preset.layout.prefix + token)


# ---------------------------------------------------------------- writing


def _put(request: RawRequest, place: Locator, value: bytes) -> RawRequest:
    """Return the request with `value` at `place`, in place of what stood there."""
    method, url, headers, body = request.method, request.url, request.headers, request.body
    if place.place is Place.HEADER:
        kept = tuple(pair for pair in headers if pair[0] != place.name)
        return RawRequest(method, url, (*kept, (place.name, value)), body)
    if place.place is Place.QUERY or (place.place is Place.PARAM and not is_form(request)):
        sign = "&" if "?" in url else "?"
        name = quote_from_bytes(place.name)
        return RawRequest(method, f"{url}{sign}{name}={quote_from_bytes(value)}", headers, body)
    if place.place is Place.BODY:
        return RawRequest(method, url, headers, _with_json(body, place.pointer, value))
    return _with_field(request, place, value)


def _with_field(request: RawRequest, place: Locator, value: bytes) -> RawRequest:
    fields = Reading(request, request.body).form or []
    if place.pointed:
        inner = dict(fields).get(place.name, b"{}")
        value = _with_json(inner, place.pointer, value)
    kept = [(name, text) for name, text in fields if name != place.name]
    body = urlencode([*kept, (place.name, value)]).encode()
    headers = request.headers
    if not is_form(request):
        headers = (*headers, (b"content-type", b"application/x-www-form-urlencoded"))
    return RawRequest(request.method, request.url, headers, body)


def _with_json(body: bytes, pointer: tuple[str, ...], value: bytes) -> bytes:
    document = _object(body)
    _set(document, pointer, value)
    return json.dumps(document, separators=(",", ":")).encode()


def _object(body: bytes) -> Any:
    try:
        return json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON, and the signature belongs into it") from None


def _set(document: Any, pointer: tuple[str, ...], value: bytes) -> None:
    at = document
    for token in pointer[:-1]:
        at = at.setdefault(token, {}) if isinstance(at, dict) else None
    if not isinstance(at, dict):
        raise ValueError(f"the body has no object for {'/'.join(pointer)}")  # noqa: TRY004
    at[pointer[-1]] = value.decode("utf-8", "replace")
