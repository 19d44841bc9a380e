"""Where a value stands in a request: `header:x-foo`, `body:/data/id`, `query:id`, `form:data#/id`.

One grammar for everything that points into a request: the presets' signature, timestamp, id,
type and signed content, and the correlation of events with operations. A value counts only when
it stands exactly once, and a body value only when the body can be read in one way
(`verifiers.document`).
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote_to_bytes

from verifiers.document import Document
from verifiers.request import RawRequest

Pairs = list[tuple[bytes, bytes]]

# More fields than any provider sends; a parse holds the event loop.
FIELDS_MAX = 1000

_FORM = b"application/x-www-form-urlencoded"


class Place(StrEnum):
    """The parts of a request that a locator may name."""

    HEADER = "header"
    BODY = "body"  # a JSON Pointer into the body
    QUERY = "query"  # a field of the query, decoded
    FORM = "form"  # a field of an urlencoded body, decoded; NAME#/pointer reads JSON within it
    PARAM = "param"  # a field of the query or the form
    SIGNATURE = "signature"  # a field inside the signature value; presets only
    CLAIM = "claim"  # a claim of the signed token; presets only
    ITEM = "item"  # a JSON Pointer into one item of a batch; presets only
    RAW = "raw"  # raw:body, where the body itself is the signed token; presets only


class LocatorError(ValueError):
    """The text is not a locator; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Locator:
    """A parsed locator. `name` is the header (lower case) or field; `pointer` the JSON tokens.

    `pointed` says that a form field holds JSON, of which `pointer` is meant.
    """

    text: str
    place: Place
    name: bytes = b""
    pointer: tuple[str, ...] = ()
    pointed: bool = False

    def read(self, request: RawRequest, document: Document) -> str | None:
        """Return the text that stands there, or None when it is absent, repeated or not text.

        `document` is the body of `request`; one document may serve many locators.
        """
        if self.place is Place.BODY:
            return document.at(self.pointer)
        if self.place is Place.HEADER:
            values = request.values(self.name)
        else:
            values = [value for name, value in self._fields(request) if name == self.name]
        if len(values) != 1:
            return None
        if self.pointed:
            return Document(values[0]).at(self.pointer)
        return values[0].decode("ascii") if values[0].isascii() else None

    def _fields(self, request: RawRequest) -> Pairs:
        query = query_fields(request) if self.place in (Place.QUERY, Place.PARAM) else []
        form = form_fields(request) if self.place in (Place.FORM, Place.PARAM) else []
        return (query or []) + (form or [])


def query_fields(request: RawRequest) -> Pairs | None:
    """Return the decoded pairs of the query; None when there are too many."""
    return _pairs(request.query)


def form_fields(request: RawRequest, body: bytes | None = None) -> Pairs | None:
    """Return the decoded pairs of an urlencoded body; empty for another kind of body."""
    if not is_form(request):
        return []
    return _pairs(request.body if body is None else body)


def is_form(request: RawRequest) -> bool:
    """Whether the request says that its body is an urlencoded form."""
    kinds = request.values(b"content-type")
    return len(kinds) == 1 and kinds[0].partition(b";")[0].strip().lower() == _FORM


def _pairs(text: bytes) -> Pairs | None:
    if text.count(b"&") >= FIELDS_MAX:
        return None
    found = []
    for piece in text.split(b"&"):
        if piece:
            name, _, value = piece.replace(b"+", b" ").partition(b"=")
            found.append((unquote_to_bytes(name), unquote_to_bytes(value)))
    return found


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")  # RFC 9110, section 5.6.2, lower case only
_LABEL = re.compile(r"[!$&'*+.^_`~0-9A-Za-z-]+")
_POINTED = (Place.BODY, Place.CLAIM, Place.ITEM)


def parse_locator(text: str) -> Locator:
    """Return the locator that `text` writes; LocatorError says what is wrong with it."""
    word, colon, rest = text.partition(":")
    if not colon or word not in set(Place):
        raise LocatorError(f"{text!r} does not start with header:, body:, query: or form:")
    place = Place(word)
    if place in _POINTED:
        return Locator(text, place, pointer=_pointer(rest))
    if place is Place.RAW and rest != "body":
        raise LocatorError(f"{text!r}: raw: is followed by body")
    if place is Place.HEADER:
        if not _TOKEN.fullmatch(rest):
            raise LocatorError(f"{rest!r} is no {place} name in lower case")
        return Locator(text, place, name=rest.encode())
    name, pointed, pointer = rest.partition("#")
    if not _LABEL.fullmatch(name) or (pointed and place is Place.SIGNATURE):
        raise LocatorError(f"{rest!r} is no name of a {place} field")
    tokens = _pointer(pointer) if pointed else ()
    return Locator(text, place, name.encode(), tokens, bool(pointed))


def _pointer(text: str) -> tuple[str, ...]:
    """Return the reference tokens of a JSON Pointer (RFC 6901)."""
    if not text.startswith("/"):
        raise LocatorError(f"{text!r} is no JSON Pointer: it starts with /")
    if re.search(r"~(?![01])", text):
        raise LocatorError(f"{text!r} is no JSON Pointer: write ~ as ~0 and / in a name as ~1")
    return tuple(t.replace("~1", "/").replace("~0", "~") for t in text[1:].split("/"))
