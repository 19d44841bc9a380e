"""A preset: one provider's signature scheme as data.

`verifiers.grammar` reads it; this module holds what was read, worked out beforehand (header
slots, contents, order of checks), so that verification only looks up and compares.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from verifiers.content import Field, Template
from verifiers.encoding import Encoding
from verifiers.handshake_rule import Rule
from verifiers.layout import Layout
from verifiers.locate import Locator
from verifiers.reason import Check
from verifiers.schemes import Algorithm
from verifiers.table import PresetError, Table
from verifiers.timestamp import TimestampRule

__all__ = ["Ack", "Preset", "PresetError", "SecretForm", "load_preset", "parse_preset"]

# Slots of the values that verification collects; those of other headers and fields follow.
SIGNATURE, TIMESTAMP, ID, TYPE, BODY, KEY_NAME = range(6)
FIRST_FREE = KEY_NAME + 1

# Other names of presets, as vector files and users know them.
ALIASES = {"standard-webhooks-v1a": "standard-webhooks", "cloudinary-sha256": "cloudinary"}

Found = list[bytes | None]


@dataclass(frozen=True, slots=True)
class SecretForm:
    """How a secret is written, and what it is a key for.

    `version` is the label that signatures by this kind of key carry, empty where there is none;
    `version_part` names the part of the secret that is the label. `prefix` is optional in the
    secret; `prefix_kept` says that it belongs to the key material. `parts` names what the secret
    is made of, cut at `separator`; the last one is the key itself. `needs` is a header without
    which this key answers no request, and the text that it must hold.
    """

    algorithm: Algorithm
    version: bytes
    form: str
    prefix: str
    prefix_kept: bool
    private_prefix: str
    bytes_min: int
    version_part: str = ""
    parts: tuple[str, ...] = ()
    separator: str = ":"
    needs: tuple[bytes, bytes] | None = None


@dataclass(frozen=True, slots=True)
class Ack:
    """The answer that the provider wants to see for an accepted request, and by when."""

    status: int = 200
    body: bytes = b""
    content_type: str | None = None
    deadline_s: int | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """A template tied to the slots that hold the values of its fields."""

    template: Template
    slots: tuple[int, ...]
    pick: Callable[[Found], tuple[Any, ...]] = field(repr=False, compare=False)

    def render(self, found: Found) -> bytes | None:
        """Return the bytes, or None when a field that is needed is absent."""
        pattern = self.template.pattern
        if pattern is None:
            by_field = dict(zip(self.template.fields, self.slots, strict=True))
            return self.template.render(lambda wanted: found[by_field[wanted]])
        values: tuple[bytes, ...] = self.pick(found)
        if None in values:
            return None
        return values[0] if pattern == b"%b" else pattern % values  # no copy of a large body


@dataclass(frozen=True, slots=True)
class Match:
    """What must stand at a place beside a right signature.

    `optional` lets it be absent; `unless_form` too where the body is an urlencoded form, or empty.
    """

    place: Locator
    wanted: Content
    optional: bool
    unless_form: bool


@dataclass(frozen=True, slots=True)
class Published:
    """Keys that the provider publishes: where they may be fetched from, and in what notation.

    `url` is fixed, or `url_from` says where the request names it; then the whole URL must match
    `url_pattern`. Fetching is not done here.
    """

    format: str
    url: str
    url_from: Locator | None
    url_pattern: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A parsed preset. Lists of locators are alternatives: exactly one of them is present.

    `slots` maps a header name to the slot of its value; `required` lists slots that must be
    filled, with the header name and the value that `sign` puts there; `single` slots that must
    not be filled twice. `derived`, `labelled` and `of_key` say what fills the other slots: a
    field of the request, a label of the signature value, a part of the key.
    """

    name: str
    docs: str
    proof: str
    status_read: str
    scheme: str
    read: Callable[..., Any] | None = field(repr=False, compare=False)
    options: Any
    signature: tuple[Locator, ...]
    several: bool
    layout: Layout
    encoding: Encoding
    signed: Template
    contents: tuple[Content, ...] = field(repr=False)
    matches: tuple[Match, ...]
    secrets: tuple[SecretForm, ...]
    published: Published | None
    timestamp: TimestampRule | None
    event_id: tuple[Locator, ...]
    event_type: tuple[Locator, ...]
    required: tuple[tuple[int, bytes, bytes], ...]
    body_required: bool
    decoded: bool
    retry_horizon_s: int
    ack: Ack
    checks: tuple[Check, ...]
    otherwise: "Preset | None"
    handshakes: tuple[Rule, ...]
    body_signed: bool
    timestamp_signed: bool
    id_signed: bool
    id_in_content: bool
    slots: Mapping[bytes, int] = field(repr=False)
    single: tuple[int, ...] = field(repr=False)
    derived: tuple[tuple[int, Field], ...] = field(repr=False)
    labelled: tuple[tuple[int, bytes], ...] = field(repr=False)
    of_key: tuple[tuple[int, str], ...] = field(repr=False)
    slot_count: int = field(repr=False)

    @property
    def unsigned(self) -> bool:
        """Whether the provider signs nothing at all: every request is accepted as a hint."""
        return self.scheme == "none"


def preset_names() -> tuple[str, ...]:
    """Return the names of the built-in presets, sorted."""
    folder = files("verifiers") / "presets"
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


def load_preset(name: str) -> Preset:
    """Return the built-in preset; PresetError with a suggestion when there is none."""
    return _load(ALIASES.get(name, name))


@cache
def _load(name: str) -> Preset:
    text = preset_text(name)
    where = f"{name}.toml"
    preset = parse_preset(tomllib.loads(text), where, text)
    assert preset.name == name, f"{where} is named {preset.name}"
    return preset


def preset_text(name: str) -> str:
    """Return the file of a built-in preset; PresetError with a suggestion when there is none."""
    file = files("verifiers") / "presets" / f"{name}.toml"
    if not file.is_file():
        Table({"preset": name}, "presets", None, "").word("preset", preset_names())
    return file.read_text("utf-8")


def parse_preset(
    table: Mapping[str, Any], where: str, text: str | None = None, path: str = ""
) -> Preset:
    """Return the preset that `table` describes.

    `where` is the file for messages, `text` its source, for line numbers, and `path` the dotted
    name of `table` within it, when it is not the whole file. PresetError for anything outside
    the grammar.
    """
    from verifiers.grammar import parse  # noqa: PLC0415  # the grammar builds what is defined here

    return parse(table, where, text, path)
