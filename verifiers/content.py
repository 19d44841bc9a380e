"""What exactly is signed: a template over a closed set of fields.

No expressions: literal text and `{id}`, `{timestamp}`, `{body}`. The values are the texts of the
request, byte for byte; nothing is normalised.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Field(StrEnum):
    """The fields that a template may name."""

    ID = "id"
    TIMESTAMP = "timestamp"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Template:
    """Signed content as alternating literals (bytes) and fields.

    `id_ends_at` is the literal that follows `{id}`. An id that contains it could be cut in two
    ways ("m" + "1.x" or "m.1" + "x"), so such an id is refused.
    """

    text: str
    parts: tuple[bytes | Field, ...]
    fields: frozenset[Field]
    id_ends_at: bytes | None

    def render(self, values: dict[Field, bytes]) -> bytes:
        """Return the signed bytes."""
        if self.parts == (Field.BODY,):
            return values[Field.BODY]  # no copy of a large body
        return b"".join([values[p] if isinstance(p, Field) else p for p in self.parts])


_PIECE = re.compile(r"\{([^{}]*)\}|([^{}]+)")


def compile_template(text: str) -> Template:
    """Return the template; ValueError with the reason for anything outside the grammar."""
    parts: list[bytes | Field] = []
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError("a brace stands alone")
        name, literal = piece.groups()
        parts.append(_field(name) if literal is None else literal.encode())
        at = piece.end()
    fields = [part for part in parts if isinstance(part, Field)]
    if len(set(fields)) != len(fields):
        raise ValueError("a field stands twice")
    if not fields:
        raise ValueError("no field is named")
    return Template(text, tuple(parts), frozenset(fields), _after_id(parts))


def _field(name: str) -> Field:
    try:
        return Field(name)
    except ValueError:
        raise ValueError(f"unknown field {{{name}}}") from None


def _after_id(parts: list[bytes | Field]) -> bytes | None:
    if Field.ID not in parts:
        return None
    following = parts[parts.index(Field.ID) + 1 :][:1]
    if following and isinstance(following[0], Field):
        raise ValueError("{id} touches another field: where it ends would be open")
    return following[0] if following else None  # type: ignore[return-value]  # a literal by now
