"""What verification costs, kind by kind, beside the bare primitive and the libraries people use.

A request of 1 KB is verified again and again in this process; beside it, in turns, run the bare
primitive over as many bytes (HMAC and a constant-time comparison, Ed25519 or ECDSA verification)
and, where there is one, the provider's library. `key` is the event key, worked out when it is asked
for. Figures are medians of blocks, µs of CPU a request; only ratios within one run mean something.

    python bench/verification.py [--blocks 15] [--requests 1500]
"""

import argparse
import base64
import datetime as dt
import hashlib
import hmac
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import standardwebhooks
import stripe
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from verifiers.keys import KeyRing, build_key_ring
from verifiers.preset import Preset, load_preset
from verifiers.request import RawRequest
from verifiers.sign import sign
from verifiers.vectors import Vector, parse_vectors
from verifiers.verdict import Verified
from verifiers.verify import verify

VECTORS = Path(__file__).parents[1] / "tests" / "vectors"
NOW = 1_780_000_000
#: 1 KB as providers write it: some nesting, short members (json.loads takes about 10 µs for it).
BODY = json.dumps(
    {
        "id": "evt_1",
        "event_id": "evt_1",
        "type": "job.done",
        "created": NOW,
        "data": [
            {"id": f"li_{n:08}", "amount": 1999 + n, "currency": "eur", "paid": n % 2 == 0}
            for n in range(13)
        ],
    }
).encode()
HMAC_KINDS = ("github", "stripe", "standard-webhooks", "slack", "shopify", "timestamp-body")
ASYMMETRIC_KINDS = ("standard-webhooks-v1a", "discord", "sendgrid")
SECRET = "whsec_" + base64.b64encode(b"bench-secret-of-verification-012").decode()

Run = Callable[[], object]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=15)
    parser.add_argument("--requests", type=int, default=1500)
    options = parser.parse_args()
    print(f"{len(BODY)} bytes of body; µs of CPU a request")
    columns = ("ours", "bare", "above", "ratio", "key")
    print(f"{'kind':24}" + "".join(f"{column:>8}" for column in columns) + "  library")
    for name, runs in _arms():
        cost = _measure(runs, options.blocks, options.requests)
        ours, bare, library = cost["ours"], cost["bare"], cost.get("library")
        key = cost["key"] - ours
        beside = "" if library is None else f"{library:6.1f} ({library / ours:.1f} x ours)"
        figures = f"{ours:8.1f}{bare:8.1f}{ours - bare:8.1f}{ours / bare:8.2f}{key:8.1f}"
        print(f"{name:24}{figures}  {beside}")


def _measure(runs: dict[str, Run], blocks: int, requests: int) -> dict[str, float]:
    """Return the median µs a run of each arm, the arms taking turns."""
    times: dict[str, list[float]] = {arm: [] for arm in runs}
    for _ in range(blocks):
        for arm, run in runs.items():
            start = time.process_time_ns()
            for _ in range(requests):
                run()
            times[arm].append((time.process_time_ns() - start) / requests / 1000)
    return {arm: statistics.median(found) for arm, found in times.items()}


def _arms() -> Iterator[tuple[str, dict[str, Run]]]:
    for name in HMAC_KINDS:
        preset = load_preset(name)
        keys = build_key_ring(preset, [("bench", SECRET, None, None)])
        request = _signed(preset, keys)
        runs = _ours_and_key(request, preset, keys, NOW) | {"bare": _bare_hmac(request.body)}
        library = _library(name, request)
        yield name, runs if library is None else {**runs, "library": library}
    for name in ASYMMETRIC_KINDS:
        vector = _vector(name)
        runs = _ours_and_key(vector.request, vector.preset(), vector.keys(), vector.now)
        yield name, runs | {"bare": _bare_asymmetric(name, vector.request.body)}


def _signed(preset: Preset, keys: KeyRing) -> RawRequest:
    headers = [
        (b"content-type", b"application/json"),
        (b"user-agent", b"bench"),
        *sign(BODY, preset, keys, NOW, event_id="evt_1", event_type="job.done"),
    ]
    return RawRequest("POST", "https://hooks.example.com/in/bench", tuple(headers), BODY)


def _ours_and_key(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> dict[str, Run]:
    runs = (_ours(request, preset, keys, now), _with_key(request, preset, keys, now))
    return dict(zip(("ours", "key"), runs, strict=True))


def _ours(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> Run:
    assert isinstance(verify(request, preset, keys, now), Verified)
    return lambda: verify(request, preset, keys, now)


def _with_key(request: RawRequest, preset: Preset, keys: KeyRing, now: int) -> Run:
    return lambda: verify(request, preset, keys, now).event_key  # type: ignore[union-attr]


def _bare_hmac(body: bytes) -> Run:
    context = hmac.new(SECRET.encode(), digestmod=hashlib.sha256)
    content = b"evt_1.1780000000." + body
    expected = hmac.digest(SECRET.encode(), content, "sha256")

    def run() -> object:
        mac = context.copy()
        mac.update(content)
        return hmac.compare_digest(mac.digest(), expected)

    return run


def _bare_asymmetric(name: str, body: bytes) -> Run:
    content = b"evt_1.1780000000." + body
    if name == "sendgrid":
        private = ec.generate_private_key(ec.SECP256R1())
        made, public = private.sign(content, ec.ECDSA(hashes.SHA256())), private.public_key()
        return lambda: public.verify(made, content, ec.ECDSA(hashes.SHA256()))
    signer = Ed25519PrivateKey.generate()
    signature, verifier = signer.sign(content), signer.public_key()
    return lambda: verifier.verify(signature, content)


def _library(name: str, request: RawRequest) -> Run | None:
    headers = {key.decode(): value.decode() for key, value in request.headers}
    text = request.body.decode()
    if name == "standard-webhooks":
        webhook = standardwebhooks.Webhook(SECRET)
        webhook._Webhook__verify_timestamp = lambda _text: _stamp()  # noqa: SLF001  # NOW is past
        return lambda: webhook.verify(request.body, headers)
    if name == "stripe":
        value = headers["stripe-signature"]
        check = stripe.WebhookSignature.verify_header
        return lambda: check(text, value, SECRET, None)
    return None


def _stamp() -> object:
    return dt.datetime.fromtimestamp(NOW, dt.UTC)


def _vector(name: str) -> Vector:
    """Return the accepted vector whose body is nearest to 1 KB."""
    file = VECTORS / f"{name}.json"
    vectors = [each for each in parse_vectors(file.read_text(), file.name) if each.accept]
    return min(vectors, key=lambda each: abs(len(each.request.body) - 1024))


if __name__ == "__main__":
    main()
