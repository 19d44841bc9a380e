"""The whole configuration: the gateway's sections, joined with the reconciler's.

Read from one TOML file; `VOUCHBACK_SECTION__KEY` variables override single values. Every mistake is
reported with file, key and a suggestion before anything starts. Sources are made here: preset, keys
and correlation, compiled once, so that the hot path only looks them up.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from reconciler.config import (
    DURATION_S_MAX,
    ConfigError,
    EgressSection,
    Mode,
    Name,
    ProfileSection,
    RetentionSection,
    SecretReference,
    Section,
    StorageSection,
    WorkerSection,
    suggest,
    validate,
)

SEARCH = ("./vouchback.toml", "/etc/vouchback/config.toml")
#: Variables that are not overrides of the configuration.
OTHER_VARIABLES = ("VOUCHBACK_CONFIG", "VOUCHBACK_URL", "VOUCHBACK_TOKEN")
_LISTEN = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]/\s]+):([0-9]{1,5})")
_PORT_MAX = 65_535


def _check_listen(text: str) -> str:
    found = _LISTEN.fullmatch(text)
    if found is None or int(found[2]) > _PORT_MAX:
        raise ValueError("must be HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080")
    return text


Listen = Annotated[str, AfterValidator(_check_listen)]


class PublicSection(Section):
    """`[public]`: the listener that providers reach; it serves `/in/{source}` and nothing else."""

    listen: Listen = "127.0.0.1:8080"
    #: The address that providers were given, without a path. Signed URLs are checked against it,
    #: never against what Host or X-Forwarded headers say.
    url: str = Field("http://127.0.0.1:8080", pattern=r"^https?://[^/\s?#@]+$")


class InternalSection(Section):
    """`[internal]`: the listener for the API and health; keep it inside."""

    listen: Listen = "127.0.0.1:8081"


class LimitsSection(Section):
    """`[limits]`: what one request and one peer may cost."""

    body_bytes_max: int = Field(1 << 20, ge=1)
    #: Bodies that all connections together may hold; past it, 503.
    bodies_bytes_max: int = Field(128 << 20, ge=1)
    header_bytes_max: int = Field(32 << 10, ge=1024)
    header_count_max: int = Field(100, ge=8)
    #: From the first byte to the end of the headers, and from there to the end of the body.
    header_timeout_s: float = Field(10, gt=0)
    body_timeout_s: float = Field(20, gt=0)
    #: Longer than the idle time of a proxy in front, or a reused connection is a lost event.
    keep_alive_s: float = Field(75, gt=0)
    connections_max: int = Field(2048, ge=1)
    connections_per_peer_max: int = Field(1024, ge=1)
    #: The longest a provider waits for its acknowledgement before it is told to come back (503).
    acknowledge_s: float = Field(5, gt=0)
    #: How long a stopping process may finish what it accepted.
    shutdown_s: float = Field(30, gt=0)
    #: Refused requests that are kept whole; older ones go. Counts are kept apart.
    refusals_kept: int = Field(10_000, ge=0)


class KeySection(Section):
    """One key of a source; instants are RFC 3339 dates of the TOML kind."""

    id: Name
    secret: SecretReference
    not_before: Any = None
    not_after: Any = None


class HandshakeSection(Section):
    """`[sources.NAME.handshake]`: what some providers ask when a webhook is registered."""

    #: Texts that both sides know: references, like the secrets of keys.
    verify_token: SecretReference | None = None
    verification_token: SecretReference | None = None
    #: WebSub: the topics that were subscribed to, as they were given to the hub.
    topics: list[str] = Field(default_factory=list)
    #: CloudEvents: who may send here, as it stands in WebHook-Request-Origin.
    allowed_origins: list[str] = Field(default_factory=list)


class SourceSection(Section):
    """`[sources.NAME]`: one configured sender, reached at `/in/NAME`."""

    preset: str | None = None
    #: A signature scheme of your own, in the words of a preset, instead of `preset`.
    scheme: dict[str, Any] | None = None
    project: Name = "default"
    mode: Mode = "live"
    keys: list[KeySection] = Field(default_factory=list)
    #: Its provider signs nothing: anybody can post, and only a status read says what is true.
    accept_unverified: bool = False
    #: Where the provider publishes its keys for this account, instead of the preset's address.
    keys_url: str | None = None
    handshake: HandshakeSection = HandshakeSection()
    #: Whose job API confirms the events, and where an event names its job.
    profile: Name | None = None
    job_id: str | None = None
    client_reference: str | None = None
    body_bytes_max: int | None = Field(None, ge=1)
    #: How long an event key is remembered; at least what the scheme needs.
    memory_days: int | None = Field(None, ge=1, le=DURATION_S_MAX // 86_400)


class LogSection(Section):
    """`[log]`."""

    format: str = Field("auto", pattern=r"^(auto|json|console)$")
    level: str = Field("info", pattern=r"^(debug|info|warning|error)$")


class Settings(Section):
    """The file as it is written."""

    storage: StorageSection = StorageSection()
    retention: RetentionSection = RetentionSection()
    public: PublicSection = PublicSection()
    internal: InternalSection = InternalSection()
    limits: LimitsSection = LimitsSection()
    worker: WorkerSection = WorkerSection()
    egress: EgressSection = EgressSection()
    log: LogSection = LogSection()
    sources: dict[Name, SourceSection] = Field(default_factory=dict)
    profiles: dict[Name, ProfileSection] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """A checked configuration and where it came from."""

    settings: Settings
    #: The file, or `None` where only defaults and variables count.
    file: Path | None
    #: Relative paths start here.
    folder: Path

    def where(self) -> str:
        """Return how messages name the place of a mistake."""
        return str(self.file or "defaults")

    def ledger(self) -> Path:
        """Return the ledger's file."""
        return self.settings.storage.path(self.folder)

    def data_folder(self) -> Path:
        """Return the folder of the first token and what else this node keeps."""
        return self.settings.storage.data_folder(self.folder)


def load_config(path: Path | None = None) -> Config:
    """Return the configuration of `path`, `$VOUCHBACK_CONFIG`, the usual places or the defaults.

    `ConfigError` names every mistake.
    """
    file = find_file(path)
    table: dict[str, Any] = {}
    if file is not None:
        table = _read(file)
    where = str(file) if file else "defaults"
    variables = _variables(os.environ)
    settings = validate(Settings, _override(table, variables, os.environ), where, variables)
    folder = file.parent if file else Path()
    return Config(settings, file, folder.absolute())


def split_listen(text: str) -> tuple[str, int]:
    """Return host (an IPv6 one without brackets) and port of a `listen` setting."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def find_file(path: Path | None) -> Path | None:
    """Return the file to read; one that was named must exist."""
    variable = os.environ.get("VOUCHBACK_CONFIG")
    named = path or (Path(variable) if variable else None)
    if named is not None:
        if not named.is_file():
            raise ConfigError(f"{named}: there is no such file")
        return named
    return next((found for text in SEARCH if (found := Path(text)).is_file()), None)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, not TOML, a number too long
        raise ConfigError(f"{file}: {error}") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None


def _variables(environ: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """Return the `VOUCHBACK_SECTION__KEY` variables that are set, by section and key."""
    single = {
        f"VOUCHBACK_{section}__{key}".upper(): (section, key)
        for section, field in Settings.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
        for key in field.annotation.model_fields
    }
    found = {}
    for name in environ:
        if not name.startswith("VOUCHBACK_") or name in OTHER_VARIABLES:
            continue
        if name not in single:
            near = suggest(name, [*single, *OTHER_VARIABLES])
            raise ConfigError(f"environment: unknown variable {name}{near}")
        found[single[name]] = name
    return found


def _override(
    table: Mapping[str, Any], variables: Mapping[tuple[str, str], str], environ: Mapping[str, str]
) -> dict[str, Any]:
    """Return the table with the variables laid over it."""
    result = dict(table)
    for (section, key), name in variables.items():
        below = result.get(section, {})
        if isinstance(below, dict):  # anything else is a mistake that validation names
            result[section] = {**below, key: _value(environ[name])}
    return result


def _value(text: str) -> Any:
    """Read a variable as TOML would; what is no TOML value is text."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return text
