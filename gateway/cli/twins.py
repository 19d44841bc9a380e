"""A signed request for a source, and its wrong twins.

Each twin says what a correct gateway must make of it, derived from what the preset signs: a
changed id that no signature covers is not a forgery. Pure: clock and ids are parameters.
"""

import json
from dataclasses import dataclass, replace
from typing import Any

from gateway.cli.errors import CommandError, Exit
from gateway.source import Source
from verifiers.keys import Key
from verifiers.locate import Locator, Place
from verifiers.preset import Preset
from verifiers.request import RawRequest
from verifiers.sign import sign
from verifiers.verdict import Rejected
from verifiers.verify import verify

#: What `--tamper` may change after signing.
PARTS = ("body", "sig", "ts", "id")
Headers = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be sent. `body` is `None` where one is made up; instants in unix seconds."""

    event_id: str
    event_type: str
    body: bytes | None
    job_id: str | None
    signed_at: int


@dataclass(frozen=True, slots=True)
class Twin:
    """A request, and whether a correct gateway accepts it."""

    request: RawRequest
    acceptable: bool
    #: Why, for a person.
    why: str


def build(source: Source, wanted: Wanted, now: int, tamper: str | None = None) -> Twin:
    """Return the request that `wanted` describes, changed in one part after signing."""
    body = _body(source, wanted)
    key = _newest(source, now)
    headers = _sign(source.preset, key, body, wanted)
    extra = [(b"content-type", b"application/json")]
    job = source.job_id
    if job is not None and job.place is Place.HEADER and wanted.job_id is not None:
        extra.append((job.name, wanted.job_id.encode()))
    request = RawRequest("POST", source.url, (*extra, *headers), body)
    if tamper is not None:
        return _tampered(source.preset, key, request, wanted, tamper)
    return Twin(request, *_age(source.preset, now - wanted.signed_at))


def reason_of(source: Source, request: RawRequest, now: int) -> str | None:
    """Return the reason for which our own verification refuses a request, `None` if it does not."""
    verdict = verify(request, source.preset, source.keys, now)
    return str(verdict.reason) if isinstance(verdict, Rejected) else None


def _age(preset: Preset, age_s: int) -> tuple[bool, str]:
    if age_s == 0:
        return True, "it is genuine"
    rule = preset.timestamp
    if rule is None or not preset.timestamp_signed:
        return True, f"{preset.name} signs no time; only deduplication stops a replay"
    if age_s <= rule.past_s:
        return True, f"{age_s} s old is within the tolerance of {rule.past_s} s"
    return False, f"it is {age_s} s old, more than the tolerance of {rule.past_s} s"


def _newest(source: Source, now: int) -> Key:
    live = source.keys.live(now)
    if not live:
        raise CommandError(
            f"source {source.name} has no key that is live now",
            Exit.CONFIGURATION,
            "not_before and not_after of its keys",
        )
    return live[-1]


def _sign(preset: Preset, key: Key, body: bytes, wanted: Wanted) -> Headers:
    try:
        headers = sign(
            body,
            preset,
            key,
            wanted.signed_at,
            event_id=wanted.event_id,
            event_type=wanted.event_type,
        )
    except TypeError:
        raise CommandError(
            f"key {key.id} can only check signatures, it cannot make them",
            Exit.USAGE,
            "a source whose key is a shared secret",
        ) from None
    except ValueError as error:
        raise CommandError(f"cannot sign this: {error}", Exit.USAGE) from None
    return tuple(headers)


# ---------------------------------------------------------------- bodies


def _body(source: Source, wanted: Wanted) -> bytes:
    """Return the body as given, or one with id, type and job id where this source looks."""
    if wanted.body is not None and wanted.job_id is None:
        return wanted.body
    document = _parsed(wanted.body)
    if wanted.body is None:
        document["type"] = wanted.event_type
        _put_first(document, source.preset.event_type, wanted.event_type)
        _put_first(document, source.preset.event_id, wanted.event_id)
        if not source.preset.event_id:
            document["id"] = wanted.event_id
    if wanted.job_id is not None:
        _put_job(document, source, wanted.job_id)
    return json.dumps(document, separators=(",", ":")).encode()


def _parsed(body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {}
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise CommandError("--job needs a body that is a JSON object", Exit.USAGE)
    return document


def _put_first(document: dict[str, Any], places: tuple[Locator, ...], text: str) -> None:
    if places and places[0].place is Place.BODY:
        _put(document, places[0].pointer, text)


def _put_job(document: dict[str, Any], source: Source, job_id: str) -> None:
    if source.job_id is None:
        raise CommandError(
            f"source {source.name} does not say where an event names its job",
            Exit.USAGE,
            f'job_id = "body:/data/job_id" in [sources.{source.name}]',
        )
    if source.job_id.place is Place.BODY:
        _put(document, source.job_id.pointer, job_id)


def _put(document: dict[str, Any], pointer: tuple[str, ...], text: str) -> None:
    for token in pointer[:-1]:
        below = document.setdefault(token, {})
        if not isinstance(below, dict):
            raise CommandError(f"the body has no object at {token!r}", Exit.USAGE)
        document = below
    document[pointer[-1]] = text


# ---------------------------------------------------------------- tampering


def _tampered(preset: Preset, key: Key, request: RawRequest, wanted: Wanted, part: str) -> Twin:
    if part == "body":
        changed = replace(request, body=request.body + b" ")
        return Twin(changed, *_covered(preset, "body", covered=preset.body_signed))
    if part == "sig":
        if not preset.body_signed:
            raise CommandError(f"{preset.name} does not sign the body", Exit.USAGE)
        other = _sign(preset, key, request.body + b"\n", wanted)
        changed = _with_headers(request, dict(other))
        return Twin(changed, acceptable=False, why="the signature is of something else")
    if part == "ts":
        return Twin(
            _other_time(preset, request, wanted),
            *_covered(preset, "timestamp", covered=preset.timestamp_signed),
        )
    return Twin(
        _other_id(preset, request, wanted), *_covered(preset, "id", covered=preset.id_signed)
    )


def _covered(preset: Preset, part: str, *, covered: bool) -> tuple[bool, str]:
    if covered:
        return False, f"the {part} was changed after signing"
    return True, f"{preset.name} does not sign the {part}, so nobody can see the change"


def _with_headers(request: RawRequest, values: dict[bytes, bytes]) -> RawRequest:
    headers = tuple((name, values.get(name, value)) for name, value in request.headers)
    return replace(request, headers=headers)


def _other_time(preset: Preset, request: RawRequest, wanted: Wanted) -> RawRequest:
    rule = preset.timestamp
    if rule is None:
        raise CommandError(f"{preset.name} sends no timestamp", Exit.USAGE, "--tamper body")
    was, other = rule.write(wanted.signed_at), rule.write(wanted.signed_at + 1)
    place = rule.places[0]
    name = preset.signature[0].name if place.place is Place.SIGNATURE else place.name
    values = {key: value.replace(was, other, 1) for key, value in request.headers if key == name}
    return _with_headers(request, values)


def _other_id(preset: Preset, request: RawRequest, wanted: Wanted) -> RawRequest:
    if not preset.event_id:
        raise CommandError(f"{preset.name} sends no event id", Exit.USAGE, "--tamper body")
    was, other = wanted.event_id.encode(), wanted.event_id[::-1].encode()
    place = preset.event_id[0]
    if place.place is Place.HEADER:
        return _with_headers(request, {place.name: other})
    if was not in request.body:
        raise CommandError("the body does not hold the event id", Exit.USAGE, "--tamper body")
    return replace(request, body=request.body.replace(was, other, 1))
