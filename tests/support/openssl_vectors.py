"""Makes vector files from documented formulas, with every digest, MAC and signature by openssl.

Nothing of the project's own code takes part, so a vector is a second opinion. It pins a reading of
the documentation and not the provider's behaviour: `documented-formula`, never a proof.

A script says what one provider signs and calls `save`. Key pairs are made once into a folder that
the script names, so another run with the folder kept gives the same file but for ECDSA signatures,
which are random by their nature.
"""

import base64
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

NOW = 1_780_000_000
FOLDER = Path(__file__).parents[1] / "vectors"

Headers = Iterable[tuple[str, str]]
Vector = dict[str, Any]

_OPTIONS = {
    "rsa": ("RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    "p256": ("EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "p384": ("EC", "-pkeyopt", "ec_paramgen_curve:P-384"),
    "ed25519": ("ED25519",),
}


def openssl(*words: str | Path, given: bytes = b"") -> bytes:
    """Return what the openssl command writes, with `given` as its standard input."""
    command = ["openssl", *map(str, words)]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout


# ---------------------------------------------------------------- text forms


def b64(raw: bytes) -> str:
    """Return base64."""
    return base64.b64encode(raw).decode()


def b64url(raw: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def compact(value: Any) -> bytes:
    """Return JSON without spaces, as most providers send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# ---------------------------------------------------------------- shared secrets


def digest(name: str, content: bytes) -> bytes:
    """Return a plain digest (`md5`, `sha1`, `sha256` …)."""
    return openssl("dgst", f"-{name}", "-binary", given=content)


def mac(name: str, key: bytes, content: bytes) -> bytes:
    """Return the HMAC of `content` with the digest `name`."""
    options = ("-mac", "HMAC", "-macopt", f"hexkey:{key.hex()}")
    return openssl("dgst", f"-{name}", *options, "-binary", given=content)


# ---------------------------------------------------------------- key pairs


def private_key(folder: Path, kind: str, name: str = "key") -> Path:
    """Return the file of a key pair (`rsa`, `p256`, `p384`, `ed25519`), made when it is not there."""
    file = folder / f"{kind}-{name}.pem"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        algorithm, *options = _OPTIONS[kind]
        openssl("genpkey", "-algorithm", algorithm, *options, "-out", file)
    return file


def public_pem(key: Path) -> str:
    """Return the public key as PEM."""
    return openssl("pkey", "-in", key, "-pubout").decode()


def public_der(key: Path) -> bytes:
    """Return the public key as DER; it ends with the 32 bytes of an Ed25519 key."""
    return openssl("pkey", "-in", key, "-pubout", "-outform", "DER")


def jwk(key: Path, kid: str) -> dict[str, str]:
    """Return the public key as a JWK (RFC 7517); the kind is read off the file's name."""
    kind, der = key.name.partition("-")[0], public_der(key)
    if kind == "rsa":
        modulus = openssl("rsa", "-in", key, "-noout", "-modulus").decode().strip()
        n = bytes.fromhex(modulus.removeprefix("Modulus="))
        return {"kty": "RSA", "kid": kid, "use": "sig", "n": b64url(n), "e": "AQAB"}
    if kind == "ed25519":
        return {"kty": "OKP", "crv": "Ed25519", "kid": kid, "use": "sig", "x": b64url(der[-32:])}
    size = {"p256": 32, "p384": 48}[kind]
    x, y = der[-2 * size : -size], der[-size:]
    curve = f"P-{size * 8}"
    return {"kty": "EC", "crv": curve, "kid": kid, "use": "sig", "x": b64url(x), "y": b64url(y)}


def sign_rsa(key: Path, content: bytes, name: str = "sha256", *, pss: bool = False) -> bytes:
    """Return an RSA signature: PKCS#1 v1.5, or PSS with a salt as long as the digest."""
    options = ("-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:-1") if pss else ()
    return openssl("dgst", f"-{name}", "-sign", key, *options, given=content)


def sign_ecdsa(key: Path, content: bytes, name: str = "sha256", *, raw: bool = False) -> bytes:
    """Return an ECDSA signature, in DER or as r and s side by side (P-256 and P-384)."""
    der = openssl("dgst", f"-{name}", "-sign", key, given=content)
    return _side_by_side(der, 48 if key.name.startswith("p384") else 32) if raw else der


def _side_by_side(der: bytes, size: int) -> bytes:
    listing = openssl("asn1parse", "-inform", "DER", given=der).decode()
    numbers = [line.rpartition(":")[2] for line in listing.splitlines() if "INTEGER" in line]
    return b"".join(int(number, 16).to_bytes(size, "big") for number in numbers)


def sign_ed25519(key: Path, content: bytes) -> bytes:
    """Return an Ed25519 signature; the command wants the content in a file."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", file.name)


def jwt(header: dict[str, Any], payload: Any, sign: Callable[[bytes], bytes]) -> str:
    """Return a compact JWS; `payload` is bytes or what becomes JSON, `sign` signs the input."""
    middle = payload if isinstance(payload, bytes) else compact(payload)
    signing = f"{b64url(compact(header))}.{b64url(middle)}"
    return f"{signing}.{b64url(sign(signing.encode()))}"


# ---------------------------------------------------------------- vectors


def url_of(slug: str) -> str:
    """Return the URL under which vectors have the endpoint."""
    return f"https://hooks.example.com/in/{slug}"


@cache
def _made_by() -> str:
    version = openssl("version").decode().split()[1]
    return f"documented formula, openssl CLI {version} (no official verifier run)"


def vector(
    name: str,
    key: dict[str, Any],
    headers: Headers,
    body: bytes = b"",
    *,
    reason: str = "valid",
    now: int = NOW,
    url: str = "",
    method: str = "POST",
) -> Vector:
    """Return a vector; a name that begins with `accept` or `reject` says what is expected.

    Without a `url` it gets the one of its file.
    """
    return {
        "name": name,
        "method": method,
        "url": url,
        "headers": [list(pair) for pair in headers],
        "body_base64": b64(body),
        "key": key,
        "now": now,
        "expect": name.partition("-")[0],
        "reason": reason,
        "produced_by": _made_by(),
    }


def varied(original: Vector, name: str, reason: str, **changes: Any) -> Vector:
    """Return a copy with another name and reason; `changes` are arguments of `vector`."""
    if "body" in changes:
        changes["body_base64"] = b64(changes.pop("body"))
    if "headers" in changes:
        changes["headers"] = [list(pair) for pair in changes["headers"]]
    expect = name.partition("-")[0]
    return {**original, **changes, "name": name, "expect": expect, "reason": reason}


def save(
    provider: str, slug: str, vectors: Iterable[Vector], *, folder: Path = FOLDER, note: str = ""
) -> None:
    """Write `slug`.json; ValueError unless it holds an accepted and two refused requests."""
    rows = [{**row, "url": row["url"] or url_of(slug)} for row in vectors]
    names = [row["name"] for row in rows]
    expected = [row["expect"] for row in rows]
    if set(expected) != {"accept", "reject"} or expected.count("reject") < 2:
        raise ValueError(f"{slug}: one accepted and two refused requests are the least")
    if len(set(names)) != len(names):
        raise ValueError(f"{slug}: two vectors have one name")
    document = {"provider": provider, "slug": slug, "assurance": "documented-formula"}
    if note:
        document["note"] = note
    text = json.dumps({**document, "vectors": rows}, indent=1, ensure_ascii=False)
    (folder / f"{slug}.json").write_text(text + "\n", encoding="utf-8")
