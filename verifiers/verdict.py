"""What verification said.

`Reason` and `Flag` are public: the same slugs stand in the store, the API, logs, metrics and
pages. They may be added to, never renamed. A verdict does not carry the list of checks; it is
derived from the preset's fixed order and the reason, so that the hot path pays nothing for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from verifiers.document import Document
    from verifiers.preset import Preset
    from verifiers.replay import EventKey


class Check(StrEnum):
    """The checks, in the order in which they are made."""

    SIGNATURE_PRESENT = "signature_present"
    HEADERS_PRESENT = "headers_present"
    BODY_PRESENT = "body_present"
    SIGNATURE_READABLE = "signature_readable"
    TIMESTAMP_READABLE = "timestamp_readable"
    ID_READABLE = "id_readable"
    SIGNATURE_MATCHES = "signature_matches"
    KEY_VALID = "key_valid"
    TIMESTAMP_FRESH = "timestamp_fresh"


class Reason(StrEnum):
    """Why a request is refused."""

    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_REPEATED = "signature_repeated"
    HEADER_MISSING = "header_missing"
    HEADER_REPEATED = "header_repeated"
    BODY_EMPTY = "body_empty"
    SIGNATURE_MALFORMED = "signature_malformed"
    TIMESTAMP_MISSING = "timestamp_missing"
    TIMESTAMP_REPEATED = "timestamp_repeated"
    TIMESTAMP_MALFORMED = "timestamp_malformed"
    ID_MISSING = "id_missing"
    ID_REPEATED = "id_repeated"
    ID_MALFORMED = "id_malformed"
    SIGNATURE_MISMATCH = "signature_mismatch"
    KEY_EXPIRED = "key_expired"
    KEY_NOT_YET_VALID = "key_not_yet_valid"
    TIMESTAMP_TOO_OLD = "timestamp_too_old"
    TIMESTAMP_IN_FUTURE = "timestamp_in_future"


class Flag(StrEnum):
    """What is remarkable about an accepted request."""

    ID_MISSING = "id_missing"  # the preset names an id; the request has none
    ID_UNUSABLE = "id_unusable"  # present, but not printable ASCII of 1 to 255 characters
    AMBIGUOUS_JSON = "ambiguous_json"  # a key stands twice, exactly or but for its case
    BODY_UNREADABLE = "body_unreadable"  # wanted from the body, which is not (bounded) JSON


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


_FAILS: dict[Reason, Check] = {
    Reason.SIGNATURE_MISSING: Check.SIGNATURE_PRESENT,
    Reason.SIGNATURE_REPEATED: Check.SIGNATURE_PRESENT,
    Reason.HEADER_MISSING: Check.HEADERS_PRESENT,
    Reason.HEADER_REPEATED: Check.HEADERS_PRESENT,
    Reason.BODY_EMPTY: Check.BODY_PRESENT,
    Reason.SIGNATURE_MALFORMED: Check.SIGNATURE_READABLE,
    Reason.TIMESTAMP_MISSING: Check.TIMESTAMP_READABLE,
    Reason.TIMESTAMP_REPEATED: Check.TIMESTAMP_READABLE,
    Reason.TIMESTAMP_MALFORMED: Check.TIMESTAMP_READABLE,
    Reason.ID_MISSING: Check.ID_READABLE,
    Reason.ID_REPEATED: Check.ID_READABLE,
    Reason.ID_MALFORMED: Check.ID_READABLE,
    Reason.SIGNATURE_MISMATCH: Check.SIGNATURE_MATCHES,
    Reason.KEY_EXPIRED: Check.KEY_VALID,
    Reason.KEY_NOT_YET_VALID: Check.KEY_VALID,
    Reason.TIMESTAMP_TOO_OLD: Check.TIMESTAMP_FRESH,
    Reason.TIMESTAMP_IN_FUTURE: Check.TIMESTAMP_FRESH,
}


@dataclass(frozen=True, slots=True)
class Verified:
    """The request is what it claims, and this is the evidence.

    `timestamp` is in unix seconds, None where the scheme has none. `event_id` and `event_type`
    are information for people; deduplication uses `event_key` only. `document` is the body,
    parsed at most once, for whoever looks for more in it.
    """

    key_id: str
    event_key: EventKey
    event_id: str | None
    event_type: str | None
    timestamp: int | None
    flags: tuple[Flag, ...]
    document: Document = field(repr=False, compare=False)

    @property
    def weak(self) -> bool:
        """Whether the signature covers no body: the event may only make a read due."""
        return self.event_key.kind == "weak"

    def checks(self, preset: Preset) -> tuple[Checked, ...]:
        """Return every check of `preset`, all passed."""
        return tuple(Checked(check, State.PASSED) for check in preset.checks)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The request is refused, for the first reason that was met."""

    reason: Reason

    def checks(self, preset: Preset) -> tuple[Checked, ...]:
        """Return every check of `preset`: passed, the failed one, and those not reached."""
        failed = preset.checks.index(_FAILS[self.reason])
        lines = [Checked(check, State.PASSED) for check in preset.checks[:failed]]
        lines.append(Checked(preset.checks[failed], State.FAILED, self.reason))
        lines += [Checked(check, State.NOT_REACHED) for check in preset.checks[failed + 1 :]]
        return tuple(lines)
