"""What the configuration describes, compiled: sources, providers, and where calls may go.

Built whole before anything starts, and built again on a reload, where a mistake changes nothing.
"""

import asyncio
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from gateway.config import Config, load_config, split_listen
from gateway.context import KnownProfile
from gateway.source import Source, Sources, build_sources
from reconciler import logs
from reconciler.config import ConfigError
from reconciler.providers.egress import Allowed, Denied, Policy, check_url
from reconciler.providers.networks import Address
from reconciler.providers.provider import Provider, build_providers
from verifiers.preset import Preset

_log = logs.get("configuration")


@dataclass(slots=True)
class Parts:
    """The compiled configuration. The tables are shared; a reload changes their contents."""

    config: Config
    policy: Policy
    sources: Sources
    providers: dict[str, Provider]
    profiles: dict[str, KnownProfile]

    @classmethod
    def build(cls, config: Config) -> "Parts":
        """Return the parts; `ConfigError` names every mistake."""
        policy = _policy(config)
        providers = _providers(config, policy)
        sources = Sources(_sources(config, policy))
        return cls(config, policy, sources, providers, _known(providers))

    async def reload(self) -> None:
        """Read sources and profiles again and use them, or raise `ConfigError` and change nothing.

        Other sections (listeners, limits, storage) are used as they were at the start.
        """
        config = await asyncio.to_thread(load_config, self.config.file)
        sources = _sources(config, self.policy)
        providers = _providers(config, self.policy)
        self.sources.replace(sources)
        self.providers.clear()
        self.providers.update(providers)
        self.profiles.clear()
        self.profiles.update(_known(providers))
        self.config = config
        _log.info("reloaded", sources=len(sources), profiles=len(providers))

    def key_presets(self) -> Mapping[str, Preset]:
        """Return the presets of the sources whose keys are published, by the sources' names."""
        found = self.sources.all()
        return {each.name: each.preset for each in found if each.preset.published is not None}


def _sources(config: Config, policy: Policy) -> dict[str, Source]:
    """Return the compiled sources; an address of keys that may not be called is a mistake."""
    sources = build_sources(config)
    for name, source in sources.items():
        published = source.preset.published
        if published is not None and published.url_from is None:
            denied = check_url(published.url, policy)
            if isinstance(denied, Denied):
                raise ConfigError(f"{config.where()}: sources.{name}.keys_url: {denied.detail}")
    return sources


def _policy(config: Config) -> Policy:
    try:
        allowed = tuple(Allowed.parse(text) for text in config.settings.egress.allow)
    except ValueError as error:
        raise ConfigError(f"{config.where()}: egress.allow: {error}") from None
    return Policy(allowed=allowed, own_addresses=frozenset(_own(config)))


def _own(config: Config) -> list[tuple[Address, int | None]]:
    """Return where we listen: no outbound call may come back in."""
    own: list[tuple[Address, int | None]] = []
    for section in (config.settings.public, config.settings.internal):
        host, port = split_listen(section.listen)
        try:
            own.append((ipaddress.ip_address(host), port))
        except ValueError:
            continue
    return own


def _providers(config: Config, policy: Policy) -> dict[str, Provider]:
    try:
        return build_providers(config.settings.profiles, policy, config.folder)
    except ConfigError as error:
        lines = str(error).split("\n")
        raise ConfigError("\n".join(f"{config.where()}: {line}" for line in lines)) from None


def _known(providers: dict[str, Provider]) -> dict[str, KnownProfile]:
    return {
        name: KnownProfile(
            scope=provider.scope,
            result_deadline_ms=provider.profile.result_deadline_ms,
            by_reference=provider.profile.status.url_by_reference is not None,
        )
        for name, provider in providers.items()
    }
