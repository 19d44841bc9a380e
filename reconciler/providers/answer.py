"""What came back from a provider, as a value: raw bytes, nothing decoded, nothing trusted."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Answer:
    """One final HTTP response.

    The head always stands. `body` is empty whenever `body_fault` says why it could not be had:
    `timeout`, `too_large`, `truncated`, `reset`, `content_encoding` (we asked for none), `unframed`
    (neither length nor chunks: an early end would look like the whole). `address` was dialled.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = field(default=b"", repr=False)
    address: str = ""
    elapsed_ms: int = 0
    body_fault: str | None = None

    def values(self, name: str) -> list[bytes]:
        """Return every value of a header, in order of arrival."""
        wanted = name.lower().encode()
        return [value for key, value in self.headers if key.lower() == wanted]
