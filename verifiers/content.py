r"""What exactly is signed: a template over a closed set of fields.

No expressions: literal text and fields, `{timestamp}.{body}`. The values are the texts of the
request, byte for byte; nothing is normalised unless a transform says so (`{body|sha256|hex}`). A
part in brackets is left out when one of its fields is absent: `[Subject\n{body:/Subject}\n]`. A
field with a question mark is empty then; one with a plus counts as absent when it is empty.
`{{ }} [[ ]]` write the signs themselves.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from verifiers.canonical import PAIRS
from verifiers.locate import Locator, LocatorError, parse_locator
from verifiers.transform import TRANSFORMS, Transform

# Fields that are one word; the others are locators (`header:x-nonce`, `body:/id`) and `key:PART`.
WORDS = (
    "body",
    "timestamp",
    "id",
    "secret",
    "method",
    "url",
    "path",
    "query",
    "fields",
    "params",
    "qsh",
    "contentful-path",
    "contentful-headers",
    "plivo-v3",
)

# Fields that stand for every byte, or every field, of the body.
WHOLE_BODY = frozenset({"body", "fields", "params", "plivo-v3"})
WHOLE_URL = frozenset({"url", "qsh", "plivo-v3"})


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a word, a part of the key (`key:NAME`) or a place in the request.

    `pairs` turns decoded fields into one text; `leaving_out` names the field that holds the
    signature itself and is not signed.
    """

    text: str
    word: str
    part: str = ""
    place: Locator | None = None
    pairs: str = ""
    leaving_out: tuple[bytes, ...] = ()
    transforms: tuple[Transform, ...] = ()
    optional: bool = False
    filled: bool = False

    @property
    def of_key(self) -> bool:
        """Whether the value belongs to the key, not to the request."""
        return self.word in ("secret", "key")


@dataclass(frozen=True, slots=True)
class Segment:
    """Literals and fields; `optional` ones are left out when a field is absent."""

    pieces: tuple[bytes | Field, ...]
    optional: bool


@dataclass(frozen=True, slots=True)
class Template:
    """Signed content. `pattern` is a bytes format with one %b a field, where no part is optional.

    `id_ends_at` is the literal that follows `{id}`. An id that contains it could be cut in two
    ways ("m" + "1.x" or "m.1" + "x"), so such an id is refused.
    """

    text: str
    segments: tuple[Segment, ...]
    fields: tuple[Field, ...]
    pattern: bytes | None
    id_ends_at: bytes | None

    @property
    def words(self) -> frozenset[str]:
        """The words of all fields."""
        return frozenset(field.word for field in self.fields)

    @property
    def covering(self) -> frozenset[str]:
        """The words of what the signature protects: a checksum protects nothing (PayPal)."""
        return frozenset(field.word for field in self.fields if not _is_checksum(field))

    def render(self, value: Callable[[Field], bytes | None]) -> bytes | None:
        """Return the bytes, None when a field that is needed is absent."""
        parts: list[bytes] = []
        for segment in self.segments:
            pieces = [p if isinstance(p, bytes) else value(p) for p in segment.pieces]
            if None in pieces:
                if not segment.optional:
                    return None
                continue
            parts += [piece for piece in pieces if piece is not None]
        return b"".join(parts)


def _is_checksum(field: Field) -> bool:
    return TRANSFORMS["crc32"] in field.transforms


_PIECE = re.compile(r"(\{\{|\}\}|\[\[|\]\])|\{([^{}]*)\}|(\[)|(\])|([^{}\[\]]+)")
_SIGNS = {"{{": "{", "}}": "}", "[[": "[", "]]": "]"}


def compile_template(text: str) -> Template:
    """Return the template; ValueError with the reason for anything outside the grammar."""
    segments = _segments(text)
    pieces = [piece for segment in segments for piece in segment.pieces]
    fields = [piece for piece in pieces if isinstance(piece, Field)]
    if not fields and text:
        raise ValueError("no field is named")
    if len({field.text for field in fields}) != len(fields):
        raise ValueError("a field stands twice")
    pattern = None
    if not any(segment.optional for segment in segments):
        pattern = b"".join(
            p.replace(b"%", b"%%") if isinstance(p, bytes) else b"%b" for p in pieces
        )
    return Template(text, tuple(segments), tuple(fields), pattern, _after_id(pieces))


def _segments(text: str) -> list[Segment]:
    found: list[Segment] = []
    pieces: list[bytes | Field] = []
    inside, at = False, 0
    while at < len(text):
        match = _PIECE.match(text, at)
        if match is None:
            raise ValueError("a brace stands alone")
        at = match.end()
        sign, name, opens, closes, literal = match.groups()
        if opens or closes:
            if bool(opens) == inside:
                raise ValueError("a bracket stands alone, or within another")
            found.append(Segment(tuple(pieces), inside))
            pieces, inside = [], not inside
        elif name is not None:
            pieces.append(parse_field(name))
        else:
            pieces.append(_SIGNS.get(sign or "", literal or "").encode())
    if inside:
        raise ValueError("a bracket stands alone")
    found.append(Segment(tuple(pieces), optional=False))
    return [segment for segment in found if segment.pieces]


def parse_field(text: str) -> Field:
    """Return the field that `text` names, without its braces; ValueError for an unknown one."""
    name, *chain = text.split("|")
    optional, filled = name.endswith("?"), name.endswith("+")
    name = name.rstrip("?+") if optional or filled else name
    word, colon, rest = name.partition(":")
    pairs = chain.pop(0) if word in ("fields", "params") and chain else ""
    if (word in ("fields", "params")) != (pairs in PAIRS):
        raise ValueError(f"{{{text}}}: fields and params need one of {', '.join(PAIRS)}")
    unknown = [step for step in chain if step not in TRANSFORMS]
    if unknown:
        raise ValueError(f"unknown transform {unknown[0]!r}; known: {', '.join(TRANSFORMS)}")
    transforms = tuple(TRANSFORMS[step] for step in chain)
    if word in ("fields", "params"):
        left_out = tuple(part.encode() for part in rest.split(",") if part.strip())
        return Field(text, word, "", None, pairs, left_out, transforms, optional, filled)
    if word == "key" and rest:
        return Field(text, word, rest, transforms=transforms, optional=optional)
    if word in WORDS and not colon:
        return Field(text, word, transforms=transforms, optional=optional, filled=filled)
    try:
        place = parse_locator(name)
    except LocatorError:
        known = ", ".join(WORDS)
        raise ValueError(f"unknown field {{{text}}}; known: {known}, places, key:PART") from None
    return Field(text, "place", "", place, transforms=transforms, optional=optional, filled=filled)


def _after_id(pieces: list[bytes | Field]) -> bytes | None:
    """Return the literal after `{id}`, None when there is no id or nothing follows it.

    A timestamp may follow at once: its own strict form says where it begins (Twitch).
    """
    for at, piece in enumerate(pieces[:-1]):
        if isinstance(piece, Field) and piece.word == "id":
            following = pieces[at + 1]
            if isinstance(following, bytes):
                return following
            if following.word != "timestamp":
                raise ValueError("{id} touches another field: where it ends would be open")
    return None
