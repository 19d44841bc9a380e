"""Whether a preset makes sense as a whole, and what its signature covers."""

from typing import Any

from verifiers.content import WHOLE_BODY, WHOLE_URL, Template
from verifiers.locate import Locator, Place
from verifiers.preset import SecretForm
from verifiers.table import Table
from verifiers.timestamp import TimestampRule


def check_sense(  # noqa: PLR0917  # what contradicts what
    top: Table,
    scheme: str,
    templates: tuple[Template, ...],
    secrets: tuple[SecretForm, ...],
    event_id: tuple[Locator, ...],
    timestamp: TimestampRule | None,
) -> None:
    """Refuse what contradicts itself or could not be found."""
    words = frozenset().union(*(template.words for template in templates))
    if "timestamp" in words and timestamp is None:
        raise top.error("signed", "{timestamp} needs a table [timestamp]")
    header_id = bool(event_id) and event_id[0].place is Place.HEADER
    if "id" in words and not header_id:
        raise top.error("signed", "{id} needs event.id in a header")
    if not secrets and scheme != "none":
        raise top.error("secret", "is required")
    if secrets and scheme == "none":
        raise top.error("secret", "a provider that signs nothing has none")
    tokens = {form.algorithm.family == "token" for form in secrets}
    if scheme == "signature" and tokens == {False} and not words:
        raise top.error("signed", "names no field, so anything would be signed")
    hashes = any(form.algorithm.family == "hash" for form in secrets)
    if scheme == "signature" and hashes and "secret" not in words:
        raise top.error("signed", "a plain hash needs {secret} in what is hashed")


def what_is_signed(
    scheme: str,
    templates: tuple[Template, ...],
    timestamp: TimestampRule | None,
    event_id: tuple[Locator, ...],
    options: Any,
    *,
    raw: bool,
) -> tuple[bool, bool, bool]:
    """Return whether every content covers the body, the timestamp and the id.

    `raw` says that the body itself is the token.
    """
    words = frozenset.intersection(*(template.covering for template in templates))
    places = {f.text for t in templates for f in t.fields if f.place is not None}
    if scheme in ("jwt", "x5c"):
        words = options.words
    body = bool(words & WHOLE_BODY) or scheme in ("sns", "x5c") or raw
    at = timestamp.places[0].place if timestamp else None
    stamped = timestamp is not None and (
        "timestamp" in words
        or (at in (Place.BODY, Place.FORM, Place.PARAM) and body)
        or timestamp.places[0].text in places
    )
    if not event_id:
        return body, stamped, False
    place = event_id[0]
    covered = {
        Place.HEADER: "id" in words,
        Place.BODY: body,
        Place.FORM: body,
        Place.QUERY: bool(words & WHOLE_URL),
        Place.PARAM: body,
        Place.CLAIM: True,
    }
    return body, stamped, place.text in places or covered[place.place]
