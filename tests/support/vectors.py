"""The vector files of the project, and requests and keys for every preset."""

import base64
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from verifiers.keys import KeyRing, build_key_ring
from verifiers.locate import Place
from verifiers.preset import Preset, SecretForm, load_preset, preset_names
from verifiers.request import RawRequest
from verifiers.sign import sign_request
from verifiers.vectors import Vector, parse_vectors
from verifiers.verdict import Rejected, Verified
from verifiers.verify import verify

FOLDER = Path(__file__).parents[1] / "vectors"
NOW = 1_780_000_000
URL = "https://hooks.example.test/in/x"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
PRIVATE_KEY = "whsk_" + base64.b64encode(bytes(range(32))).decode()
BODY = b'{"id":"evt_1","event_id":"evt_1","type":"job.done","event":{"type":"job.done"}}'


def files() -> list[Path]:
    """Return the vector files."""
    return sorted(FOLDER.glob("*.json"))


def vectors() -> Iterator[Vector]:
    """Yield every vector of every file."""
    for file in files():
        yield from parse_vectors(file.read_text("utf-8"), file.name)


@cache
def private_key(algorithm: str, which: int = 0) -> str:
    """Return a private key, as PEM, that an algorithm takes; another one for another `which`."""
    kind = algorithm.split("-")
    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
    if kind[0] == "ed25519":
        key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes([which + 1]) * 32)
    elif kind[0] == "ecdsa":
        key = ec.derive_private_key(
            which + 2, {"p256": ec.SECP256R1(), "p384": ec.SECP384R1()}[kind[1]]
        )
    else:
        key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def sample_of(form: SecretForm, which: int = 0) -> str:
    """Return a secret of a form, as a provider would show it; another one for another `which`."""
    text = (SECRET, "whsec_" + "QUFB" * 8)[which]
    raw = base64.b64decode(text[6:])
    if form.algorithm.is_public:
        material = private_key(form.algorithm.name, which)
    elif form.parts[-1:] == ("aes_key",):
        material = base64.b64encode(raw + raw[:8]).decode().rstrip("=")
    elif form.form == "fingerprint":
        material = f"{which}1" * 32
    else:
        material = {"base64": text[6:], "hex": raw.hex()}.get(form.form, text)
    prefix = form.prefix if not material.startswith(form.prefix) else ""
    return prefix + form.separator.join([*(f"the-{name}" for name in form.parts[:-1]), material])


def sample(name: str, which: int = 0) -> str:
    """Return a secret for a preset."""
    return sample_of(load_preset(name).secrets[0], which)


def is_plain(preset: Preset) -> bool:
    """Whether a preset signs the raw body, whatever it is, and puts all it adds into headers."""
    rule = preset.timestamp
    headers = (Place.HEADER, Place.SIGNATURE)
    return (
        preset.scheme in ("signature", "jwt")
        and preset.body_signed
        and not preset.decoded
        and all(place.place is Place.HEADER for place in preset.signature)
        and (rule is None or rule.places[0].place in headers)
        and not any(
            "|canonical" in f.text or "|json" in f.text or "fields" in f.text
            for f in preset.signed.fields
        )
        and not any(word in preset.signed.text for word in ("plivo", "contentful"))
        and all(match.place.place is Place.HEADER for match in preset.matches)
    )


SIGNED = [name for name in preset_names() if not load_preset(name).unsigned]
PLAIN = [name for name in SIGNED if is_plain(load_preset(name))]

# (preset, secret): presets of which any body can be signed, with every kind of key they know.
KINDS = [(name, sample(name)) for name in PLAIN] + [("standard-webhooks", PRIVATE_KEY)]


def ring(preset: Preset, *secrets: str) -> KeyRing:
    """Return a ring of keys k1, k2 … that are always live."""
    given = secrets or (sample_of(preset.secrets[0]),)
    entries = [(f"k{i}", text, None, None) for i, text in enumerate(given, 1)]
    return build_key_ring(preset, entries)


def signed(
    name: str,
    body: bytes = BODY,
    *,
    secret: str | None = None,
    at: int = NOW,
    event_id: str = "msg_1",
) -> RawRequest:
    """Return a request that is right for the preset `name`."""
    preset = load_preset(name)
    keys = ring(preset, secret or sample(name))
    bare = RawRequest("POST", URL, (), body)
    return sign_request(bare, preset, keys, at, event_id=event_id, event_type="job.done")


def request(headers: list[tuple[bytes, bytes]], body: bytes = BODY) -> RawRequest:
    """Return a request with these headers."""
    return RawRequest("POST", URL, tuple(headers), body)


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
