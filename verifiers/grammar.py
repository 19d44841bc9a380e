"""The grammar of presets, read strictly: docs/reference/preset-grammar.md is its description.

Every key and word is known, anything else is a `PresetError` at start-up, with file, line and
the nearest right word. The same tables describe a private scheme in a user's configuration.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

from verifiers import schemes
from verifiers.content import Field, Template, compile_template
from verifiers.encoding import Encoding
from verifiers.grammar_parts import (
    PLACES_OF_FIELDS,
    checks_made,
    read_ack,
    read_layout,
    read_published,
    read_secret,
)
from verifiers.grammar_sense import check_sense, what_is_signed
from verifiers.handshake_rule import read_handshakes
from verifiers.layout import Kind, Layout
from verifiers.locate import Locator, Place, parse_locator
from verifiers.preset import (
    BODY,
    FIRST_FREE,
    ID,
    KEY_NAME,
    SIGNATURE,
    TIMESTAMP,
    TYPE,
    Content,
    Found,
    Match,
    Preset,
    SecretForm,
    load_preset,
    preset_text,
)
from verifiers.table import PresetError, Table
from verifiers.timestamp import TimestampRule, Unit

PROOFS = ("sdk", "published", "reference", "documented")

# Schemes that know by themselves where their signatures stand.
_PLACED = ("none", "sns", "http_message", "wecom")

_EVERYWHERE = {Place.HEADER, Place.QUERY, Place.FORM, Place.PARAM, Place.BODY}


def parse(table: Mapping[str, Any], where: str, text: str | None, path: str) -> Preset:
    """Return the preset of a table; PresetError for anything outside the grammar."""
    own = Table(table, where, text, path)
    whole = dict(table)
    if "like" in own:
        whole = {**_base(own), **{key: value for key, value in table.items() if key != "like"}}
    return _Parser(Table(whole, where, text, path)).preset()


def _base(table: Table) -> dict[str, Any]:
    """Return the tables of the preset that this one is like; its own tables replace them whole."""
    name = table.text("like")
    try:
        return tomllib.loads(preset_text(name))
    except PresetError as error:
        raise table.error("like", str(error)) from None


class _Parser:
    """Takes the tables one by one and works out the slots on the way."""

    def __init__(self, top: Table) -> None:
        self._top = top
        self._slots: dict[bytes, int] = {}
        self._count = FIRST_FREE
        self._required: dict[int, tuple[bytes, bytes]] = {}
        self._single: set[int] = set()
        self._by_field: dict[str, int] = {}
        self._derived: list[tuple[int, Field]] = []
        self._labelled: list[tuple[int, bytes]] = []
        self._of_key: list[tuple[int, str]] = []

    def preset(self) -> Preset:
        top = self._top
        scheme = top.word("scheme", schemes.SCHEMES, "signature")
        signature = self._signature(scheme)
        layout: Layout = signature["layout"]
        timestamp = self._timestamp(layout.kind)
        event_id, event_type = self._event()
        body_required = self._read_required()
        templates = self._templates(scheme)
        contents = tuple(self._content(template) for template in templates)
        options = self._options(scheme)
        matches = self._matches()
        secrets = self._secrets(layout, scheme)
        check_sense(top, scheme, templates, secrets, event_id, timestamp)
        raw = any(place.place is Place.RAW for place in signature["signature"])
        body, stamped, named = what_is_signed(
            scheme, templates, timestamp, event_id, options, raw=raw
        )
        otherwise = top.text("otherwise", "")
        preset = Preset(
            **signature,
            **self._facts(),
            scheme=scheme,
            read=_reader(scheme),
            options=options,
            signed=templates[0],
            contents=contents,
            matches=matches,
            secrets=secrets,
            published=read_published(top),
            timestamp=timestamp,
            event_id=event_id,
            event_type=event_type,
            required=tuple((slot, *pair) for slot, pair in self._required.items()),
            body_required=body_required,
            otherwise=load_preset(otherwise) if otherwise else None,
            body_signed=body,
            timestamp_signed=stamped,
            id_signed=named,
            id_in_content="id" in templates[0].words,
            checks=(),
            slots=self._slots,
            single=tuple(self._single),
            derived=tuple(self._derived),
            labelled=tuple(self._labelled),
            of_key=tuple(self._of_key),
            slot_count=self._count,
        )
        top.done()
        return replace(preset, checks=checks_made(preset))

    def _facts(self) -> dict[str, Any]:
        """Read what is a plain word, text or number."""
        top = self._top
        return {
            "name": top.text("name"),
            "docs": top.text("docs", ""),
            "proof": top.word("proof", PROOFS, "documented"),
            "status_read": top.text("status_read", ""),
            "retry_horizon_s": top.number("retry_horizon_s"),
            "decoded": top.word("signed_over", ("wire", "decoded"), "wire") == "decoded",
            "ack": read_ack(top),
            "handshakes": read_handshakes(top),
        }

    def _signature(self, scheme: str) -> dict[str, Any]:
        """Read [signature]; only a scheme of its own may know where signatures stand."""
        table = self._top.table("signature")
        where = {"items": {Place.ITEM}, "jwt": _EVERYWHERE | {Place.RAW}}.get(scheme, _EVERYWHERE)
        places = self._places(table, "from", where, SIGNATURE)
        if not places and scheme not in _PLACED:
            raise table.error("from", "is required")
        found = {
            "signature": places,
            "several": table.truth("several", default=False),
            "layout": read_layout(table),
            "encoding": Encoding(
                table.word(
                    "encoding", list(Encoding), "base64url" if scheme in ("jwt", "x5c") else None
                )
                if places
                else Encoding.BASE64
            ),
        }
        self._places(table, "key_name", {Place.HEADER, Place.SIGNATURE}, KEY_NAME)
        table.done()
        return found

    def _secrets(self, layout: Layout, scheme: str) -> tuple[SecretForm, ...]:
        secrets = tuple(read_secret(t, layout, scheme) for t in self._top.tables("secret"))
        for form in secrets:
            if form.needs is not None and form.needs[0] not in self._slots:
                self._slots[form.needs[0]] = self._new_slot()
        return secrets

    # ------------------------------------------------------------ places

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
            elif slot in (SIGNATURE, TIMESTAMP, KEY_NAME) and place.place is not Place.ITEM:
                self._fill(slot, place)
        if len(places) > 1 and any(place.place is not Place.HEADER for place in places):
            raise table.error(key, "alternatives are possible for headers only")
        return places

    def _fill(self, slot: int, place: Locator) -> None:
        if place.place is Place.SIGNATURE:
            if slot != TIMESTAMP:  # its own reader tells absent from repeated
                self._labelled.append((slot, place.name))
        else:
            self._derived.append((slot, Field(place.text, "place", place=place)))

    def _timestamp(self, kind: Kind) -> TimestampRule | None:
        if "timestamp" not in self._top:
            return None
        table = self._top.table("timestamp")
        labelled = kind in (Kind.PAIRS, Kind.POSITIONAL)
        allowed = _EVERYWHERE | ({Place.SIGNATURE} if labelled else set())
        places = self._places(table, "from", allowed, TIMESTAMP)
        if not places:
            raise table.error("from", "is required")
        judged = not ("tolerance" in table and table.word("tolerance", ("none",)) == "none")
        tolerance_s = table.number("tolerance_s", 300) if judged else 0
        rule = TimestampRule(
            places,
            Unit(table.word("unit", list(Unit), Unit.SECONDS)),
            tolerance_s,
            table.number("future_tolerance_s", tolerance_s) if judged else 0,
            table.truth("retry_restamps", default=False),
            judged,
        )
        table.done()
        return rule

    def _event(self) -> tuple[tuple[Locator, ...], tuple[Locator, ...]]:
        table = self._top.table("event")
        allowed = _EVERYWHERE | {Place.CLAIM}
        event_id = self._places(table, "id", allowed, ID)
        event_type = self._places(table, "type", allowed, TYPE)
        table.done()
        return event_id, event_type

    def _read_required(self) -> bool:
        """Read [required]: `body = true`, and headers with the value that `sign` sends."""
        table = self._top.table("required")
        body = table.truth("body", default=False)
        for entry in table.tables("headers"):
            names = [text.encode() for text in entry.texts("names")]
            if not names or any(name != name.lower() for name in names):
                raise entry.error("names", "must list header names in lower case")
            slots = {self._slots.get(name) for name in names}
            slot = slots.pop() if len(slots) == 1 else None
            if slot is None:
                slot = self._new_slot()
                self._slots.update(dict.fromkeys(names, slot))
            self._require(slot, names[0], entry.text("sample", "-").encode())
            entry.done()
        table.done()
        return body

    def _require(self, slot: int, name: bytes, sample: bytes) -> None:
        self._required.setdefault(slot, (name, sample))
        self._single.add(slot)

    def _new_slot(self) -> int:
        self._count += 1
        return self._count - 1

    # ------------------------------------------------------------ content

    def _templates(self, scheme: str) -> tuple[Template, ...]:
        if "signed" not in self._top and scheme != "signature":
            return (compile_template(""),)
        texts = self._top.texts("signed")
        if not texts:
            raise self._top.error("signed", "is required")
        return tuple(self._top.convert("signed", compile_template, text) for text in texts)

    def _content(self, template: Template) -> Content:
        for segment in template.segments:
            for piece in segment.pieces:
                if isinstance(piece, Field):
                    self._slot_of(piece, needed=not segment.optional)
        slots = tuple(self._by_field[field.text] for field in template.fields)
        return Content(template, slots, _picker(slots))

    def _slot_of(self, field: Field, *, needed: bool) -> None:
        """Give the field a slot, and say what fills it."""
        place, plain = field.place, not (field.transforms or field.optional or field.filled)
        fixed = {"timestamp": TIMESTAMP, "id": ID, "body": BODY}
        if plain and field.word in fixed:
            self._by_field[field.text] = fixed[field.word]
            return
        if field.text in self._by_field:
            return
        if plain and place is not None and place.place is Place.HEADER:
            slot = self._slots.setdefault(place.name, self._count)
            if slot == self._count:
                self._new_slot()
            self._single.add(slot)
            if needed and slot >= FIRST_FREE:
                self._require(slot, place.name, b"-")
        else:
            slot = self._new_slot()
            self._source(field, slot)
        self._by_field[field.text] = slot

    def _source(self, field: Field, slot: int) -> None:
        if field.of_key:
            self._of_key.append((slot, field.part or "secret"))
        elif field.place is not None and field.place.place is Place.SIGNATURE:
            self._labelled.append((slot, field.place.name))
        else:
            self._derived.append((slot, field))

    def _matches(self) -> tuple[Match, ...]:
        found = []
        for table in self._top.tables("match"):
            place = table.convert("at", parse_locator, table.text("at"))
            if place.place not in PLACES_OF_FIELDS:
                raise table.error("at", f"{place.text!r} cannot stand here")
            text = table.text("is")
            wanted = self._content(table.convert("is", _literal_or_template, text))
            unless = table.word("unless", ("form", "never"), "never")
            optional = table.truth("optional", default=False)
            found.append(Match(place, wanted, optional, unless == "form"))
            table.done()
        return tuple(found)

    def _options(self, scheme: str) -> Any:
        if scheme in ("jwt", "x5c"):
            from verifiers.schemes.jwt import read_rule  # noqa: PLC0415

            return read_rule(
                self._top.table("token"),
                lambda table, key, text: self._content(
                    table.convert(key, _literal_or_template, text)
                ),
            )
        if scheme == "items":
            return self._top.convert("each", parse_locator, self._top.text("each"))
        return None


def _literal_or_template(text: str) -> Template:
    """Return a template that may also be plain text."""
    if "{" in text or "[" in text:
        return compile_template(text)
    return Template(text, (), (), text.encode().replace(b"%", b"%%"), None)


def _picker(slots: tuple[int, ...]) -> Any:
    if not slots:
        return _nothing
    if len(slots) == 1:
        only = slots[0]
        return lambda found: (found[only],)
    return itemgetter(*slots)


def _nothing(found: Found) -> tuple[()]:  # noqa: ARG001  # a token signs nothing
    return ()


def _reader(scheme: str) -> Any:
    """Return how a request of this scheme is read; None for the core's own way."""
    if scheme == "jwt":
        from verifiers.schemes.jwt import read  # noqa: PLC0415
    elif scheme == "x5c":
        from verifiers.schemes.x5c import read  # noqa: PLC0415
    elif scheme == "items":
        from verifiers.schemes.items import read  # noqa: PLC0415
    elif scheme == "sns":
        from verifiers.schemes.sns import read  # noqa: PLC0415
    elif scheme == "http_message":
        from verifiers.schemes.http_message import read  # noqa: PLC0415
    elif scheme == "wecom":
        from verifiers.schemes.wecom import read  # noqa: PLC0415
    else:
        return None
    return read
