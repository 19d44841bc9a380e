"""Where a value stands in a request: `header:x-foo`, `body:/data/id`, `signature:t`.

One grammar for everything that points into a request: the presets' signature, timestamp, id and
type, and the correlation of events with operations. A header counts only when it stands exactly
once; a body value only when the body can be read in one way (`verifiers.document`).
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from verifiers.document import Document
from verifiers.request import RawRequest


class Place(StrEnum):
    """The parts of a request that a locator may name."""

    HEADER = "header"
    BODY = "body"
    SIGNATURE = "signature"  # a field inside the signature header; presets only


class LocatorError(ValueError):
    """The text is not a locator; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Locator:
    """A parsed locator. `name` is the header or field name in lower case; `pointer` the tokens."""

    text: str
    place: Place
    name: bytes = b""
    pointer: tuple[str, ...] = ()

    def read(self, request: RawRequest, document: Document) -> str | None:
        """Return the text that stands there, or None when it is absent, repeated or not text.

        `document` is the body of `request`; one document may serve many locators.
        """
        if self.place is Place.BODY:
            return document.at(self.pointer)
        values = request.values(self.name)
        if len(values) != 1 or not values[0].isascii():
            return None
        return values[0].decode("ascii")


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")  # RFC 9110, section 5.6.2, lower case only


def parse_locator(text: str) -> Locator:
    """Return the locator that `text` writes; LocatorError says what is wrong with it."""
    word, colon, rest = text.partition(":")
    if not colon or word not in set(Place):
        raise LocatorError(f"{text!r} does not start with header: or body:")
    place = Place(word)
    if place is Place.BODY:
        return Locator(text, place, pointer=_pointer(rest))
    if not _TOKEN.fullmatch(rest):
        raise LocatorError(f"{rest!r} is no {place} name in lower case")
    return Locator(text, place, name=rest.encode())


def _pointer(text: str) -> tuple[str, ...]:
    """Return the reference tokens of a JSON Pointer (RFC 6901)."""
    if not text.startswith("/"):
        raise LocatorError(f"{text!r} is no JSON Pointer: it starts with /")
    if re.search(r"~(?![01])", text):
        raise LocatorError(f"{text!r} is no JSON Pointer: write ~ as ~0 and / in a name as ~1")
    return tuple(t.replace("~1", "/").replace("~0", "~") for t in text[1:].split("/"))
