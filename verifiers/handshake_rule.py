"""The grammar of handshakes: what a provider asks when a webhook is registered, and what is due.

`[[handshake]]` tables of a preset become `Rule`s here. The grammar is closed, like the rest of a
preset: an unknown key or word is a `PresetError`. `verifiers.handshake` answers by these rules.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from verifiers.encoding import Encoding
from verifiers.locate import Locator, Place, parse_locator
from verifiers.table import Table

METHODS = ("GET", "HEAD", "OPTIONS", "POST")
#: What an operator sets under `[sources.NAME.handshake]`; the first two are secrets.
SETTINGS = ("verify_token", "verification_token", "topics", "allowed_origins")
#: What may be encrypted, and how.
SEALS = ("lark-body", "wecom-challenge")
#: Plain digests and MACs that a provider wants as a proof.
PROOFS = ("hmac-sha1", "hmac-sha256", "sha256")

_PLACES = frozenset({Place.HEADER, Place.QUERY, Place.FORM, Place.PARAM, Place.BODY})
_STATUS = {"refused": (400, 499), "status": (200, 299)}


class Piece(NamedTuple):
    """A literal text, or (with `word`) the field that stands for one."""

    word: str
    text: str


Text = tuple[Piece, ...]


class Condition(NamedTuple):
    """At a place stands this text, something (`True`), nothing (`False`) or `[]` (`None`)."""

    place: Locator
    wanted: str | bool | None


@dataclass(frozen=True, slots=True)
class Proof:
    """A digest over a text, with the source's key where `algorithm` is a MAC."""

    algorithm: str
    over: Text
    encoding: Encoding


@dataclass(frozen=True, slots=True)
class Rule:
    """One handshake.

    `when` tells it from every other request; `must` is what it then has to say (a literal or a
    setting), or it is refused with the status `refused`. `bare_refusals` says that the provider
    wants every refusal of this source without a body. `signed` ones are answered only once
    verification accepts them. `hands_over`: the challenge is the secret itself. `confirm` is where
    the address stands that a person has to visit; such a request is recorded as an event.
    """

    method: str
    signed: bool
    seal: str
    empty_body: bool
    when: tuple[Condition, ...]
    must: tuple[tuple[Locator, Text], ...]
    refused: int
    challenge: Locator | None
    proof: Proof | None
    status: int
    bare_refusals: bool
    text: Text | None
    members: tuple[tuple[str, Text | int], ...]
    headers: tuple[tuple[str, Text], ...]
    hands_over: bool
    confirm: Locator | None
    confirm_pattern: re.Pattern[str] | None

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings without which nothing can be answered."""
        texts = [text for _, text in self.must] + ([self.proof.over] if self.proof else [])
        words = {piece.word for text in texts for piece in text}
        return tuple(name for name in SETTINGS if name in words)

    @property
    def summary(self) -> str:
        """A few words for lists: the method, and what is answered."""
        return f"{self.method} {self._answer()}"

    def _answer(self) -> str:
        if self.hands_over:
            return "hands the secret over"
        if self.confirm is not None:
            return "confirmed by an operator"
        what = "signed, " if self.signed else ""
        if self.proof is not None:
            return f"{what}proof of the key"
        return f"{what}echo" if self.challenge is not None else f"{what}acknowledged"


def read_handshakes(top: Table) -> tuple[Rule, ...]:
    """Return the rules of the `[handshake]` table, or of several."""
    return tuple(_rule(table) for table in top.tables("handshake"))


def _rule(table: Table) -> Rule:
    challenge = _place(table, "challenge")
    confirm = _place(table, "confirm")
    rule = Rule(
        method=table.word("method", METHODS, "POST"),
        signed=table.truth("signed", default=False),
        seal=table.word("seal", ("none", *SEALS), "none"),
        empty_body=table.truth("empty_body", default=False),
        when=tuple(_conditions(table.table("when"))),
        must=tuple(_musts(table.table("must"))),
        refused=_status(table, "refused", 401),
        challenge=challenge,
        proof=_proof(table),
        status=_status(table, "status", 200),
        bare_refusals=table.truth("bare_refusals", default=False),
        text=_text(table, "text", _ANSWER) if "text" in table else None,
        members=tuple(_members(table.table("json"))),
        headers=tuple(_headers(table.table("headers"))),
        hands_over=table.truth("hands_over", default=False),
        confirm=confirm,
        confirm_pattern=_pattern(table) if confirm is not None else None,
    )
    table.done()
    _check(table, rule)
    return rule


def _check(table: Table, rule: Rule) -> None:
    """Refuse a table that could never answer, or that would answer anything."""
    texts = [text for _, text in rule.members if not isinstance(text, int)]
    texts += [text for _, text in rule.headers] + ([rule.text] if rule.text else [])
    words = {piece.word for text in texts for piece in text}
    if rule.text is not None and rule.members:
        raise table.error("json", "an answer is either text or json")
    if "proof" in words and rule.proof is None:
        raise table.error("proof", "is required for {proof}")
    needs = {"challenge"} if rule.proof is not None or rule.hands_over else set()
    if "challenge" in words | needs and rule.challenge is None:
        raise table.error("challenge", "is required")
    if rule.confirm is not None and not rule.signed:
        raise table.error("confirm", "only a signed request may name an address")
    if rule.method == "POST" and not rule.when and rule.challenge is None:
        raise table.error("when", "is required: every event would be taken for this handshake")


def _place(table: Table, key: str) -> Locator | None:
    text = table.text(key, "")
    return _located(table, key, text) if text else None


def _located(table: Table, key: str, text: str) -> Locator:
    place = table.convert(key, parse_locator, text)
    if place.place not in _PLACES:
        raise table.error(key, f"{text!r} cannot stand here")
    return place


def _status(table: Table, key: str, default: int) -> int:
    value = table.number(key, default)
    low, high = _STATUS[key]
    if not low <= value <= high:
        raise table.error(key, f"must be {low} to {high}")
    return value


def _conditions(table: Table) -> Iterable[Condition]:
    for key in table.keys():  # noqa: SIM118  # a Table is no mapping
        wanted = table.free(key)
        if wanted == []:
            wanted = None
        elif not isinstance(wanted, str | bool):
            raise table.error(key, "must be a text, true (is there), false (is not) or []")
        yield Condition(_located(table, key, key), wanted)


def _musts(table: Table) -> Iterable[tuple[Locator, Text]]:
    for key in table.keys():  # noqa: SIM118
        yield _located(table, key, key), _text(table, key, SETTINGS)


def _headers(table: Table) -> Iterable[tuple[str, Text]]:
    for key in table.keys():  # noqa: SIM118
        if not re.fullmatch(r"[a-z][a-z0-9-]*", key):
            raise table.error(key, "is no header name in lower case")
        yield key, _text(table, key, _ANSWER)


def _members(table: Table) -> Iterable[tuple[str, Text | int]]:
    for key in table.keys():  # noqa: SIM118
        number = isinstance(table.free(key), int)
        yield key, table.number(key) if number else _text(table, key, _ANSWER)


def _proof(top: Table) -> Proof | None:
    if "proof" not in top:
        return None
    table = top.table("proof")
    proof = Proof(
        table.word("algorithm", PROOFS),
        _text(table, "over", ("challenge", "url", *SETTINGS)),
        Encoding(table.word("encoding", ("hex", "base64"))),
    )
    if "challenge" not in {piece.word for piece in proof.over}:
        raise table.error("over", "must hold {challenge}")
    table.done()
    return proof


def _pattern(table: Table) -> re.Pattern[str]:
    """Return the pattern of the whole address: https, an exact host."""
    text = table.text("confirm_pattern")
    host = text.removeprefix("https://").partition("/")[0]
    if not text.startswith("https://") or re.search(r"(?<!\\)\.", host):
        raise table.error("confirm_pattern", r"must begin with https:// and an exact host (\.)")
    try:
        return re.compile(text)
    except re.error as error:
        raise table.error("confirm_pattern", f"is no pattern: {error}") from None


_ANSWER = ("challenge", "proof")
_FIELD = re.compile(r"\{([^{}]*)\}")


def _text(table: Table, key: str, words: Iterable[str]) -> Text:
    """Return the text at `key`: literals, and in braces one of `words` or a part of the key."""
    pieces = []
    for number, part in enumerate(_FIELD.split(table.text(key))):
        if number % 2:
            if part not in words and not re.fullmatch(r"key:[a-z_]+", part):
                known = ", ".join(words)
                raise table.error(key, f"unknown field {{{part}}}; known: {known}, key:PART")
            pieces.append(Piece(part, ""))
        elif part:
            if "{" in part or "}" in part:
                raise table.error(key, "a brace stands alone")
            pieces.append(Piece("", part))
    return tuple(pieces)
