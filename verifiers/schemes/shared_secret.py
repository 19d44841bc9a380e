"""HMAC (RFC 2104) with a shared secret.

The two key blocks are hashed once; each request copies that state.
"""

import hmac
from collections.abc import Sequence

from verifiers.encoding import equal


class Hmac:
    """A prepared HMAC key."""

    __slots__ = ("_start",)

    def __init__(self, material: bytes, digest: str) -> None:
        self._start = hmac.new(material, None, digest)

    def sign(self, content: bytes) -> bytes:
        """Return the MAC of `content`."""
        mac = self._start.copy()
        mac.update(content)
        return mac.digest()

    def matches(self, content: bytes, signatures: Sequence[bytes]) -> bool:
        """Whether any of `signatures` is the MAC of `content`."""
        expected = self.sign(content)
        return any([equal(expected, given) for given in signatures])  # noqa: C419  # all, always
