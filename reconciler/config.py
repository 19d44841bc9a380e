"""The reconciler's sections of the configuration, and the rules that every section shares.

Each layer declares its own sections; `gateway.config` joins them. Values are checked strictly: an
unknown key is an error that names the file, the key and the nearest known one. Secrets are
references (`env:NAME`, `file:PATH`, `cred:NAME`); their values are resolved where they are used and
never kept here.
"""

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError


class ConfigError(Exception):
    """The configuration is wrong; the message says where and how to mend it, for the operator."""


# ---------------------------------------------------------------- secrets


_REFERENCE = re.compile(r"(env|file|cred):(.+)", re.DOTALL)


def check_secret_reference(text: str) -> str:
    """Return `text` if it is a reference; `ValueError` (without the text: it may be the secret)."""
    if _REFERENCE.fullmatch(text) is None:
        raise ValueError(
            "must be a reference, env:NAME, file:PATH or cred:NAME, never the secret itself"
        )
    return text


def resolve_secret(reference: str, folder: Path = Path()) -> str:
    """Return the secret that a reference names.

    `env:NAME` is a variable, `file:PATH` a file (one trailing newline is dropped), `cred:NAME` a
    systemd credential. A relative path starts in `folder`: the configuration's, for what stands in
    it. `ConfigError` if there is none or it is empty; the message never holds the value.
    """
    try:
        kind, _, name = check_secret_reference(reference).partition(":")
    except ValueError as error:
        raise ConfigError(f"a secret {error}") from None
    if kind == "env":
        value = os.environ.get(name)
        if not value:
            raise ConfigError(f"secret {reference}: the variable {name} is not set or empty")
        return value
    path = folder / name if kind == "file" else _credential(reference, name)
    try:
        value = path.read_text("utf-8").removesuffix("\n")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
        what = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(f"secret {reference}: cannot read {path}: {what}") from None
    if not value:
        raise ConfigError(f"secret {reference}: {path} is empty")
    return value


def _credential(reference: str, name: str) -> Path:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder or "/" in name:
        raise ConfigError(
            f"secret {reference}: no systemd credential of that name"
            " (LoadCredential= in the unit sets $CREDENTIALS_DIRECTORY)"
        )
    return Path(folder) / name


SecretReference = Annotated[str, AfterValidator(check_secret_reference)]


# ---------------------------------------------------------------- sections


class Section(BaseModel):
    """A table of the configuration: no unknown keys, no coercion, no change later."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


#: Ten years: instants built with longer durations leave the calendar.
DURATION_S_MAX = 315_360_000

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Mode = Annotated[str, Field(pattern=r"^(live|test)$")]


class StorageSection(Section):
    """`[storage]`: where the ledger is."""

    #: `sqlite:PATH` for one process, `redis://HOST:PORT/?ledger=NAME&replicas=N` for many.
    url: str = Field("sqlite:.vouchback/ledger.db", pattern=r"^(sqlite:|rediss?://|unix:/).+$")
    #: The server's password; never in the URL.
    password: SecretReference | None = None
    #: Where this node keeps what is not in the ledger, the first token among it. By default the
    #: SQLite file's folder, else .vouchback.
    folder: str | None = None
    #: Steps that may wait for the store before a step is refused at once (503 at the intake).
    queue_max: int = Field(4096, ge=1)

    @property
    def is_shared(self) -> bool:
        """Tell whether many processes may use the ledger."""
        return not self.url.startswith("sqlite:")

    def path(self, base: Path) -> Path:
        """Return the SQLite file; a relative one is relative to the configuration's folder."""
        return base / self.url.removeprefix("sqlite:")

    def data_folder(self, base: Path) -> Path:
        """Return the folder of this node's own files."""
        if self.folder is not None:
            return base / self.folder
        return base / ".vouchback" if self.is_shared else self.path(base).parent


class RetentionSection(Section):
    """`[retention]`: how long events stay, and which bodies move to files."""

    #: Older events go, once their keys need no longer be remembered and their operations ended.
    events_days: int = Field(90, ge=1, le=DURATION_S_MAX // 86_400)
    #: Bodies of at least this size move to a file, once the event is that old.
    offload_bytes: int = Field(64 << 10, ge=1)
    offload_after_s: int = Field(3600, ge=0, le=DURATION_S_MAX)
    #: Where the files are; for a ledger that nodes share, a folder that they share. By default
    #: blobs in the data folder; bodies of a shared ledger then stay in the ledger.
    folder: str | None = None


class WorkerSection(Section):
    """`[worker]`: how due work is done."""

    #: Status reads under way at once.
    concurrency: int = Field(16, ge=1, le=1024)
    #: Work of a worker that died is taken over after this.
    lease_ttl_s: int = Field(30, ge=5, le=600)
    #: The longest sleep between two looks for due work.
    idle_s: float = Field(1.0, gt=0, le=60)


class EgressSection(Section):
    """`[egress]`: where outbound calls may go beyond public https addresses."""

    #: Networks and ports, e.g. `10.1.0.0/16:443` or `http://127.0.0.0/8:9000`.
    allow: list[str] = Field(default_factory=list)
    #: Bounds of one call.
    deadline_s: float = Field(10.0, gt=0, le=120)
    response_bytes_max: int = Field(1 << 20, ge=1024)


class ProfileSection(Section):
    """`[profiles.NAME]`: a provider as this installation uses it."""

    #: Which shipped profile; the section's own name by default.
    uses: Name | None = None
    #: A profile of your own, read from this file instead.
    file: str | None = None
    project: Name = "default"
    mode: Mode = "live"
    base_url: str | None = None
    secret: SecretReference | None = None
    #: How long the business waits for a result, if the profile's own default does not fit.
    result_s: int | None = Field(None, ge=1, le=DURATION_S_MAX)
    #: How many calls a second all nodes together may make, and how many at once after a rest.
    rate_per_s: float | None = Field(None, ge=0.001, le=10_000)
    rate_burst: int | None = Field(None, ge=1, le=10_000)


# ---------------------------------------------------------------- errors people can act on

S = TypeVar("S", bound=BaseModel)


def validate(
    section: type[S],
    table: Mapping[str, Any],
    where: str,
    variables: Mapping[tuple[Any, ...], str] = MappingProxyType({}),
) -> S:
    """Return `table` as a `section`; `ConfigError` that lists every mistake, one a line.

    `where` is the file; `variables` names the environment variable that set a section's key.
    """
    try:
        return section.model_validate(table)
    except ValidationError as error:
        lines = []
        for item in error.errors(include_url=False, include_input=False):
            variable = variables.get(item["loc"][:2])
            place = f"environment: {variable}" if variable else where
            lines.append(f"{place}: {_explain(section, item)}")
        raise ConfigError("\n".join(lines)) from None


def _explain(section: Any, item: Any) -> str:
    # The input is left out on purpose: it may be a secret in the wrong place.
    key = ".".join(str(part) for part in item["loc"])
    if item["loc"][-1:] == ("[key]",):
        return f"{key.removesuffix('.[key]')}: a name is lower-case letters, digits and hyphens"
    if item["type"] == "model_type":
        return f"{key}: must be a table, [{key}]"
    if item["type"] == "extra_forbidden":
        known = _fields(section, item["loc"][:-1])
        return f"unknown key {key}{suggest(str(item['loc'][-1]), known)}"
    if item["type"] == "missing":
        return f"{key} is required"
    return f"{key}: {item['msg'].removeprefix('Value error, ')}"


def _fields(section: Any, location: tuple[Any, ...]) -> Iterator[str]:
    """Yield the known keys at a location, for suggestions."""
    for part in location:
        field = getattr(section, "model_fields", {}).get(part)
        if field is None:
            continue
        section = next(
            (arg for arg in (field.annotation, *_arguments(field.annotation)) if _is_section(arg)),
            section,
        )
    yield from getattr(section, "model_fields", {})


def _arguments(annotation: Any) -> tuple[Any, ...]:
    found = getattr(annotation, "__args__", ())
    return found + tuple(deeper for arg in found for deeper in _arguments(arg))


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def suggest(word: str, known: Iterator[str] | list[str]) -> str:
    """Return ` (did you mean ...?)` for the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {near[0]}?)" if near else ""
