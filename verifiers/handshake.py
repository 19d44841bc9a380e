"""Answers to what providers ask when a webhook is registered, and again and again afterwards.

`meet` is pure and total: any request gives an outcome or `None` (this is no handshake), never an
exception. It echoes only what is due: a challenge of limited length in printable ASCII, as
`text/plain` with nosniff, or as JSON. Providers repeat their challenges (X hourly, Zoom every three
days), so nothing here depends on a time of setup. Whether a secret that is handed over may be kept
is the caller's to decide; nothing is fetched here, whatever a request names.
"""

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from verifiers.encoding import encode, equal
from verifiers.handshake_rule import Piece, Rule, Text
from verifiers.keys import Key, KeyRing
from verifiers.locate import Locator, Place
from verifiers.preset import Preset
from verifiers.reading import Reading
from verifiers.reason import Reason
from verifiers.request import RawRequest
from verifiers.sealed import open_lark, open_wecom
from verifiers.verdict import Rejected
from verifiers.verify import verify

#: No handshake is longer; a larger body is an event and is not even looked at.
BODY_MAX = 16 << 10
CHALLENGE_MAX = 1024

#: Printable ASCII, without what could open a tag where somebody ignores the content type.
_ECHOED = re.compile(rb"[ -;=?-~]+")
_NOSNIFF = (b"x-content-type-options", b"nosniff")

Settings = Mapping[str, tuple[str, ...]]


class Unmet(StrEnum):
    """Why a handshake is refused; slugs beside those of verification."""

    REFUSED = "handshake_refused"
    UNREADABLE = "handshake_unreadable"
    NOT_OPEN = "handshake_not_open"


@dataclass(frozen=True, slots=True)
class Reply:
    """What to answer, exactly."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Refused:
    """Not to be answered: why, and the status the provider expects for it."""

    reason: Unmet | Reason
    status: int


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The request brings the secret. `reply` is due only if somebody waits for it."""

    secret: bytes
    reply: Reply

    def __repr__(self) -> str:
        """Say nothing of the secret."""
        return f"HandedOver(reply={self.reply.status})"


@dataclass(frozen=True, slots=True)
class ToConfirm:
    """A genuine request that a person completes by visiting the address it names."""


Outcome = Reply | Refused | HandedOver | ToConfirm


def meet(
    request: RawRequest, preset: Preset, keys: KeyRing, settings: Settings, now: int
) -> Outcome | None:
    """Return what the handshake in `request` deserves; `None` when there is none in it."""
    if len(request.body) > BODY_MAX:
        return None
    for rule in preset.handshakes:
        reading = _recognised(rule, request, keys, now)
        if reading is not None:
            return _outcome(_Meeting(rule, reading, preset, keys, settings, now))
    return None


def _recognised(rule: Rule, request: RawRequest, keys: KeyRing, now: int) -> Reading | None:
    """Return the request, opened, if it is this rule's handshake."""
    if request.method != rule.method or (rule.empty_body and request.body):
        return None
    if rule.seal == "lark-body":
        plain = open_lark(request.body, [key.material for key in keys.live(now)])
        if plain is None:
            return None
        reading = Reading(request, plain)
    else:
        reading = Reading(request, request.body)
    if rule.challenge is not None and not _is_there(reading, rule.challenge):
        return None
    return reading if all(_holds(reading, *condition) for condition in rule.when) else None


def _holds(reading: Reading, place: Locator, wanted: str | bool | None) -> bool:
    if wanted is None:
        return place.place is Place.BODY and reading.document.value(place.pointer) == []
    if isinstance(wanted, bool):
        return _is_there(reading, place) is wanted
    return reading.at(place) == wanted.encode()


def _is_there(reading: Reading, place: Locator) -> bool:
    if place.place is Place.BODY:
        return reading.document.value(place.pointer) is not None
    return reading.at(place) is not None


@dataclass(slots=True)
class _Meeting:
    """A recognised handshake on its way to an outcome."""

    rule: Rule
    reading: Reading
    preset: Preset
    keys: KeyRing
    settings: Settings
    now: int
    key: Key | None = None
    challenge: bytes = b""


def _outcome(meeting: _Meeting) -> Outcome:
    rule, reading = meeting.rule, meeting.reading
    live = meeting.keys.live(meeting.now)
    meeting.key = live[-1] if live else None  # the newest: what the provider was given last
    if rule.signed:
        verdict = verify(reading.request, meeting.preset, meeting.keys, meeting.now)
        if isinstance(verdict, Rejected):
            return Refused(verdict.reason, rule.refused)
        meeting.key = next((key for key in live if key.id == verdict.key_id), meeting.key)
    if not all(_says(meeting, place, text) for place, text in rule.must):
        return Refused(Unmet.REFUSED, rule.refused)
    if rule.confirm is not None:
        return _to_confirm(rule, reading)
    challenge = _challenge(meeting)
    if challenge is None:
        return Refused(Unmet.UNREADABLE, rule.refused)
    meeting.challenge = challenge
    reply = _reply(meeting)
    if reply is None:
        return Refused(Unmet.UNREADABLE, rule.refused)
    return HandedOver(challenge, reply) if rule.hands_over else reply


def _says(meeting: _Meeting, place: Locator, text: Text) -> bool:
    """Whether a place says what is wanted: a text, or one of the values of a setting."""
    given = meeting.reading.at(place)
    if given is None:
        return False
    if len(text) == 1 and text[0].word in meeting.settings:
        wanted = meeting.settings[text[0].word]
    else:
        wanted = ("".join(piece.text for piece in text),)
    found = [equal(given, value.encode()) for value in wanted if value]  # all are compared
    return any(found)


def _to_confirm(rule: Rule, reading: Reading) -> Outcome:
    address = None if rule.confirm is None else reading.at(rule.confirm)
    pattern = rule.confirm_pattern
    if address is None or pattern is None:
        return Refused(Unmet.UNREADABLE, rule.refused)
    if not pattern.fullmatch(address.decode("utf-8", "replace")):
        return Refused(Unmet.REFUSED, rule.refused)
    return ToConfirm()


def _challenge(meeting: _Meeting) -> bytes | None:
    """Return the challenge, b"" where the rule has none, None for one that is not echoed."""
    rule = meeting.rule
    if rule.challenge is None:
        return b""
    value = meeting.reading.at(rule.challenge)
    if value is not None and rule.seal == "wecom-challenge":
        value = None if meeting.key is None else open_wecom(meeting.key.part, value)
    if value is None or len(value) > CHALLENGE_MAX or not _ECHOED.fullmatch(value):
        return None
    return value


def _reply(meeting: _Meeting) -> Reply | None:
    rule = meeting.rule
    headers = []
    for name, text in rule.headers:
        value = _rendered(meeting, text)
        if value is None:
            return None
        headers.append((name.encode(), value))
    if rule.members:
        body = _json(meeting)
        headers.append((b"content-type", b"application/json"))
    elif rule.text is not None:
        body = _rendered(meeting, rule.text)
        headers.append((b"content-type", b"text/plain"))
    else:
        body = b""
    return None if body is None else Reply(rule.status, (*headers, _NOSNIFF), body)


def _json(meeting: _Meeting) -> bytes | None:
    document: dict[str, str | int] = {}
    for name, text in meeting.rule.members:
        if isinstance(text, int):
            document[name] = text
            continue
        value = _rendered(meeting, text)
        if value is None:
            return None
        document[name] = value.decode("latin-1")
    return json.dumps(document, separators=(",", ":")).encode()


def _rendered(meeting: _Meeting, text: Text) -> bytes | None:
    values = [_value(meeting, piece) for piece in text]
    return None if None in values else b"".join(value for value in values if value is not None)


def _value(meeting: _Meeting, piece: Piece) -> bytes | None:
    word = piece.word
    if not word:
        return piece.text.encode()
    if word == "challenge":
        return meeting.challenge
    if word == "url":
        return meeting.reading.request.url.partition("?")[0].encode()
    if word == "proof":
        return _proof(meeting)
    if word.startswith("key:"):
        return None if meeting.key is None else meeting.key.part(word.removeprefix("key:"))
    values = meeting.settings.get(word, ())
    return values[0].encode() if values else None


def _proof(meeting: _Meeting) -> bytes | None:
    proof = meeting.rule.proof
    content = None if proof is None else _rendered(meeting, proof.over)
    if proof is None or content is None:
        return None
    if proof.algorithm == "sha256":
        digest = hashlib.sha256(content).digest()
    elif meeting.key is None:
        return None
    else:
        name = proof.algorithm.removeprefix("hmac-")
        digest = hmac.digest(meeting.key.material, content, name)
    return encode(proof.encoding, digest)
