"""What verification said: accepted with the evidence, or refused for a reason.

A verdict does not carry the list of checks; it is derived from the preset's fixed order and the
reason. The evidence is worked out when somebody asks for it: most callers want the event key only,
and most schemes need no parsed body for that, so nothing is parsed or hashed before it is wanted.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from verifiers.claim import Claim
from verifiers.document import Document, Readability
from verifiers.locate import Locator, Place
from verifiers.preset import ID, TYPE, Preset
from verifiers.reading import Reading
from verifiers.reason import FAILS, Check, Flag, Reason
from verifiers.replay import EventKey, digest_of, is_usable_id

__all__ = ["Check", "Checked", "Flag", "Reason", "Rejected", "State", "Verified"]

_UNKNOWN: Any = object()


class State(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_REACHED = "not_reached"


class Checked(NamedTuple):
    """One line of the list of checks."""

    check: Check
    state: State
    reason: Reason | None = None


class Verified:
    """The request is what it claims, and this is the evidence.

    `key_id` names the key that made the signature; `timestamp` is in unix seconds, None where the
    scheme has none. `event_id` and `event_type` are information for people; deduplication uses
    `event_key` only.
    """

    __slots__ = ("_claim", "_event_id", "_flags", "_preset", "_reading", "_type", "key_id")

    def __init__(self, key_id: str, preset: Preset, reading: Reading, claim: Claim) -> None:
        self.key_id = key_id
        self._preset = preset
        self._reading = reading
        self._claim = claim
        self._flags: list[Flag] = []
        self._event_id: str | None = _UNKNOWN
        self._type: str | None = _UNKNOWN

    def __repr__(self) -> str:
        return f"Verified({self.key_id!r}, {self._preset.name!r})"

    @property
    def timestamp(self) -> int | None:
        """When the request was signed, in unix seconds."""
        return self._claim.at

    @property
    def document(self) -> Document:
        """The body, parsed at most once, for whoever looks for more in it."""
        return self._reading.document

    @property
    def body_signed(self) -> bool:
        """Whether the signature covers the body."""
        covers = self._claim.covers_body
        return self._preset.body_signed if covers is None else covers

    @property
    def weak(self) -> bool:
        """Whether the signature covers no body: the event may only make a read due."""
        return not self.body_signed

    @property
    def event_id(self) -> str | None:
        """The id that the provider gave the event; None where it is missing or unusable."""
        if self._event_id is _UNKNOWN:
            self._event_id = self._read_id()
        return self._event_id

    @property
    def event_type(self) -> str | None:
        """What the provider calls this kind of event."""
        if self._type is _UNKNOWN:
            places = self._preset.event_type
            text = self._text(places[0], self._claim.found[TYPE]) if places else None
            self._type = text if text is not None and is_usable_id(text) else None
        return self._type

    @property
    def flags(self) -> tuple[Flag, ...]:
        """What is remarkable about the request."""
        _ = self.event_id, self.event_type
        unsigned = (Flag.UNSIGNED,) if self._preset.unsigned else ()
        return (*self._flags, *unsigned)

    @property
    def event_key(self) -> EventKey:
        """What deduplication compares; built from what the signature covers."""
        if not self.body_signed:
            unsigned = (self.event_id or "").encode()
            return EventKey("weak", digest_of((b"id", unsigned), (b"body", self._reading.body)))
        if self._preset.id_signed and self.event_id is not None:
            return EventKey("id", self.event_id)
        return EventKey("digest", digest_of(*self._signed_values()))

    def _signed_values(self) -> list[tuple[bytes, bytes]]:
        """Return what is signed, named; a timestamp that retries re-stamp is left out."""
        preset, found = self._preset, self._claim.found
        if preset.read is not None:
            return [(b"body", self._reading.body)]
        rule = preset.timestamp
        restamps = rule is not None and rule.retry_restamps
        content = preset.contents[0]
        named = zip(content.template.fields, content.slots, strict=True)
        return [
            (field.text.encode(), found[slot] or b"")
            for field, slot in named
            if not field.of_key and not (restamps and field.word == "timestamp")
        ]

    def checks(self, preset: Preset) -> tuple[Checked, ...]:
        """Return every check of `preset`, all passed."""
        return tuple(Checked(check, State.PASSED) for check in preset.checks)

    def _read_id(self) -> str | None:
        if not self._preset.event_id:
            return None
        text = self._text(self._preset.event_id[0], self._claim.found[ID])
        if text is None:
            self._flags.append(Flag.ID_MISSING)
            return None
        if not is_usable_id(text):
            self._flags.append(Flag.ID_UNUSABLE)
            return None
        return text

    def _text(self, place: Locator, value: bytes | None) -> str | None:
        """Return the text at `place`; `value` is that of its header."""
        if place.place is Place.HEADER:
            return None if value is None else value.decode("latin-1")
        if place.place is not Place.BODY:
            raw = self._reading.at(place)
            return None if raw is None else raw.decode("utf-8", "replace")
        document = self._reading.document
        text = document.at(place.pointer)
        if document.state is not Readability.READABLE:
            ambiguous = document.state is Readability.AMBIGUOUS
            flag = Flag.AMBIGUOUS_JSON if ambiguous else Flag.BODY_UNREADABLE
            if flag not in self._flags:
                self._flags.append(flag)
        return text


@dataclass(frozen=True, slots=True)
class Rejected:
    """The request is refused, for the first reason that was met."""

    reason: Reason

    def checks(self, preset: Preset) -> tuple[Checked, ...]:
        """Return every check of `preset`: passed, the failed one, and those not reached."""
        failed = preset.checks.index(FAILS[self.reason])
        lines = [Checked(check, State.PASSED) for check in preset.checks[:failed]]
        lines.append(Checked(preset.checks[failed], State.FAILED, self.reason))
        lines += [Checked(check, State.NOT_REACHED) for check in preset.checks[failed + 1 :]]
        return tuple(lines)
