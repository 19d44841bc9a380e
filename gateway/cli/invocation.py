"""What a command was told: which server, which token, which configuration, which format.

The same four options may stand before or after the command's name. Order for each: the option, the
environment, the configuration. Importing this module imports no configuration; using it may.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from gateway.cli.client import Api
from gateway.cli.errors import CommandError, Exit

if TYPE_CHECKING:
    from collections.abc import Callable

    from gateway.config import Config

FORMATS = ("table", "json", "ndjson")
VARIABLES = ("VOUCHBACK_CONFIG", "VOUCHBACK_URL", "VOUCHBACK_TOKEN")
#: What `vouchback dev` writes, and where it really listens while it runs.
DEV_CONFIG = Path(".vouchback/dev.toml")
DEV_ADDRESSES = "addresses.json"
_REFERENCES = ("env:", "file:", "cred:")


@dataclass
class Invocation:
    """The options of one command line."""

    config: Path | None = None
    url: str | None = None
    token: str | None = None
    format: str = "table"

    def load(self) -> Config:
        """Return the configuration; in a folder where only `dev` ran, the one of `dev`."""
        from gateway.config import find_file, load_config

        if self.config is None and find_file(None) is None and DEV_CONFIG.is_file():
            return load_config(DEV_CONFIG)
        return load_config(self.config)

    def internal_url(self) -> str:
        """Return where the API is."""
        given = self.url or os.environ.get("VOUCHBACK_URL")
        if given is not None:
            return check_url(given)
        config = self.load()
        return addresses(config).get("internal") or f"http://{config.settings.internal.listen}"

    def api(self) -> Api:
        """Return the API with the token that is to be used."""
        return Api(self.internal_url(), _check_token(self._token()))

    def _token(self) -> str | None:
        if self.token is not None:
            return _resolve(self.token)
        variable = os.environ.get("VOUCHBACK_TOKEN")
        if variable:
            return _resolve(variable) if variable.startswith(_REFERENCES) else variable
        try:
            return (self.load().data_folder() / "admin.token").read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None


def addresses(config: Config) -> dict[str, str]:
    """Return where a running `dev` of this configuration listens; empty for a server."""
    if config.file is None or config.file.name != DEV_CONFIG.name:
        return {}
    try:
        found = json.loads((config.data_folder() / DEV_ADDRESSES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def check_url(url: str) -> str:
    """Return `url` if a client can call it."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # a port that is none, half an IPv6 address
        usable = False
    if not usable or not url.isascii():
        raise CommandError(
            f"{url} is no address of a server", Exit.USAGE, "--url http://127.0.0.1:8081"
        )
    return url.rstrip("/")


def _check_token(token: str | None) -> str | None:
    """Return `token` if a header takes it; the message never holds it."""
    if token is not None and not (token.isascii() and token.isprintable()):
        raise CommandError(
            "the token holds characters that no token has",
            Exit.AUTH,
            "the token alone, on one line: --token file:PATH, or $VOUCHBACK_TOKEN",
        )
    return token


def _resolve(reference: str) -> str:
    if not reference.startswith(_REFERENCES):
        raise CommandError(
            "--token takes a reference, not the token itself: others on this machine can read"
            " command lines",
            Exit.USAGE,
            "--token file:PATH, --token env:NAME, or $VOUCHBACK_TOKEN",
        )
    from reconciler.config import resolve_secret

    return resolve_secret(reference).strip()


def check_environment() -> None:
    """Refuse `VOUCHBACK_*` variables that nothing reads; overrides are checked where they apply."""
    import difflib

    for name in sorted(os.environ):
        if not name.startswith("VOUCHBACK_") or "__" in name or name in VARIABLES:
            continue
        near = difflib.get_close_matches(name, VARIABLES, n=1)
        raise CommandError(
            f"environment: unknown variable {name}",
            Exit.CONFIGURATION,
            f"{near[0]}?" if near else "VOUCHBACK_SECTION__KEY sets a key of the configuration",
        )


# ---------------------------------------------------------------- options


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    if value is not None and parameter.name is not None:
        setattr(context.ensure_object(Invocation), parameter.name, value)
    return value


F = TypeVar("F", bound="Callable[..., Any]")


def config_option(command: F) -> F:
    """Add `--config`."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path),
        callback=_keep,
        expose_value=False,
        help="The configuration file ($VOUCHBACK_CONFIG).",
    )(command)


def format_option(command: F) -> F:
    """Add `--format`."""
    return click.option(
        "--format",
        type=click.Choice(FORMATS),
        callback=_keep,
        expose_value=False,
        help="For people (table) or for programs.",
    )(command)


def page_options(command: F) -> F:
    """Add `--limit` and `--before`, as parameters of the command."""
    command = click.option("--before", metavar="CURSOR", help="Go on where the last page ended.")(
        command
    )
    limits = click.IntRange(1, 10_000)
    return click.option("--limit", type=limits, default=50, show_default=True)(command)


def server_options(command: F) -> F:
    """Add `--url` and `--token`, and the two others."""
    command = click.option(
        "--token",
        metavar="REF",
        callback=_keep,
        expose_value=False,
        help="env:NAME or file:PATH of the API token ($VOUCHBACK_TOKEN).",
    )(command)
    command = click.option(
        "--url",
        callback=_keep,
        expose_value=False,
        help="The internal listener ($VOUCHBACK_URL).",
    )(command)
    return config_option(format_option(command))
