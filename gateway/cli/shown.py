"""Small parts of what `show` prints: kept headers, and the checks that a source makes."""

from typing import Any

from gateway.cli.invocation import Invocation
from gateway.cli.output import inert


def headers_of(thing: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the kept header pairs, inert."""
    return [(inert(str(name)), inert(str(value))) for name, value in thing.get("headers") or []]


def checks_of(invocation: Invocation, source: str) -> list[str]:
    """Return the checks that every event of a source has passed, in the order they are made.

    Empty where this machine's configuration does not know the source: the server's may.
    """
    from reconciler.config import ConfigError
    from verifiers.preset import load_preset, parse_preset
    from verifiers.table import PresetError

    try:
        section = invocation.load().settings.sources.get(source)
        if section is None:
            return []
        if section.preset is not None:
            preset = load_preset(section.preset)
        else:
            preset = parse_preset(section.scheme or {}, source)
    except (ConfigError, PresetError):
        return []
    return [f"passed  {check}" for check in preset.checks]
