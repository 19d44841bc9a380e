"""The algorithms, behind one small table.

An algorithm turns key material into a `Prepared` key once, at start-up; checking a request then
costs the primitive and little else. Whatever is not one signature over one byte string (JWTs,
certificate chains, RFC 9421) gets a module of its own here, never a special case in the core.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from verifiers.schemes.shared_secret import Hmac


class Prepared(Protocol):
    """A key that is ready for use; stateless from the outside, safe to share between threads."""

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is right for `content`. Never raises."""

    def sign(self, content: bytes) -> bytes:
        """Return the signature over `content`; TypeError from a key that can only check."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A row of the table.

    `prepare(material, private)` raises ValueError for material that cannot be a key; `private`
    is true when the secret came in the form of a private key.
    """

    name: str
    signature_bytes: int
    prepare: Callable[[bytes, bool], Prepared]


def _ed25519(material: bytes, private: bool) -> Prepared:
    # The import costs more than everything else here, and most installations need it never.
    from verifiers.schemes.public_key import Ed25519  # noqa: PLC0415

    return Ed25519.of_private(material) if private else Ed25519.of_public(material)


ALGORITHMS: dict[str, Algorithm] = {
    row.name: row
    for row in (
        Algorithm("hmac-sha1", 20, lambda material, _: Hmac(material, "sha1")),
        Algorithm("hmac-sha256", 32, lambda material, _: Hmac(material, "sha256")),
        Algorithm("hmac-sha512", 64, lambda material, _: Hmac(material, "sha512")),
        Algorithm("ed25519", 64, _ed25519),
    )
}
