"""What exactly is signed: a template over a closed set of fields.

No expressions: literal text and `{id}`, `{timestamp}`, `{body}`. The values are the texts of the
request, byte for byte; nothing is normalised.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

# Plain words, not an enum: they are looked up several times for each request.
Field = Literal["id", "timestamp", "body"]
FIELDS: tuple[Field, ...] = get_args(Field)


@dataclass(frozen=True, slots=True)
class Template:
    """Signed content: `pattern` is a bytes format with one %b for each of `fields`, in order.

    `id_ends_at` is the literal that follows `{id}`. An id that contains it could be cut in two
    ways ("m" + "1.x" or "m.1" + "x"), so such an id is refused.
    """

    text: str
    pattern: bytes
    fields: tuple[Field, ...]
    id_ends_at: bytes | None

    def render(self, values: dict[Field, bytes]) -> bytes:
        """Return the signed bytes."""
        if self.pattern == b"%b":
            return values[self.fields[0]]  # no copy of a large body
        return self.pattern % tuple([values[field] for field in self.fields])


_PIECE = re.compile(r"\{([^{}]*)\}|([^{}]+)")


def compile_template(text: str) -> Template:
    """Return the template; ValueError with the reason for anything outside the grammar."""
    pattern, fields, at = b"", [], 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError("a brace stands alone")
        name, literal = piece.groups()
        if literal is None:
            fields.append(_field(name))
            pattern += b"%b"
        else:
            pattern += literal.encode().replace(b"%", b"%%")
        at = piece.end()
    if not fields:
        raise ValueError("no field is named")
    if len(set(fields)) != len(fields):
        raise ValueError("a field stands twice")
    return Template(text, pattern, tuple(fields), _after_id(text))


def _field(name: str) -> Field:
    for field in FIELDS:
        if field == name:
            return field
    raise ValueError(f"unknown field {{{name}}}; known: {', '.join(FIELDS)}")


def _after_id(text: str) -> bytes | None:
    """Return the literal after `{id}`, None when there is no id or nothing follows it."""
    _, found, rest = text.partition("{id}")
    if not found or not rest:
        return None
    literal = rest.partition("{")[0]
    if not literal:
        raise ValueError("{id} touches another field: where it ends would be open")
    return literal.encode()
