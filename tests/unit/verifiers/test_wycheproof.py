"""Our primitives against the vectors of the Wycheproof project, where they are at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from verifiers.schemes import ALGORITHMS, Prepared
from verifiers.schemes.shared_secret import Hmac

FOLDER = Path(__file__).parents[4] / "shared" / "wycheproof"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no wycheproof folder is at hand")

PUBLIC = [
    ("ecdsa_secp256r1_sha256_test.json", "ecdsa-p256-sha256-der"),
    ("ecdsa_secp256r1_sha256_p1363_test.json", "ecdsa-p256-sha256-raw"),
    ("ed25519_test.json", "ed25519"),
    ("rsa_signature_2048_sha256_test.json", "rsa-sha256"),
    ("rsa_pss_2048_sha256_mgf1_32_test.json", "rsa-pss-sha256"),
]


def groups(name: str) -> list[dict[str, Any]]:
    """Return the test groups of a file."""
    found: list[dict[str, Any]] = json.loads((FOLDER / name).read_text("utf-8"))["testGroups"]
    return found


def accepts(key: Prepared, size: int, test: dict[str, Any]) -> bool:
    """Tell whether a signature is accepted, as a request's would be."""
    signature = bytes.fromhex(test["sig"])
    fits = bool(signature) and (not size or len(signature) == size)
    return fits and key.matches(bytes.fromhex(test["msg"]), [signature])


@pytest.mark.parametrize(("name", "algorithm"), PUBLIC)
def test_public_keys_agree_with_wycheproof(name: str, algorithm: str) -> None:
    """What is valid is accepted and what is invalid refused; never an exception."""
    row = ALGORITHMS[algorithm]
    for group in groups(name):
        ((_, key),) = row.prepare_all(group["publicKeyPem"])
        wrong = [
            test["tcId"]
            for test in group["tests"]
            if test["result"] != "acceptable"
            and accepts(key, row.signature_bytes, test) is not (test["result"] == "valid")
        ]

        assert wrong == []


@pytest.mark.parametrize("digest", ["sha1", "sha256", "sha512"])
def test_macs_agree_with_wycheproof(digest: str) -> None:
    """A whole MAC is accepted when it is right; a cut one is another length, so refused."""
    size = ALGORITHMS[f"hmac-{digest}"].signature_bytes
    for group in groups(f"hmac_{digest}_test.json"):
        for test in group["tests"]:
            tag = bytes.fromhex(test["tag"])
            key = Hmac(bytes.fromhex(test["key"]), digest)
            right = len(tag) == size and key.matches(bytes.fromhex(test["msg"]), [tag])

            assert right is (test["result"] == "valid" and group["tagSize"] == size * 8)
