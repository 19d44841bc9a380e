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
    """One signed request and the verdict that it must get. `key` is the key as the file has it."""

    slug: str
    name: str
    request: RawRequest
    key: Mapping[str, Any]
    now: int
    accept: bool

    def preset(self) -> Preset:
        """Return the preset that the file is about."""
        return load_preset(self.slug)

    @property
    def secret(self) -> str:
        """The key as an operator would write it; ValueError when it does not fit the preset."""
        preset = self.preset()
        return "" if preset.unsigned else secret_text(preset, self.key)

    def keys(self) -> KeyRing:
        """Return the ring with the vector's key; published examples may be short."""
        preset = self.preset()
        entries = [] if preset.unsigned else [("vector", self.secret, None, None)]
        return build_key_ring(preset, entries, allow_short=True, accept_unverified=True)

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


# The fields of `key` that may hold the key itself, the first one that is there.
_MATERIAL = (
    *("secret", "secret_hex", "secret_base64", "public_key_pem", "public_key_hex"),
    *("certificate_pem", "private_key", "application_secret", "encoding_aes_key", "token"),
    *("jwks", "jwk", "public_key", "password"),
)
# What vector files call the parts of a secret that presets name otherwise.
_PARTS = {
    "key_name": ("kid", "keyid", "key_id", "public_key_id"),
    "receiver_id": ("corp_id", "app_key", "suite_key"),
    "user": ("username",),
}


def secret_text(preset: Preset, key: Mapping[str, Any]) -> str:
    """Return the secret of a vector as an operator would write it for the preset."""
    found = [key[name] for name in _MATERIAL if key.get(name)]
    if not found:
        raise ValueError(f"key type {key.get('type')!r} holds no key that is known")
    if key["type"] == "basic_auth":
        return f"{key['username']}:{key['password']}"
    material = found[0] if isinstance(found[0], str) else json.dumps(found[0])
    prefix = _prefix(preset, key)
    form = next((f for f in preset.secrets if f.prefix == prefix), preset.secrets[0])
    texts = [_part(key, name) for name in form.parts[:-1]]
    return prefix + form.separator.join([*texts, material])


def _prefix(preset: Preset, key: Mapping[str, Any]) -> str:
    """Return the prefix that says which algorithm a secret is for, where a preset has such."""
    wanted = (f"{key.get('algorithm')}:", f"{key['type'].partition('_')[0]}:")
    return next((f.prefix for f in preset.secrets if f.prefix in wanted), "")


def _part(key: Mapping[str, Any], name: str) -> str:
    for candidate in (name, *_PARTS.get(name, ())):
        if key.get(candidate):
            return str(key[candidate])
    raise ValueError(f"the key has no {name!r}")


def _vector(slug: str, item: Mapping[str, Any]) -> Vector:
    key = item["key"]
    if not isinstance(key["type"], str):
        raise TypeError(f"{item['name']}: the type of the key is no text")
    if item["expect"] not in ("accept", "reject"):
        raise ValueError(f"{item['name']}: expect is {item['expect']!r}")
    return Vector(
        slug,
        item["name"],
        RawRequest(
            item["method"],
            # Where the key says under which URL the provider knows us, that is the configured one.
            key.get("notification_url") or _audience(key) or item["url"],
            tuple((n.lower().encode("latin-1"), _octets(v)) for n, v in item["headers"]),
            base64.b64decode(item["body_base64"], validate=True),
        ),
        key,
        int(item["now"]),
        item["expect"] == "accept",
    )


def _audience(key: Mapping[str, Any]) -> str | None:
    return key.get("audience") if key["type"] == "jwt_hs256" else None


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
        except (PresetError, SecretError, ValueError) as error:
            failure = str(error)
        if failure is not None:
            yield vector, failure
