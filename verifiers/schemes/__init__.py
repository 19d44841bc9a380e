"""The algorithms, behind one small table, and the words for what is more than one signature.

An algorithm turns key material into a `Prepared` key once, at start-up; checking a request then
costs the primitive and little else. Whatever is not one signature over one byte string (tokens,
certificates, RFC 9421) gets a module of its own here, never a special case in the core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from verifiers.schemes.shared_secret import Hmac, SuffixedHash, Token, hash_of

# How a request is read, beside the plain "signature". Each is a module of this folder.
SCHEMES = ("signature", "jwt", "x5c", "items", "sns", "http_message", "wecom", "none")


class Prepared(Protocol):
    """A key that is ready for use; stateless from the outside, safe to share between threads."""

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is right for `content`. Never raises."""

    def sign(self, content: bytes) -> bytes:
        """Return the signature over `content`; TypeError from a key that can only check."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of the table. `signature_bytes` is 0 where signatures differ in length."""

    name: str
    family: str
    signature_bytes: int

    @property
    def is_public(self) -> bool:
        """Whether the key is a public one, which is no secret."""
        return self.family == "public-key"

    def prepare(self, material: bytes, private: bool = False) -> Prepared:
        """Return the key; ValueError for material that cannot be one.

        `private` is true when the secret came in the form of a private key.
        """
        if self.family == "hmac":
            return Hmac(material, self.name.removeprefix("hmac-"))
        if self.family == "hash":
            return hash_of(self.name)
        if self.family == "suffixed-hash":
            return SuffixedHash(material, self.name.removesuffix("-suffixed"))
        if self.family == "token":
            return Token(material)
        # The import costs more than everything else here, and most installations need it never.
        from verifiers.schemes.public_key import Ed25519  # noqa: PLC0415

        if self.name != "ed25519":
            raise ValueError("this key has a notation of its own: form = 'public-key'")
        return Ed25519.of_private(material) if private else Ed25519.of_public(material)

    def prepare_all(self, text: str) -> list[tuple[str | None, Prepared]]:
        """Return (name, prepared) for each key that a text notates; ValueError for none."""
        from verifiers.schemes.public_key import load_keys, prepare  # noqa: PLC0415

        found: list[tuple[str | None, Prepared]] = []
        for key in load_keys(text):
            try:
                found.append((key.name, prepare(self.name, key)))
            except ValueError:  # a set may hold keys of other kinds
                continue
        if not found:
            raise ValueError(f"no {self.name} key")
        return found


def _rows(family: str, **sizes: int) -> list[Algorithm]:
    return [Algorithm(name.replace("_", "-"), family, size) for name, size in sizes.items()]


ALGORITHMS: dict[str, Algorithm] = {
    row.name: row
    for row in [
        *_rows("hmac", hmac_md5=16, hmac_sha1=20, hmac_sha256=32, hmac_sha384=48, hmac_sha512=64),
        *_rows("hash", md5=16, sha1=20, sha256=32, sha512=64, keccak_256=32),
        *_rows("suffixed-hash", md5_suffixed=16),
        *_rows("token", token=0),
        *_rows("public-key", ed25519=64),
        *_rows("public-key", ecdsa_p256_sha256_der=0, ecdsa_p256_sha1_der=0),
        *_rows("public-key", ecdsa_p256_sha256_raw=64, ecdsa_p384_sha384_raw=96),
        *_rows("public-key", rsa_sha1=0, rsa_sha256=0, rsa_sha384=0, rsa_sha512=0),
        *_rows("public-key", rsa_pss_sha256=0, rsa_pss_sha384=0, rsa_pss_sha512=0),
    ]
}
