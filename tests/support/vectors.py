"""The vector files of the project, and requests and keys for every preset."""

import base64
from collections.abc import Iterator
from pathlib import Path

from verifiers.keys import KeyRing, build_key_ring
from verifiers.preset import Preset, load_preset, preset_names
from verifiers.request import RawRequest
from verifiers.sign import sign
from verifiers.vectors import Vector, parse_vectors
from verifiers.verdict import Rejected, Verified
from verifiers.verify import verify

FOLDER = Path(__file__).parents[1] / "vectors"
NOW = 1_780_000_000
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
PRIVATE_KEY = "whsk_" + base64.b64encode(bytes(range(32))).decode()
BODY = b'{"id":"evt_1","event_id":"evt_1","type":"job.done","event":{"type":"job.done"}}'

# (preset, secret): every preset with every kind of key that it knows.
KINDS = [(name, SECRET) for name in preset_names()] + [("standard-webhooks", PRIVATE_KEY)]


def files() -> list[Path]:
    """Return the vector files."""
    return sorted(FOLDER.glob("*.json"))


def vectors() -> Iterator[Vector]:
    """Yield every vector of every file."""
    for file in files():
        yield from parse_vectors(file.read_text("utf-8"), file.name)


def ring(preset: Preset, *secrets: str) -> KeyRing:
    """Return a ring of keys k1, k2 … that are always live."""
    entries = [(f"k{i}", text, None, None) for i, text in enumerate(secrets or (SECRET,), 1)]
    return build_key_ring(preset, entries)


def signed(
    name: str, body: bytes = BODY, *, secret: str = SECRET, at: int = NOW, event_id: str = "msg_1"
) -> RawRequest:
    """Return a request that is right for the preset `name`."""
    preset = load_preset(name)
    headers = sign(body, preset, ring(preset, secret), at, event_id=event_id, event_type="job.done")
    return request(headers, body)


def request(headers: list[tuple[bytes, bytes]], body: bytes = BODY) -> RawRequest:
    """Return a request with these headers."""
    return RawRequest("POST", "https://hooks.example.test/in/x", tuple(headers), body)


def with_header(original: RawRequest, name: bytes, *values: bytes) -> RawRequest:
    """Return `original` with these values, none at all included, for the header `name`."""
    headers = [pair for pair in original.headers if pair[0] != name]
    return request(headers + [(name, value) for value in values], original.body)


# (preset, signature header, timestamp header or None, id header that is signed or None)
HEADERS = {
    "github": (b"x-hub-signature-256", None, None),
    "shopify": (b"x-shopify-hmac-sha256", None, None),
    "slack": (b"x-slack-signature", b"x-slack-request-timestamp", None),
    "standard-webhooks": (b"webhook-signature", b"webhook-timestamp", b"webhook-id"),
    "stripe": (b"stripe-signature", None, None),
    "svix": (b"svix-signature", b"svix-timestamp", b"svix-id"),
    "timestamp-body": (b"x-webhook-signature", b"x-webhook-timestamp", None),
}
STAMPED = [(name, where[1]) for name, where in HEADERS.items() if where[1]]


def verdict(name: str, given: RawRequest, *secrets: str, now: int = NOW) -> Verified | Rejected:
    """Return the verdict of a source with this preset and these secrets."""
    preset = load_preset(name)
    return verify(given, preset, ring(preset, *secrets), now)


def signature_of(given: RawRequest, name: str) -> bytes:
    """Return the value of the signature header."""
    return given.values(HEADERS[name][0])[0]
