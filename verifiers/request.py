"""The raw request as a value.

Everything that verification may look at, exactly as it came over the wire: header pairs in
order with repeats, and the bytes of the body. Nothing here decodes, trims or parses.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RawRequest:
    """One inbound HTTP request, not yet believed.

    `headers` holds (name, value) pairs as ASGI gives them: names lower-cased, order and repeats
    kept. `url` is the URL as the operator configured it, never built from Host, with the raw path
    and query of the request.
    """

    method: str
    url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def values(self, name: bytes) -> list[bytes]:
        """Return every value of the header `name` (lower case), in order."""
        return [value for header, value in self.headers if header == name]

    @property
    def query(self) -> bytes:
        """The raw query, without its question mark."""
        return self.url.partition("?")[2].partition("#")[0].encode("utf-8", "surrogatepass")

    @property
    def path(self) -> bytes:
        """The raw path; empty where the URL has none."""
        rest = self.url.partition("?")[0].partition("#")[0].partition("://")[2]
        slash = rest.find("/")
        return b"" if slash < 0 else rest[slash:].encode("utf-8", "surrogatepass")
