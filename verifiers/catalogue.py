"""The built-in presets as a list: what each checks, and how far that is proven.

For the command line and the generated page; nothing here takes part in verification.
"""

from dataclasses import dataclass

from verifiers.preset import Preset, load_preset, preset_names

#: Proofs that others made: an official library, a published example, an independent checker.
PROVEN = ("sdk", "published", "reference")


@dataclass(frozen=True, slots=True)
class Entry:
    """A row: one preset in words."""

    provider: str
    kind: str
    algorithm: str
    proof: str
    handshake: str
    status_read: str
    docs: str


def catalogue() -> list[Entry]:
    """Return all built-in presets, sorted by name."""
    return [entry(load_preset(name)) for name in preset_names()]


def entry(preset: Preset) -> Entry:
    """Return the row of a preset; what it does not have is an empty text."""
    algorithms = dict.fromkeys(form.algorithm.name for form in preset.secrets)
    rules = dict.fromkeys(rule.summary for rule in preset.handshakes)
    return Entry(
        preset.name,
        _kind(preset),
        ", ".join(algorithms),
        preset.proof,
        ", ".join(rules),
        preset.status_read,
        preset.docs,
    )


def counts(entries: list[Entry]) -> dict[str, int]:
    """Return how many there are, how many are proven, and how many have each proof."""
    found = {"total": len(entries), "proven": sum(e.proof in PROVEN for e in entries)}
    for proof in (*PROVEN, "documented"):
        found[proof] = sum(e.proof == proof for e in entries)
    return found


def _kind(preset: Preset) -> str:
    """Return the scheme, or what the signature is where it is nothing but one."""
    if preset.unsigned:
        return "unsigned"
    if preset.scheme not in ("signature", "items"):
        return preset.scheme.replace("_", " ")
    families = dict.fromkeys(form.algorithm.family for form in preset.secrets)
    return ", ".join(_FAMILIES.get(family, family) for family in families)


_FAMILIES = {"suffixed-hash": "hash", "public-key": "public key"}
