"""Changes that would have made a refused signature right.

Each is tried through `verify` itself, with one thing changed: the bytes of the body, the spelling
of the signature, the form of the secret. What comes out right tells a person what went wrong on
the way. Nothing here accepts a request.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from verifiers.document import Document, Readability
from verifiers.encoding import Encoding, encode
from verifiers.keys import KeyRing, SecretError, build_key_ring
from verifiers.layout import Kind
from verifiers.locate import Place
from verifiers.preset import Preset, SecretForm
from verifiers.request import RawRequest
from verifiers.verdict import Reason, Rejected
from verifiers.verify import Claim, read_claim, verify


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person can act on: what was seen, and the fix."""

    seen: str
    fix: str


def near_misses(
    request: RawRequest, preset: Preset, keys: KeyRing, now: int, secrets: tuple[str, ...]
) -> Iterator[Finding]:
    """Try one change at a time; report each that makes the signature right."""
    for body, seen, fix in _other_bodies(request.body):
        if _is_right(replace(request, body=body), preset, keys, now):
            yield Finding(f"the signature is right for the body {seen}", fix)
            break
    if preset.encoding is Encoding.HEX:
        lower = _with_signature(request, preset, signature_value(request, preset).lower())
        if _is_right(lower, preset, keys, now):
            yield Finding("the signature is in upper case", "send it in lower case")
    for headers, seen, fix in _other_encodings(request, preset, keys):
        if _is_right(headers, preset, keys, now):
            yield Finding(seen, fix)
    for ring, seen, fix in _other_secrets(preset, secrets):
        if _is_right(request, preset, ring, now):
            yield Finding(f"the signature is right for the secret {seen}", fix)


def signature_value(request: RawRequest, preset: Preset) -> bytes:
    """Return the first value of a signature header, empty when there is none."""
    headers = [place for place in preset.signature if place.place is Place.HEADER]
    values = [value for place in headers for value in request.values(place.name)]
    return values[0] if values else b""


def _is_right(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> bool:
    """Whether the signature is right, fresh or not."""
    verdict = verify(request, preset, keys, now)
    fine = (Reason.TIMESTAMP_TOO_OLD, Reason.TIMESTAMP_IN_FUTURE)
    return not isinstance(verdict, Rejected) or verdict.reason in fine


def _other_bodies(body: bytes) -> Iterator[tuple[bytes, str, str]]:
    raw = "verify the bytes as they came over the wire; something on the way changed them"
    if body != body.rstrip():
        yield body.rstrip(), "without the white space at its end", raw
    yield body + b"\n", "with a line break at its end", f"{raw}, or the file lost it"
    yield body + b"\r\n", "with CRLF at its end", f"{raw}, or the file lost it"
    yield body.replace(b"\r\n", b"\n"), "with LF for CRLF", raw
    yield body.removeprefix(b"\xef\xbb\xbf"), "without its byte order mark", raw
    if Document(body).state is not Readability.READABLE:
        return
    try:
        value = json.loads(body)
    except ValueError:  # an integer of thousands of digits
        return
    again = "it was parsed and written again on the way; hash the raw bytes, before any parser"
    for compact, ascii_only in ((True, False), (True, True), (False, False), (False, True)):
        separators = (",", ":") if compact else (", ", ": ")
        text = json.dumps(value, separators=separators, ensure_ascii=ascii_only)
        yield text.encode("utf-8", "replace"), "in another spelling of the same JSON", again


def _other_encodings(
    request: RawRequest, preset: Preset, keys: KeyRing
) -> Iterator[tuple[RawRequest, str, str]]:
    """Write the signature in the preset's encoding when it came in another."""
    text = signature_value(request, preset).removeprefix(preset.layout.prefix)
    if preset.layout.kind is not Kind.BARE:
        return
    for encoding in Encoding:
        other = replace(preset, encoding=encoding)
        claim = read_claim(request, other, keys)
        if encoding is preset.encoding or not isinstance(claim, Claim):
            continue
        value = preset.layout.prefix + encode(preset.encoding, claim.signatures[0][1])
        if value != preset.layout.prefix + text:
            seen = f"the signature is right, but written as {encoding}"
            yield _with_signature(request, preset, value), seen, f"write it as {preset.encoding}"


def _with_signature(request: RawRequest, preset: Preset, value: bytes) -> RawRequest:
    names = {place.name for place in preset.signature}
    changed = tuple((n, value if n in names else v) for n, v in request.headers)
    return replace(request, headers=changed)


def _other_secrets(preset: Preset, secrets: tuple[str, ...]) -> Iterator[tuple[KeyRing, str, str]]:
    for text in secrets:
        for spelled, words in ((text, ""), (text.rpartition("_")[2], " without its prefix")):
            for form, shared in product(("utf8", "base64", "hex"), _shared(preset)):
                plain = replace(shared, form=form, prefix="", private_prefix="", prefix_kept=False)
                other = replace(preset, secrets=(plain,), otherwise=None)
                try:
                    ring = build_key_ring(other, [("-", spelled, None, None)], allow_short=True)
                except SecretError:
                    continue
                yield ring, f"read as {form}{words}", _ANOTHER_FORM


def _shared(preset: Preset) -> list[SecretForm]:
    """Return the forms that are one shared secret and nothing else."""
    return [f for f in preset.secrets if not (f.algorithm.is_public or f.parts)]


_ANOTHER_FORM = (
    "the sender reads the secret in another form than this preset: another preset fits better"
    " (stripe uses the text itself, Standard Webhooks decodes it), or the sender has a fault"
)
