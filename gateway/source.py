"""Sources, compiled: everything that the hot path needs of a configured sender, ready to use.

`build_sources` turns the configuration into a `Source` a sender and raises `ConfigError` for every
operator's mistake before anything listens. `Sources` is the table that the intake looks into; a
reload swaps it whole.
"""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway.answers import Answer, acknowledgement, refused, wrong_method
from gateway.config import Config, KeySection, SourceSection
from gateway.handshakes import Handshake, compiled
from reconciler.config import ConfigError, resolve_secret, suggest
from reconciler.domain.event import Scope
from verifiers.keys import KeyRing, SecretError, build_key_ring, shared_keys, with_published
from verifiers.locate import Locator, LocatorError, Place, parse_locator
from verifiers.preset import Preset, PresetError, load_preset, parse_preset
from verifiers.published import read_document, trusted_address
from verifiers.replay import ReplayMemoryError, check_memory, memory_s

_DAY_S = 86_400
#: Places that only a preset can make sense of.
_NOT_OF_JOBS = frozenset((Place.SIGNATURE, Place.CLAIM, Place.ITEM, Place.RAW))


@dataclass(frozen=True, slots=True)
class Source:
    """One configured sender, ready for the hot path."""

    name: str
    scope: Scope
    preset: Preset
    keys: KeyRing
    url: str
    profile: str | None
    job_id: Locator | None
    client_reference: Locator | None
    body_bytes_max: int
    memory_ms: int
    acknowledgement: Answer
    refusal: Answer
    wrong_method: Answer
    handshake: Handshake | None
    #: Headers whose value is the secret itself, and whether the query holds it: never stored.
    secret_headers: frozenset[bytes]
    secret_query: bool


class Sources:
    """The table of sources by path; replaced whole, so that a request sees one configuration."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self._published: Mapping[str, Mapping[str, bytes]] = {}
        self.replace(sources)

    def at(self, raw_path: bytes) -> Source | None:
        """Return the source whose endpoint is exactly this path, byte for byte."""
        return self._by_path.get(raw_path)

    def named(self, name: str) -> Source | None:
        """Return the source of a name."""
        return next((source for source in self._by_path.values() if source.name == name), None)

    def all(self) -> list[Source]:
        """Return all sources by name."""
        return sorted(self._by_path.values(), key=lambda source: source.name)

    def replace(self, sources: Mapping[str, Source]) -> None:
        """Use these sources from the next request on."""
        self._by_path = {
            f"/in/{name}".encode(): _with_published(source, self._published.get(name, {}))
            for name, source in sources.items()
        }

    def publish(self, documents: Mapping[str, Mapping[str, bytes]]) -> None:
        """Use these published keys from the next request on: content by address by source."""
        if documents != self._published:
            self._published = documents
            self.replace({source.name: source for source in self.all()})


def _with_published(source: Source, contents: Mapping[str, bytes]) -> Source:
    """Return the source with published keys, in place of earlier ones."""
    preset, published = source.preset, source.preset.published
    if published is None:
        return source
    read = [
        read_document(published, url, content)
        for url, content in sorted(contents.items())
        if trusted_address(published, url)
    ]
    documents = [document for document in read if document is not None]
    return replace(source, keys=with_published(source.keys, preset, documents))


def build_sources(config: Config) -> dict[str, Source]:
    """Return the compiled sources; `ConfigError` lists every source that is wrong."""
    sources, mistakes = {}, []
    for name, section in config.settings.sources.items():
        try:
            sources[name] = _build(config, name, section)
        except ConfigError as error:
            mistakes.append(str(error))
    mistakes += [f"{config.where()}: {mistake}" for mistake in _confusable(sources)]
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return sources


def _confusable(sources: Mapping[str, Source]) -> list[str]:
    """Return a sentence for each two sources at which one signature could be genuine (SC-04)."""
    return [
        f"sources {one} and {other} share a key: what was captured at one would be genuine at the"
        " other; give each its own secret"
        for one, other in shared_keys({name: source.keys for name, source in sources.items()})
        if set(sources[one].preset.signature) & set(sources[other].preset.signature)
    ]


def _build(config: Config, name: str, section: SourceSection) -> Source:
    where = f"{config.where()}: sources.{name}"
    try:
        preset = _with_keys_url(_preset(section, where), section.keys_url, where)
        keys = build_key_ring(
            preset,
            [_key(key, config.folder, where) for key in section.keys],
            accept_unverified=section.accept_unverified,
        )
        handshake = compiled(preset, section.handshake, config.folder, where)
        memory = memory_s(preset)
        if section.memory_days is not None:
            memory = section.memory_days * _DAY_S
            check_memory(preset, memory)
        return Source(
            name=name,
            scope=Scope(section.project, section.mode),
            preset=preset,
            keys=keys,
            url=f"{config.settings.public.url}/in/{name}",
            profile=_profile(config, section, where),
            job_id=_locator(section.job_id, "job_id", where),
            client_reference=_locator(section.client_reference, "client_reference", where),
            body_bytes_max=section.body_bytes_max or config.settings.limits.body_bytes_max,
            memory_ms=memory * 1000,
            acknowledgement=acknowledgement(preset.ack),
            refusal=refused(bare=handshake is not None and handshake.bare_refusals),
            wrong_method=wrong_method(("POST", *sorted(handshake.methods if handshake else ()))),
            handshake=handshake,
            secret_headers=_secret_names(preset, Place.HEADER)
            | (handshake.secret_headers if handshake else frozenset()),
            secret_query=bool(_secret_names(preset, Place.QUERY, Place.PARAM)),
        )
    except (PresetError, SecretError, ReplayMemoryError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _preset(section: SourceSection, where: str) -> Preset:
    if (section.preset is None) == (section.scheme is None):
        raise ConfigError(f"{where}: give either preset or scheme (a scheme of your own)")
    if section.preset is not None:
        return load_preset(section.preset)
    return parse_preset(section.scheme or {}, f"{where}.scheme")


def _with_keys_url(preset: Preset, url: str | None, where: str) -> Preset:
    """Return the preset with the operator's own address of its published keys, if there is one."""
    if url is None:
        return preset
    published = preset.published
    if published is None:
        raise ConfigError(f"{where}.keys_url: {preset.name} has no published keys; give it keys")
    if published.url_from is not None:
        raise ConfigError(
            f"{where}.keys_url: each request of {preset.name} names the address of its key, and"
            " the preset says which are the provider's"
        )
    return replace(preset, published=replace(published, url=url))


def _secret_names(preset: Preset, *places: Place) -> frozenset[bytes]:
    """Return what holds the secret itself in these places; only tokens are sent as they are."""
    if all(form.algorithm.family != "token" for form in preset.secrets):
        return frozenset()
    return frozenset(place.name for place in preset.signature if place.place in places)


def _key(key: KeySection, folder: Path, where: str) -> tuple[str, str, int | None, int | None]:
    at = f"{where}.keys.{key.id}"
    try:
        secret = resolve_secret(key.secret, folder)
    except ConfigError as error:
        raise ConfigError(f"{at}: {error}") from None
    return key.id, secret, _instant(key.not_before, at), _instant(key.not_after, at)


def _instant(value: Any, at: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        raise ConfigError(f"{at}: write the instant with its offset, as in 2026-11-30T12:00:00Z")
    return int(value.timestamp())


def _profile(config: Config, section: SourceSection, where: str) -> str | None:
    if section.profile is None:
        if section.job_id or section.client_reference:
            raise ConfigError(f"{where}: job_id and client_reference need a profile to ask")
        return None
    profile = config.settings.profiles.get(section.profile)
    if profile is None:
        near = suggest(section.profile, list(config.settings.profiles))
        raise ConfigError(f"{where}: there is no [profiles.{section.profile}]{near}")
    if (profile.project, profile.mode) != (section.project, section.mode):
        # Test and live never meet (P2): a test event must not make a live operation move.
        raise ConfigError(
            f"{where}: the source is {section.project}/{section.mode},"
            f" [profiles.{section.profile}] is {profile.project}/{profile.mode}"
        )
    return section.profile


def _locator(text: str | None, key: str, where: str) -> Locator | None:
    if text is None:
        return None
    try:
        locator = parse_locator(text)
    except LocatorError as error:
        raise ConfigError(f"{where}.{key}: {error}") from None
    if locator.place in _NOT_OF_JOBS:
        raise ConfigError(f"{where}.{key}: a job is named in a header or the body, not {text!r}")
    return locator
