"""The key ring: several live keys for one source, each with an id and a validity period.

A secret is decoded, judged and prepared once, at start-up. An unusable one is a `SecretError`
then, so that no request ever meets an empty or misread key. Keys that a provider publishes
(JWK sets, certificates) join a ring as values, by `with_published`; fetching them is not done
here. Neither messages nor reprs hold secrets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

from verifiers.encoding import equal
from verifiers.key_material import Secret, SecretError, read_secret
from verifiers.preset import Preset, SecretForm
from verifiers.schemes import Prepared

__all__ = ["Key", "KeyRing", "PublishedDocument", "SecretError", "build_key_ring", "shared_keys"]

# So many keys are tried for a request; more live at once are refused at start-up.
LIVE_MAX = 4
# So many published keys are tried for a request that does not name one of them.
PUBLISHED_MAX = 16

# (id, secret as the provider shows it, not_before, not_after), the instants in unix seconds
Entry = tuple[str, str, int | None, int | None]


class PublishedDocument(NamedTuple):
    """What was fetched: a JWK set, a certificate, a PEM. `name` is its URL, or None for a set."""

    name: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """One key. It is live from `not_before` to `not_after`, both inclusive, in unix seconds.

    `name` is how requests speak of it (`kid`), None for a key that is always tried. `parts` are
    what the secret says beside the key itself. `needs` is (slot, text): see `SecretForm.needs`.
    """

    id: str
    material: bytes = field(repr=False)
    not_before: int | None
    not_after: int | None
    version: bytes
    signature_bytes: int
    prepared: Prepared = field(repr=False, compare=False)
    name: bytes | None = None
    parts: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    needs: tuple[int, bytes] | None = None
    published: bool = False

    def is_live(self, now: int) -> bool:
        """Whether the key is valid at `now` (unix seconds)."""
        return not self.is_early(now) and not (self.not_after is not None and now > self.not_after)

    def is_early(self, now: int) -> bool:
        """Whether the key's time has not come yet."""
        return self.not_before is not None and now < self.not_before

    def part(self, name: str) -> bytes | None:
        """Return a part of the secret; `secret` is the key itself."""
        return self.material if name == "secret" else self.parts.get(name)


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys of a source, newest last or as configured.

    `sizes` maps a version label to the lengths that its signatures may have, none for any.
    `parameters` are entries that hold no key of their own, for published keys to be tied to.
    """

    keys: tuple[Key, ...]
    sizes: dict[bytes, frozenset[int]] = field(repr=False)
    timeless: bool = field(repr=False)
    named: bool = field(default=False, repr=False)
    otherwise: "KeyRing | None" = field(default=None, repr=False)
    unverified: bool = False
    parameters: tuple[Secret, ...] = field(default=(), repr=False)

    def live(self, now: int, name: bytes | None = None) -> tuple[Key, ...]:
        """Return the keys to try at `now`, at most LIVE_MAX of the operator's.

        `name` is the key that the request speaks of; only that one and unnamed ones are tried.
        """
        keys = self.keys
        if not self.timeless:
            keys = tuple(key for key in keys if key.is_live(now))
        if not self.named:
            return keys
        return tuple(k for k in keys if k.name is None or name in (None, k.name))[:PUBLISHED_MAX]

    def others(self, now: int) -> tuple[Key, ...]:
        """Return keys that are not live, at most LIVE_MAX, those of the nearest past first."""
        rest = [key for key in self.keys if not key.is_live(now)]
        rest.sort(key=lambda key: key.not_after or 0, reverse=True)
        return tuple(rest[:LIVE_MAX])


def shared_keys(rings: Mapping[str, KeyRing]) -> list[tuple[str, str]]:
    """Return the pairs of names (of sources) whose rings hold the same key.

    With one key for two sources, a capture from one is authentic at the other. Keys that the
    provider publishes for everybody do not count.
    """
    return [
        (one, other)
        for one, other in combinations(rings, 2)
        if any(
            equal(left.material, right.material)
            for left in rings[one].keys
            for right in rings[other].keys
            if not (left.published or right.published)
        )
    ]


def build_key_ring(
    preset: Preset,
    entries: Iterable[Entry],
    *,
    allow_short: bool = False,
    accept_unverified: bool = False,
) -> KeyRing:
    """Return the ring; SecretError for an unusable secret, SecretError for none at all.

    `allow_short` lets published examples ("hush") be checked offline; a server never sets it.
    `accept_unverified` is the operator's word that requests which nobody signs are wanted.
    """
    entries = list(entries)
    if preset.unsigned:
        return _open_ring(preset, entries, accepted=accept_unverified)
    _check_periods(preset, entries)
    found = [_read(preset, entry, allow_short=allow_short) for entry in entries]
    keys = tuple(_key(preset, secret) for secrets in found for secret in secrets if secret.prepared)
    ring = KeyRing(
        keys,
        _sizes(preset, keys),
        all(key.not_before is None and key.not_after is None for key in keys),
        any(key.name is not None for key in keys),
        parameters=tuple(s for secrets in found for s in secrets if s.prepared is None),
    )
    if preset.otherwise is None:
        return ring
    other = build_key_ring(preset.otherwise, entries, allow_short=allow_short)
    return replace(ring, otherwise=other)


def with_published(
    ring: KeyRing, preset: Preset, documents: Iterable[PublishedDocument]
) -> KeyRing:
    """Return the ring with the keys that the provider publishes, in place of earlier ones.

    A document that holds no usable key is left out: the last good one is the caller's to keep.
    """
    own = tuple(key for key in ring.keys if not key.published)
    parameters = ring.parameters or (Secret("published", preset.secrets[0]),)
    found = []
    for document in documents:
        for form in preset.secrets:
            for parameter in parameters:
                found += _published(preset, form, parameter, document)
    keys = own + tuple(found)
    timeless = all(key.not_before is None and key.not_after is None for key in keys)
    return replace(ring, keys=keys, sizes=_sizes(preset, keys), timeless=timeless, named=True)


def _published(
    preset: Preset, form: SecretForm, parameter: Secret, document: PublishedDocument
) -> list[Key]:
    try:
        read = form.algorithm.prepare_all(document.text)
    except (ValueError, RecursionError):
        return []
    keys = []
    for name, prepared in read:
        called = name if name is not None else document.name
        secret = parameter._replace(form=form, prepared=prepared, name=called, material=b"")
        key = _key(preset, secret)
        keys.append(replace(key, id=called or key.id, published=True))
    return keys


def _open_ring(preset: Preset, entries: list[Entry], *, accepted: bool) -> KeyRing:
    if entries:
        raise SecretError(f"{preset.name} signs nothing, so a key would be of no use")
    if not accepted:
        raise SecretError(
            f"{preset.name} signs nothing: anybody can send what it sends. Set"
            " accept_unverified = true if such requests are wanted as hints"
        )
    return KeyRing((), {}, timeless=True, unverified=True)


def _check_periods(preset: Preset, entries: list[Entry]) -> None:
    if not entries and preset.published is None:
        raise SecretError("no key: a source without one would verify nothing")
    if len({entry[0] for entry in entries}) != len(entries):
        raise SecretError("two keys have the same id")
    for key_id, _, not_before, not_after in entries:
        if not_before is not None and not_after is not None and not_before > not_after:
            raise SecretError(f"key {key_id!r}: not_before is after not_after")
    for start in {entry[2] if entry[2] is not None else 0 for entry in entries}:
        live = [e for e in entries if not _is_over(e, start) and (e[2] is None or e[2] <= start)]
        if len(live) > LIVE_MAX:
            raise SecretError(f"more than {LIVE_MAX} keys are live at the same time")


def _is_over(entry: Entry, now: int) -> bool:
    return entry[3] is not None and now > entry[3]


def _read(preset: Preset, entry: Entry, *, allow_short: bool) -> list[Secret]:
    key_id, text, not_before, not_after = entry
    try:
        secrets = read_secret(preset, text, allow_short=allow_short)
    except SecretError as error:
        raise SecretError(f"key {key_id!r}: the secret {error}") from None
    return [
        secret._replace(key_id=key_id, not_before=not_before, not_after=not_after)
        for secret in secrets
    ]


def _key(preset: Preset, secret: Secret) -> Key:
    form = secret.form
    assert secret.prepared is not None
    version = secret.parts[form.version_part] if form.version_part else form.version
    name = secret.parts.get("key_name") or (secret.name.encode() if secret.name else None)
    needs = None
    if form.needs is not None:
        needs = (preset.slots[form.needs[0]], form.needs[1])
    return Key(
        secret.key_id,
        secret.material,
        secret.not_before,
        secret.not_after,
        version,
        form.algorithm.signature_bytes,
        secret.prepared,
        name,
        secret.parts,
        needs,
    )


def _sizes(preset: Preset, keys: tuple[Key, ...]) -> dict[bytes, frozenset[int]]:
    """Return the lengths by version; an unpublished set still lets its versions be read."""
    rows = [(key.version, key.signature_bytes) for key in keys]
    if preset.published is not None:
        rows += [(f.version, f.algorithm.signature_bytes) for f in preset.secrets]
    sizes: dict[bytes, set[int]] = {}
    for version, size in rows:
        sizes.setdefault(version, set()).add(size)
    return {v: frozenset() if 0 in found else frozenset(found) for v, found in sizes.items()}
