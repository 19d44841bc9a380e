"""The key ring: several live keys for one source, each with an id and a validity period.

A secret is decoded, judged and prepared once, at start-up. An unusable one is a `SecretError`
then, so that no request ever meets an empty or misread key. Neither messages nor reprs hold
secrets.
"""

import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from verifiers.encoding import equal
from verifiers.preset import Preset, SecretForm
from verifiers.schemes import Prepared

# So many keys are tried for a request; more live at once are refused at start-up.
LIVE_MAX = 4

# (id, secret as the provider shows it, not_before, not_after), the instants in unix seconds
Entry = tuple[str, str, int | None, int | None]


class SecretError(Exception):
    """A secret cannot be used; the message says why and never holds the secret."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key. It is live from `not_before` to `not_after`, both inclusive, in unix seconds."""

    id: str
    material: bytes = field(repr=False)
    not_before: int | None
    not_after: int | None
    version: bytes
    signature_bytes: int
    prepared: Prepared = field(repr=False, compare=False)

    def is_live(self, now: int) -> bool:
        """Whether the key is valid at `now` (unix seconds)."""
        return not self.is_early(now) and not (self.not_after is not None and now > self.not_after)

    def is_early(self, now: int) -> bool:
        """Whether the key's time has not come yet."""
        return self.not_before is not None and now < self.not_before


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of a source, newest last or as configured; at least one.

    `sizes` maps a version label to the length of its signatures in bytes.
    """

    keys: tuple[Key, ...]
    sizes: dict[bytes, int] = field(repr=False)
    timeless: bool = field(repr=False)

    def live(self, now: int) -> tuple[Key, ...]:
        """Return the keys to try at `now`, at most LIVE_MAX."""
        if self.timeless:
            return self.keys
        return tuple(key for key in self.keys if key.is_live(now))[:LIVE_MAX]

    def others(self, now: int) -> tuple[Key, ...]:
        """Return keys that are not live, at most LIVE_MAX, those of the nearest past first."""
        rest = [key for key in self.keys if not key.is_live(now)]
        rest.sort(key=lambda key: key.not_after or 0, reverse=True)
        return tuple(rest[:LIVE_MAX])


def shared_keys(rings: Mapping[str, KeyRing]) -> list[tuple[str, str]]:
    """Return the pairs of names (of sources) whose rings hold the same key.

    With one key for two sources, a capture from one is authentic at the other.
    """
    return [
        (one, other)
        for one, other in combinations(rings, 2)
        if any(
            equal(left.material, right.material)
            for left in rings[one].keys
            for right in rings[other].keys
        )
    ]


def build_key_ring(
    preset: Preset, entries: Iterable[Entry], *, allow_short: bool = False
) -> KeyRing:
    """Return the ring; SecretError for an unusable secret, SecretError for none at all.

    `allow_short` lets published examples ("hush") be checked offline; a server never sets it.
    """
    keys = tuple(_build(preset, entry, allow_short=allow_short) for entry in entries)
    if not keys:
        raise SecretError("no key: a source without one would verify nothing")
    if len({key.id for key in keys}) != len(keys):
        raise SecretError("two keys have the same id")
    starts = {key.not_before if key.not_before is not None else 0 for key in keys}
    if any(sum(key.is_live(start) for key in keys) > LIVE_MAX for start in starts):
        raise SecretError(f"more than {LIVE_MAX} keys are live at the same time")
    sizes = {key.version: key.signature_bytes for key in keys}
    timeless = all(key.not_before is None and key.not_after is None for key in keys)
    return KeyRing(keys, sizes, timeless)


def _build(preset: Preset, entry: Entry, *, allow_short: bool) -> Key:
    key_id, text, not_before, not_after = entry
    if not_before is not None and not_after is not None and not_before > not_after:
        raise SecretError(f"key {key_id!r}: not_before is after not_after")
    try:
        form, material, prepared = _prepare(preset, text, allow_short=allow_short)
    except SecretError as error:
        raise SecretError(f"key {key_id!r}: the secret {error}") from None
    size = form.algorithm.signature_bytes
    return Key(key_id, material, not_before, not_after, form.version, size, prepared)


def _prepare(preset: Preset, text: str, *, allow_short: bool) -> tuple[SecretForm, bytes, Prepared]:
    form, material, private = _decode(preset, text)
    if len(material) < (1 if allow_short else form.bytes_min):
        raise SecretError(f"is too short: {form.bytes_min} bytes or more are needed")
    try:
        return form, material, form.algorithm.prepare(material, private)
    except ValueError:
        raise SecretError(f"is no {form.algorithm.name} key") from None


def _decode(preset: Preset, text: str) -> tuple[SecretForm, bytes, bool]:
    """Return form, key material, and whether it came as a private key."""
    if not text:
        raise SecretError("is empty")
    if text != text.strip():
        raise SecretError("has white space or a line break at its beginning or end")
    form, prefix = _form_of(preset, text)
    private = bool(prefix) and prefix == form.private_prefix
    bare = text[len(prefix) :]
    if not bare:
        raise SecretError("holds nothing after its prefix")
    return form, _material(form, text if form.prefix_kept else bare), private


def _form_of(preset: Preset, text: str) -> tuple[SecretForm, str]:
    """Return the form whose prefix the secret has, else the first, whose prefix it may lack."""
    for form in preset.secrets:
        for prefix in (form.private_prefix, form.prefix):
            if prefix and text.startswith(prefix):
                return form, prefix
    return preset.secrets[0], ""


def _material(form: SecretForm, text: str) -> bytes:
    try:
        if form.form == "utf8":
            return text.encode()
        if form.form == "hex":
            return binascii.unhexlify(text)
        return binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
    except ValueError:
        raise SecretError(f"is not {form.form}") from None
