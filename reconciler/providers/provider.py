"""Providers as this installation uses them: a profile, where it is, and our credential for it.

`build_providers` reads the configuration and raises `ConfigError` for every operator's mistake, an
address that must never be called among them, before any work starts. Only the reconciler resolves
these credentials.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.config import ConfigError, ProfileSection, resolve_secret
from reconciler.domain.event import Scope
from reconciler.domain.pace import Pace
from reconciler.providers.egress import Denied, Policy, check_url
from reconciler.providers.errors import ProviderError
from reconciler.providers.profile import Profile, load_profile, read_profile
from reconciler.providers.request import status_request
from reconciler.providers.table import ProfileError


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider that can be asked."""

    name: str
    scope: Scope
    profile: Profile
    secret: str | None = field(repr=False)


def build_providers(
    sections: Mapping[str, ProfileSection], policy: Policy, folder: Path
) -> dict[str, Provider]:
    """Return a provider a section; `ConfigError` lists every section that is wrong.

    `folder` is where relative paths of profile files start.
    """
    providers, mistakes = {}, []
    for name, section in sections.items():
        try:
            providers[name] = _build(name, section, policy, folder)
        except (ConfigError, ProfileError, ProviderError) as error:
            mistakes.append(f"profiles.{name}: {error}")
    if mistakes:
        raise ConfigError("\n".join(mistakes))
    return providers


def _build(name: str, section: ProfileSection, policy: Policy, folder: Path) -> Provider:
    if section.file is not None:
        profile = read_profile(_text(folder / section.file), section.file)
    else:
        profile = load_profile(section.uses or name)
    profile = profile.with_base_url(section.base_url)
    if section.result_s is not None:
        profile = replace(profile, result_deadline_ms=section.result_s * 1000)
    profile = replace(profile, pace=_pace(section, profile.pace))
    secret = None if section.secret is None else resolve_secret(section.secret, folder)
    example = status_request(profile, job_id="job", secret=secret)
    denied = check_url(example.url, policy)
    if isinstance(denied, Denied):
        raise ConfigError(f"{profile.base_url} must not be called ({denied.slug}): {denied.detail}")
    return Provider(name, Scope(section.project, section.mode), profile, secret)


def _pace(section: ProfileSection, own: Pace | None) -> Pace | None:
    """Return the profile's own pace, as far as the installation says nothing else."""
    if section.rate_per_s is None:
        if section.rate_burst is None:
            return own
        if own is None:
            raise ConfigError("rate_burst: without a rate there is no burst: add rate_per_s")
        return replace(own, burst=section.rate_burst)
    return Pace.of(section.rate_per_s, section.rate_burst or (own.burst if own else 1))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
