"""A preset: one provider's signature scheme as data.

The grammar is closed: every key and word is known, anything else is a `PresetError` at start-up.
The same tables describe a private scheme in a user's configuration. Everything that can be
worked out beforehand (header slots, template, order of checks) is worked out here, so that
`verify` only looks up and compares.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from verifiers.content import Template, compile_template
from verifiers.encoding import Encoding
from verifiers.layout import Layout
from verifiers.locate import Locator, Place, parse_locator
from verifiers.schemes import ALGORITHMS, Algorithm
from verifiers.table import PresetError, Table
from verifiers.timestamp import TimestampRule, Unit
from verifiers.verdict import Check

__all__ = ["Ack", "Preset", "PresetError", "SecretForm", "load_preset", "parse_preset"]

PROOFS = ("sdk", "published", "reference", "documented")
FORMS = ("utf8", "base64", "hex")

# Slots of the values that verification collects from the headers; required headers follow.
SIGNATURE, TIMESTAMP, ID, TYPE = range(4)

# Where a preset has several names (svix-id, webhook-id), a request uses one of them.
ALIASES = {"standard-webhooks-v1a": "standard-webhooks"}


@dataclass(frozen=True, slots=True)
class SecretForm:
    """How a secret is written, and what it is a key for.

    `version` is the label that signatures by this kind of key carry, empty in a bare layout.
    `prefix` is optional in the secret; `prefix_kept` says that it belongs to the key material.
    """

    algorithm: Algorithm
    version: bytes
    form: str
    prefix: str
    prefix_kept: bool
    private_prefix: str
    bytes_min: int


@dataclass(frozen=True, slots=True)
class Ack:
    """The answer that the provider wants to see for an accepted request."""

    status: int = 200
    body: bytes = b""
    content_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A parsed preset. Lists of locators are alternatives: exactly one of them is present.

    `slots` maps a header name to the slot of its value; `required` lists slots that must be
    filled, with the header names and the value that `sign` puts there.
    """

    name: str
    docs: str
    proof: str
    signature: tuple[Locator, ...]
    layout: Layout
    prefix: bytes
    encoding: Encoding
    signed: Template
    secrets: tuple[SecretForm, ...]
    timestamp: TimestampRule | None
    event_id: tuple[Locator, ...]
    event_type: tuple[Locator, ...]
    required: tuple[tuple[int, bytes, bytes], ...]
    body_required: bool
    retry_horizon_s: int
    ack: Ack
    checks: tuple[Check, ...]
    slots: Mapping[bytes, int] = field(repr=False)
    slot_count: int = field(repr=False)

    @property
    def body_signed(self) -> bool:
        """Whether the signature covers the body."""
        return "body" in self.signed.fields

    @property
    def timestamp_signed(self) -> bool:
        """Whether the signature covers the timestamp."""
        return "timestamp" in self.signed.fields

    @property
    def id_signed(self) -> bool:
        """Whether the signature covers the event id, in the content or within the body."""
        if not self.event_id:
            return False
        in_body = self.event_id[0].place is Place.BODY
        return self.body_signed if in_body else "id" in self.signed.fields


def preset_names() -> tuple[str, ...]:
    """Return the names of the built-in presets, sorted."""
    folder = files("verifiers") / "presets"
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


def load_preset(name: str) -> Preset:
    """Return the built-in preset; PresetError with a suggestion when there is none."""
    return _load(ALIASES.get(name, name))


@cache
def _load(name: str) -> Preset:
    names = preset_names()
    if name not in names:
        Table({"preset": name}, "presets", None, "").word("preset", names)
    text = (files("verifiers") / "presets" / f"{name}.toml").read_text("utf-8")
    where = f"{name}.toml"
    preset = parse_preset(tomllib.loads(text), where, text)
    assert preset.name == name, f"{where} is named {preset.name}"
    return preset


def parse_preset(
    table: Mapping[str, Any], where: str, text: str | None = None, path: str = ""
) -> Preset:
    """Return the preset that `table` describes.

    `where` is the file for messages, `text` its source, for line numbers, and `path` the dotted
    name of `table` within it, when it is not the whole file. PresetError for anything outside
    the grammar.
    """
    return _Parser(Table(table, where, text, path)).preset()


class _Parser:
    """Takes the tables one by one and works out the header slots on the way."""

    def __init__(self, top: Table) -> None:
        self._top = top
        self._slots: dict[bytes, int] = {}
        self._count = TYPE + 1

    def preset(self) -> Preset:
        top = self._top
        name, docs = top.text("name"), top.text("docs", "")
        proof = top.word("proof", PROOFS, "documented")
        signed = top.convert("signed", compile_template, top.text("signed"))
        signature = top.table("signature")
        places = self._places(signature, "from", {Place.HEADER}, SIGNATURE)
        if not places:
            raise signature.error("from", "is required")
        layout = Layout(signature.word("layout", list(Layout)))
        prefix = signature.text("prefix", "").encode()
        if prefix and layout is not Layout.BARE:
            raise signature.error("prefix", "belongs to the layout 'bare' only")
        encoding = Encoding(signature.word("encoding", list(Encoding)))
        signature.done()
        timestamp = self._timestamp(layout)
        event_id, event_type = self._event()
        required, body_required = self._required()
        preset = Preset(
            name=name,
            docs=docs,
            proof=proof,
            signature=places,
            layout=layout,
            prefix=prefix,
            encoding=encoding,
            signed=signed,
            secrets=self._secrets(layout),
            timestamp=timestamp,
            event_id=event_id,
            event_type=event_type,
            required=required,
            body_required=body_required,
            retry_horizon_s=top.number("retry_horizon_s"),
            ack=self._ack(),
            checks=_checks(timestamp, event_id, bool(required), body_required),
            slots=self._slots,
            slot_count=self._count,
        )
        top.done()
        self._agree(preset)
        return preset

    def _places(
        self, table: Table, key: str, allowed: set[Place], slot: int
    ) -> tuple[Locator, ...]:
        places = tuple(table.convert(key, parse_locator, text) for text in table.texts(key))
        for place in places:
            if place.place not in allowed:
                raise table.error(key, f"{place.text!r} cannot stand here")
            if place.place is Place.HEADER:
                if place.name in self._slots:
                    raise table.error(key, f"{place.text!r} is already in use")
                self._slots[place.name] = slot
        if len(places) > 1 and any(place.place is not Place.HEADER for place in places):
            raise table.error(key, "alternatives are possible for headers only")
        return places

    def _timestamp(self, layout: Layout) -> TimestampRule | None:
        if "timestamp" not in self._top:
            return None
        table = self._top.table("timestamp")
        allowed = {Place.HEADER} | ({Place.SIGNATURE} if layout is Layout.PAIRS else set())
        places = self._places(table, "from", allowed, TIMESTAMP)
        if not places:
            raise table.error("from", "is required")
        tolerance_s = table.number("tolerance_s", 300)
        rule = TimestampRule(
            places,
            Unit(table.word("unit", list(Unit), Unit.SECONDS)),
            tolerance_s,
            table.number("future_tolerance_s", tolerance_s),
            table.truth("retry_restamps", default=False),
        )
        table.done()
        return rule

    def _event(self) -> tuple[tuple[Locator, ...], tuple[Locator, ...]]:
        table = self._top.table("event")
        allowed = {Place.HEADER, Place.BODY}
        event_id = self._places(table, "id", allowed, ID)
        event_type = self._places(table, "type", allowed, TYPE)
        table.done()
        return event_id, event_type

    def _required(self) -> tuple[tuple[tuple[int, bytes, bytes], ...], bool]:
        """Read [required]: `body = true`, and headers with the value that `sign` sends."""
        table = self._top.table("required")
        body, required = table.truth("body", default=False), []
        for entry in table.tables("headers"):
            names = [text.encode() for text in entry.texts("names")]
            if not names or any(name != name.lower() for name in names):
                raise entry.error("names", "must list header names in lower case")
            slots = {self._slots.get(name) for name in names}
            slot = slots.pop() if len(slots) == 1 else self._count
            if slot is None or slot == self._count:
                slot = self._count
                self._count += 1
                self._slots.update(dict.fromkeys(names, slot))
            required.append((slot, names[0], entry.text("sample", "-").encode()))
            entry.done()
        table.done()
        return tuple(required), body

    def _secrets(self, layout: Layout) -> tuple[SecretForm, ...]:
        tables = self._top.tables("secret")
        if not tables:
            raise self._top.error("secret", "is required")
        return tuple(_secret(table, layout) for table in tables)

    def _ack(self) -> Ack:
        table = self._top.table("ack")
        ack = Ack(
            table.number("status", 200),
            table.text("body", "").encode(),
            table.text("content_type", "") or None,
        )
        if not 200 <= ack.status < 300:  # noqa: PLR2004  # success, or the provider sends it again
            raise table.error("status", "must be a success, 200 to 299")
        table.done()
        return ack

    def _agree(self, preset: Preset) -> None:
        """Refuse a template that names what the preset does not say how to find."""
        if preset.timestamp_signed and preset.timestamp is None:
            raise self._top.error("signed", "{timestamp} needs a table [timestamp]")
        header_id = bool(preset.event_id) and preset.event_id[0].place is Place.HEADER
        if "id" in preset.signed.fields and not header_id:
            raise self._top.error("signed", "{id} needs event.id in a header")


def _secret(table: Table, layout: Layout) -> SecretForm:
    bare = layout is Layout.BARE
    form = SecretForm(
        ALGORITHMS[table.word("algorithm", ALGORITHMS)],
        table.text("version", "" if bare else None).encode(),
        table.word("form", FORMS),
        table.text("prefix", ""),
        table.truth("prefix_kept", default=False),
        table.text("private_prefix", ""),
        table.number("bytes_min", 16),
    )
    if bare and form.version:
        raise table.error("version", "a bare signature has no version")
    table.done()
    return form


def _checks(
    timestamp: TimestampRule | None, event_id: tuple[Locator, ...], headers: bool, body: bool
) -> tuple[Check, ...]:
    made = {
        Check.HEADERS_PRESENT: headers,
        Check.BODY_PRESENT: body,
        Check.TIMESTAMP_READABLE: timestamp is not None,
        Check.ID_READABLE: bool(event_id) and event_id[0].place is Place.HEADER,
        Check.TIMESTAMP_FRESH: timestamp is not None,
    }
    return tuple(check for check in Check if made.get(check, True))
