"""The body of an event, wherever it is: in the ledger, or in a file."""

from reconciler.domain.event import MovedBody
from reconciler.storage.contract import Blobs, Events
from reconciler.storage.errors import BodyLostError


class Bodies:
    """Reads bodies. `blobs` is `None` where no folder is configured."""

    def __init__(self, events: Events, blobs: Blobs | None) -> None:
        self._events, self._blobs = events, blobs

    async def read(self, event_id: str) -> bytes | None:
        """Return the bytes as they came, `None` without such an event.

        `BodyLostError` if the file is missing or damaged: there are no other bytes.
        """
        body = await self._events.body(event_id)
        if not isinstance(body, MovedBody):
            return body
        if self._blobs is None:
            raise BodyLostError("it was moved to a file, and retention.folder is not set")
        return await self._blobs.get(body.digest)
