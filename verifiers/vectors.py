"""Vector files: signed requests with the verdict that they must get.

The format is one JSON object a file: `slug` names the preset, `vectors` lists requests (method,
url, header pairs with repeats, base64 body), the key, the clock (`now`, unix seconds) and
`expect` (accept or reject). Reading is strict: a file that cannot be understood is an error, so
that a vector is never silently skipped.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from verifiers.keys import KeyRing, SecretError, build_key_ring
from verifiers.preset import Preset, PresetError, load_preset
from verifiers.request import RawRequest
from verifiers.verdict import Verified
from verifiers.verify import verify


class VectorError(Exception):
    """A vector file cannot be understood."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One signed request and the verdict that it must get."""

    slug: str
    name: str
    request: RawRequest
    secret: str
    now: int
    accept: bool

    def preset(self) -> Preset:
        """Return the preset that the file is about."""
        return load_preset(self.slug)

    def keys(self) -> KeyRing:
        """Return the ring with the vector's key; published examples may be short."""
        entry = ("vector", self.secret, None, None)
        return build_key_ring(self.preset(), [entry], allow_short=True)

    def failure(self) -> str | None:
        """Return what is wrong with our verdict, or None when it is the expected one."""
        verdict = verify(self.request, self.preset(), self.keys(), self.now)
        accepted = isinstance(verdict, Verified)
        if accepted == self.accept:
            return None
        if isinstance(verdict, Verified):
            return "accepted, must be refused"
        return f"refused ({verdict.reason}), must be accepted"


def parse_vectors(text: str, where: str) -> list[Vector]:
    """Return the vectors of a file; VectorError names `where` and the vector at fault."""
    try:
        document = json.loads(text)
        slug = document["slug"]
        return [_vector(slug, item) for item in document["vectors"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise VectorError(f"{where}: not a vector file: {type(error).__name__}: {error}") from None


# The fields of `key` that hold the material, by its type.
_MATERIAL = {"hmac_secret": "secret", "ed25519_public_key": "public_key"}


def _vector(slug: str, item: Mapping[str, Any]) -> Vector:
    key = item["key"]
    if key["type"] not in _MATERIAL:
        raise ValueError(f"{item['name']}: key type {key['type']!r} is unknown")
    if item["expect"] not in ("accept", "reject"):
        raise ValueError(f"{item['name']}: expect is {item['expect']!r}")
    return Vector(
        slug,
        item["name"],
        RawRequest(
            item["method"],
            item["url"],
            tuple((n.lower().encode("latin-1"), _octets(v)) for n, v in item["headers"]),
            base64.b64decode(item["body_base64"], validate=True),
        ),
        key[_MATERIAL[key["type"]]],
        int(item["now"]),
        item["expect"] == "accept",
    )


def _octets(value: str) -> bytes:
    """Return the bytes of a header value: latin-1 as HTTP reads them, UTF-8 beyond that."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode()


def failures(vectors: list[Vector]) -> Iterator[tuple[Vector, str]]:
    """Yield each vector that does not get its verdict, and why."""
    for vector in vectors:
        try:
            failure = vector.failure()
        except (PresetError, SecretError) as error:
            failure = str(error)
        if failure is not None:
            yield vector, failure
