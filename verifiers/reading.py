"""The parts of one request, each read at most once and only when somebody asks.

Nothing raises: what is absent, repeated or unreadable is None. `body` is what was signed: the
wire bytes, or what they inflate to where a preset says `signed_over = "decoded"`.
"""

import zlib
from typing import Any

from verifiers.canonical import (
    PAIRS,
    Pairs,
    contentful_path,
    header_lines,
    plivo_v3,
    query_string_hash,
)
from verifiers.content import Field
from verifiers.document import Document, value_at
from verifiers.locate import Locator, Place, form_fields, is_form, query_fields
from verifiers.request import RawRequest

# What a body may inflate to; the intake bounds what comes over the wire.
INFLATED_MAX = 8 * 1024 * 1024

_UNREAD = object()


class Reading:
    """A request and what has been read of it.

    `item` is the element of a batch that is looked at, `claims` the payload of the token.
    """

    __slots__ = ("_document", "_form", "_query", "body", "claims", "item", "request")

    def __init__(self, request: RawRequest, body: bytes) -> None:
        self.request = request
        self.body = body
        self.claims: Document | None = None
        self.item: Any = None
        self._document: Document | None = None
        self._form: Any = _UNREAD
        self._query: Any = _UNREAD

    @property
    def document(self) -> Document:
        """The body as JSON."""
        if self._document is None:
            self._document = Document(self.body)
        return self._document

    @property
    def form(self) -> Pairs | None:
        """The decoded fields of an urlencoded body; empty where it is something else."""
        if self._form is _UNREAD:
            self._form = form_fields(self.request, self.body)
        found: Pairs | None = self._form
        return found

    @property
    def query(self) -> Pairs | None:
        """The decoded fields of the query."""
        if self._query is _UNREAD:
            self._query = query_fields(self.request)
        found: Pairs | None = self._query
        return found

    def at(self, place: Locator) -> bytes | None:
        """Return the bytes at a place; None when absent, repeated or unreadable."""
        if place.place is Place.HEADER:
            return _single(self.request.values(place.name))
        if place.place is Place.BODY:
            return _text(self.document.certain(place.pointer))
        if place.place is Place.CLAIM:
            return _text(self.claims.value(place.pointer)) if self.claims else None
        if place.place is Place.ITEM:
            return _text(value_at(self.item, place.pointer))
        if place.place is Place.SIGNATURE:
            return None
        if place.place is Place.RAW:
            return self.body
        value = self._field(place)
        if value is None or not place.pointed:
            return value
        return _text(Document(value).value(place.pointer))

    def _field(self, place: Locator) -> bytes | None:
        query = self.query if place.place is not Place.FORM else []
        form = self.form if place.place is not Place.QUERY else []
        if query is None or form is None:
            return None
        return _single([value for name, value in query + form if name == place.name])

    def value(self, field: Field) -> bytes | None:
        """Return the value of a field of the content that the request itself holds."""
        value = self.at(field.place) if field.place is not None else self._word(field)
        if field.filled and not value:
            return None
        for transform in field.transforms:
            if value is None:
                break
            value = transform(value)
        # An unreadable form is not an absent one: nothing could be said of it.
        absent = value is None and field.optional and self.form is not None
        return b"" if absent else value

    def _word(self, field: Field) -> bytes | None:
        request, word = self.request, field.word
        if word == "body":
            return self.body
        if word == "method":
            return request.method.encode("utf-8", "surrogatepass")
        if word == "url":
            return request.url.encode("utf-8", "surrogatepass")
        if word == "path":
            return request.path
        if word == "query":
            return request.query
        if word == "contentful-path":
            return contentful_path(request.path, request.query)
        if word == "contentful-headers":
            return self._listed_headers(b"x-contentful-signed-headers", b"x-contentful-timestamp")
        return self._of_fields(field)

    def _of_fields(self, field: Field) -> bytes | None:
        query, form = self.query, self.form
        if query is None or form is None:
            return None
        if field.word == "qsh":
            return query_string_hash(self.request.method, self.request.path, query)
        if self.body and not is_form(self.request):
            return None  # a body that is no form has no fields that could cover it
        if field.word == "plivo-v3":
            url = self.request.url.encode("utf-8", "surrogatepass")
            return plivo_v3(url, query, form)
        pairs = form if field.word == "fields" else query + form
        return PAIRS[field.pairs]([pair for pair in pairs if pair[0] not in field.leaving_out])

    def _listed_headers(self, name: bytes, *always: bytes) -> bytes | None:
        """Return the lines of the headers that `name` lists: itself and `always` among them."""
        listed = _single(self.request.values(name)) or b""
        if not {name, *always} <= {part.strip().lower() for part in listed.split(b",")}:
            return None
        names = [header for header, _ in self.request.headers]
        once = {n: v for n, v in self.request.headers if names.count(n) == 1}
        return header_lines(listed, once)


def inflated(request: RawRequest) -> bytes | None:
    """Return the body without its gzip or deflate coding; None when it is broken or too large."""
    codings = request.values(b"content-encoding")
    if not codings:
        return request.body
    if len(codings) != 1 or codings[0].lower() not in _WINDOWS:
        return None
    bits = _WINDOWS[codings[0].lower()]
    if bits is None:
        return request.body
    stream = zlib.decompressobj(bits)
    try:
        body = stream.decompress(request.body, INFLATED_MAX)
    except zlib.error:
        return None
    # More to come, a truncated stream, or bytes behind it: then there are two ways to read it.
    whole = stream.eof and not stream.unconsumed_tail and not stream.unused_data
    return body if whole else None


_WINDOWS = {b"identity": None, b"gzip": 31, b"deflate": 15}


def _single(values: list[bytes]) -> bytes | None:
    return values[0] if len(values) == 1 else None


def _text(value: Any) -> bytes | None:
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else None
