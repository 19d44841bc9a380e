"""Documents of published keys: which address a request needs, and what may stand there.

Everything here is pure. Fetching is the reconciler's; it asks only for addresses that `address`
or `trusted_address` allows, and keeps only content in which `key_ids` finds keys.
"""

import json
from typing import Any

from verifiers.claim import trusted
from verifiers.keys import KeyRing, PublishedDocument, with_published
from verifiers.preset import Preset, Published
from verifiers.reading import Reading
from verifiers.request import RawRequest

#: More keys than this in one document are no provider's.
KEYS_MAX = 64
_URL_BYTES_MAX = 2048
_BEGINNINGS = {"certificate": "-----BEGIN CERTIFICATE-----", "pem": "-----BEGIN PUBLIC KEY-----"}
_NO_RING = KeyRing((), {}, timeless=True)


def address(request: RawRequest, preset: Preset) -> str | None:
    """Return where the keys of a request are published; None unless the provider is sure to be.

    That is the preset's own address or, where a request names it, one that the preset's pattern
    holds for the provider's as a whole: host, scheme, port and path (F18).
    """
    published = preset.published
    if published is None:
        return None
    if published.url_from is None:
        return published.url
    reading = Reading(request, request.body)
    text = (reading.at(published.url_from) or b"").decode("utf-8", "replace")
    sure = trusted(reading, published) and trusted_address(published, text)
    return text if sure else None


def trusted_address(published: Published, url: str) -> bool:
    """Whether an address is one that the preset allows."""
    plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= _URL_BYTES_MAX
    if published.url_from is None:
        return plain and url == published.url
    return plain and published.url_pattern.fullmatch(url) is not None


def read_document(published: Published, url: str, content: bytes) -> PublishedDocument | None:
    """Return what was fetched as a document; None for anything that is not in the format.

    A request that names an address speaks of the key there by that address.
    """
    try:
        text = content.decode("utf-8").strip()
        if published.format in _BEGINNINGS:
            fits = text.startswith(_BEGINNINGS[published.format])
        else:
            fits = _is_set(published.format, json.loads(text))
    except (ValueError, RecursionError):
        return None
    return PublishedDocument(url if published.url_from else None, text) if fits else None


def key_ids(preset: Preset, url: str, content: bytes) -> tuple[str, ...]:
    """Return the ids of the keys of a fetched document that this preset can use; none: garbage."""
    assert preset.published is not None
    document = read_document(preset.published, url, content)
    if document is None:
        return ()
    ring = with_published(_NO_RING, preset, [document])
    return tuple(dict.fromkeys(key.id for key in ring.keys))


def _is_set(form: str, document: Any) -> bool:
    """Whether JSON is a set of keys (RFC 7517, section 5), or keys by their names."""
    if not isinstance(document, dict):
        return False
    keys = document.get("keys") if form == "jwks" else document
    if form != "jwks":
        return len(document) <= KEYS_MAX and all(_is_name(name) for name in document)
    if not isinstance(keys, list) or len(keys) > KEYS_MAX:
        return False
    return all(isinstance(key, dict) and _is_name(key.get("kid", "-")) for key in keys)


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable()
