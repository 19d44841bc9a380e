"""HTTP Message Signatures (RFC 9421) with Content-Digest (RFC 9530).

Each label of `Signature-Input` says which components its signature covers. Required are the
method, a part of the target, and `created`; a body counts as covered only when `content-digest`
is among the components and is right for the bytes. The key decides the algorithm; `alg` may only
confirm it. Components with parameters other than `name` are not understood, and such a label is
left out. Authority and scheme are those of the configured URL, never of Host.
"""

import hashlib
import re
from typing import NamedTuple

from verifiers.claim import Claim, collect, unmet
from verifiers.encoding import Encoding, decode, equal
from verifiers.keys import Key, KeyRing
from verifiers.layout import SIGNATURES_MAX, VALUE_BYTES_MAX, Entries
from verifiers.preset import Preset
from verifiers.reading import Reading
from verifiers.reason import Reason

_MEMBER = re.compile(
    rb'\s*([a-z*][a-z0-9_.*-]*)=(\(((?:"[^"\\]*"(?:;name="[^"\\]*")?(?:\x20|(?=\))))*)\)'
    rb'((?:;[a-z*][a-z0-9_.*-]*=(?:"[^"\\]*"|[0-9]{1,15}))*))\s*(?:,|$)'
)
_COMPONENT = re.compile(rb'"([^"\\]*)"(?:;name="([^"\\]*)")?')
_PARAMETER = re.compile(rb';([a-z*][a-z0-9_.*-]*)=(?:"([^"\\]*)"|([0-9]+))')
_SIGNATURE = re.compile(rb"\s*([a-z*][a-z0-9_.*-]*)=:([A-Za-z0-9+/=]*):\s*(?:,|$)")
_DIGEST = re.compile(rb"\s*([a-z0-9-]+)=:([A-Za-z0-9+/=]*):\s*(?:,|$)")
_DIGESTS = {b"sha-256": hashlib.sha256, b"sha-512": hashlib.sha512}
_TARGETS = frozenset({b"@target-uri", b"@path", b"@request-target"})


class _Label(NamedTuple):
    """One label: what its signature covers, and what it says about itself."""

    components: list[tuple[bytes, bytes | None]]
    parameters: dict[bytes, bytes]
    text: bytes


def read(reading: Reading, preset: Preset, keys: KeyRing) -> Claim | Reason:
    """Return what the first usable label of a request claims."""
    given, named = _field(reading, b"signature"), _field(reading, b"signature-input")
    if given is None or named is None:
        return Reason.SIGNATURE_MISSING
    found, repeated = collect(reading, preset)
    reason = unmet(reading, preset, found, repeated)
    if reason is not None:
        return reason
    signatures = dict(_SIGNATURE.findall(given))
    reason = Reason.SIGNATURE_MALFORMED
    for name, label in _labels(named)[:SIGNATURES_MAX]:
        raw = decode(Encoding.BASE64, signatures.get(name, b"")) or b""
        claim = _claim(reading, preset, keys, label, raw, found)
        if isinstance(claim, Claim):
            return claim
        reason = claim
    return reason


def _field(reading: Reading, name: bytes) -> bytes | None:
    """Return a field whose lines are one list (RFC 9110, section 5.3), unless it is too long."""
    values = [value.strip() for value in reading.request.values(name)]
    joined = b", ".join(values)
    return joined if values and len(joined) <= VALUE_BYTES_MAX else None


def _labels(value: bytes) -> list[tuple[bytes, _Label]]:
    found: list[tuple[bytes, _Label]] = []
    at = 0
    while at < len(value):
        match = _MEMBER.match(value, at)
        if match is None:
            return found
        parameters = {name: text or number for name, text, number in _PARAMETER.findall(match[4])}
        components = [
            (component[1].lower(), component[2]) for component in _COMPONENT.finditer(match[3])
        ]
        found.append((match[1], _Label(components, parameters, match[2])))
        at = match.end()
    return found


def _claim(  # noqa: PLR0917  # what one label needs
    reading: Reading,
    preset: Preset,
    keys: KeyRing,
    label: _Label,
    raw: bytes,
    found: list[bytes | None],
) -> Claim | Reason:
    names = {name for name, _ in label.components}
    if not raw or b"@method" not in names or names.isdisjoint(_TARGETS):
        return Reason.SIGNATURE_MALFORMED
    created, expires = label.parameters.get(b"created"), label.parameters.get(b"expires")
    if created is None or not created.isdigit():
        return Reason.TIMESTAMP_MISSING
    base = _base(reading, label)
    if base is None:
        return Reason.CONTENT_MISSING
    algorithm = label.parameters.get(b"alg")
    versions = [v for v in keys.sizes if algorithm in (None, v)]
    signatures: Entries = [(version, raw) for version in versions]
    if not signatures:
        return Reason.SIGNATURE_MALFORMED
    until = int(expires) if expires is not None and expires.isdigit() else None

    def after(key: Key, now: int) -> Reason | None:  # noqa: ARG001  # whichever key it was
        if b"content-digest" in names and not _digest_is_right(reading):
            return Reason.CONTENT_MISMATCH
        if until is not None and now > until:
            return Reason.TIMESTAMP_TOO_OLD
        return preset.timestamp.judge(int(created), now) if preset.timestamp else None

    return Claim(
        signatures,
        found,
        int(created),
        label.parameters.get(b"keyid"),
        [(base, signatures)],
        after=after,
        covers_body=b"content-digest" in names,
    )


def _base(reading: Reading, label: _Label) -> bytes | None:
    """Return the signature base (RFC 9421, section 2.5); None when a component is missing."""
    lines = []
    if len(set(label.components)) != len(label.components):
        return None
    for name, parameter in label.components:
        value = _component(reading, name, parameter)
        if value is None or b"\n" in value:
            return None
        shown = b'"%b"' % name + (b';name="%b"' % parameter if parameter is not None else b"")
        lines.append(b"%b: %b" % (shown, value))
    lines.append(b'"@signature-params": ' + label.text)
    return b"\n".join(lines)


def _component(reading: Reading, name: bytes, parameter: bytes | None) -> bytes | None:
    request = reading.request
    if (parameter is not None) != (name == b"@query-param"):
        return None
    if not name.startswith(b"@"):
        values = request.values(name)
        return b", ".join(value.strip() for value in values) if values else None
    url = request.url.encode("utf-8", "surrogatepass")
    scheme, _, rest = url.partition(b"://")
    host = rest.partition(b"/")[0].partition(b"?")[0].lower()
    query = b"?" + request.query
    if name == b"@query-param":
        fields = [value for field, value in reading.query or [] if field == parameter]
        return fields[0] if len(fields) == 1 and fields[0].isalnum() else None
    return {
        b"@method": request.method.encode("utf-8", "surrogatepass"),
        b"@target-uri": url,
        b"@authority": host.removesuffix({b"https": b":443", b"http": b":80"}.get(scheme, b"\n")),
        b"@scheme": scheme.lower(),
        b"@path": request.path or b"/",
        b"@query": query,
        b"@request-target": (request.path or b"/") + (query if request.query else b""),
    }.get(name)


def _digest_is_right(reading: Reading) -> bool:
    """Whether every digest that we know is right for the body, and there is one."""
    value = b", ".join(reading.request.values(b"content-digest"))
    known = [(kind, text) for kind, text in _DIGEST.findall(value) if kind in _DIGESTS]
    return bool(known) and all(
        equal(decode(Encoding.BASE64, text) or b"", _DIGESTS[kind](reading.body).digest())
        for kind, text in known
    )
