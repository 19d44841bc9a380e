"""The hot path: request → verify → record → answer.

Promise: a 2xx is sent only after the event is durable; everything else is refused without saying
why. This module conducts and decides nothing itself: `verifiers` judge, the inbox records,
`answers` speaks.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway import answers
from gateway.handshakes import Tally
from gateway.http.body import BodyTooLarge, Disconnected, NoRoom, Receive, Room, read_body
from gateway.published_keys import KeyView
from gateway.refusals import RefusalLog
from gateway.source import Source, Sources
from reconciler import logs
from reconciler.domain.event import ANY, NewEvent, Refusal, Scope
from reconciler.domain.ids import IdMaker, is_name
from reconciler.storage.contract import Conflict, Inbox
from reconciler.storage.errors import StorageUnavailableError
from verifiers.handshake import HandedOver, Outcome, Reply, ToConfirm, Unmet
from verifiers.locate import Locator
from verifiers.replay import content_digest
from verifiers.request import RawRequest
from verifiers.verdict import Reason, Verified
from verifiers.verify import verify

_REDACTED = b"[redacted]"
#: What is kept of a request that reached no source: who sent what kind of thing where.
_HARMLESS = frozenset((b":path", b"host", b"user-agent", b"content-type", b"content-length"))
#: Headers whose values are credentials: never stored, never shown.
_CREDENTIALS = frozenset((b"authorization", b"proxy-authorization", b"cookie"))
#: Encodings of the wire that a signature may cover as they are; anything else is 415.
_ENCODINGS = frozenset((b"identity", b"gzip", b"deflate", b"br", b"zstd"))

#: Where refusals belong that reached no source; only who may see every project sees them.
_NOBODYS = Scope(ANY, ANY)


class Unread(StrEnum):
    """Why a request was refused before verification; slugs beside `verifiers.verdict.Reason`."""

    UNKNOWN_SOURCE = "unknown_source"
    WRONG_METHOD = "wrong_method"
    UNSUPPORTED = "unsupported_media"
    TOO_LARGE = "body_too_large"
    NO_ROOM = "no_room"


#: What is no secret: HTTP itself. Every reason of verification is one and the same 401.
_ANSWERS: Mapping[Reason | Unread | Unmet, answers.Answer] = {
    Unread.UNKNOWN_SOURCE: answers.UNKNOWN_SOURCE,
    Unread.UNSUPPORTED: answers.UNSUPPORTED,
    Unread.TOO_LARGE: answers.TOO_LARGE,
    Unread.NO_ROOM: answers.NO_ROOM,
}

_UNAUTHORIZED = 401
_CONFIRM = "the event holds an address: open it if you subscribed (vouchback events raw EVENT)"
_HANDED_OVER = "a secret was offered and not taken: get it by hand, add it as a key of the source"

_log = logs.get("intake")


@dataclass(slots=True)
class Intake:
    """The ASGI application of the public listener."""

    sources: Sources
    inbox: Inbox
    refusals: RefusalLog
    clock: Callable[[], int]
    new_id: IdMaker
    acknowledge_s: float
    room: Room
    #: Hears what published keys are missed and used; `None` where no source has any.
    keys: KeyView | None = None
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(self.clock)

    async def __call__(
        self, scope: Mapping[str, Any], receive: Receive, send: answers.Send
    ) -> None:
        """Take one request."""
        answer = await self._answer(scope, receive)
        if answer is not None:
            await answer.send(send)

    async def _answer(self, scope: Mapping[str, Any], receive: Receive) -> answers.Answer | None:
        source = self.sources.at(scope["raw_path"])
        if source is None:
            return self._refuse(None, scope, Unread.UNKNOWN_SOURCE)
        if scope["method"] != "POST" and not _asks(source, scope["method"]):
            return self._refuse(source, scope, Unread.WRONG_METHOD)
        if not _supported(scope["headers"]):
            return self._refuse(source, scope, Unread.UNSUPPORTED)
        body = await read_body(scope, receive, source.body_bytes_max, self.room)
        if isinstance(body, Disconnected):
            return None
        if isinstance(body, BodyTooLarge):
            return self._refuse(source, scope, Unread.TOO_LARGE)
        if isinstance(body, NoRoom):
            return self._refuse(source, scope, Unread.NO_ROOM)
        try:
            return await self._judge(source, _raw_request(source, scope, body), scope)
        finally:
            self.room.left += len(body)

    async def _judge(
        self, source: Source, request: RawRequest, scope: Mapping[str, Any]
    ) -> answers.Answer:
        now = self.clock()
        if source.handshake is not None:
            met = source.handshake.meet(request, source.keys, now // 1000)
            if met is not None or request.method != "POST":
                answer = self._shake(source, request, scope, met)
                if answer is not None:
                    return answer
        verdict = verify(request, source.preset, source.keys, now // 1000)
        if self.keys is not None and source.preset.published is not None:
            self.keys.heed(source, request, verdict)
        if isinstance(verdict, Verified):
            return await self._record(source, self._event(source, request, verdict, now), now)
        return self._refuse(source, scope, verdict.reason, request.body)

    def _shake(
        self,
        source: Source,
        request: RawRequest,
        scope: Mapping[str, Any],
        met: Outcome | None,
    ) -> answers.Answer | None:
        """Answer a handshake; `None` for what goes the way of an event, accepted or refused."""
        if isinstance(met, Reply):
            self.tally.note(source.name, request.method)
            return answers.exactly(met.status, met.headers, met.body)
        if isinstance(met, ToConfirm):
            _log.warning("handshake_to_confirm", source=source.name, do=_CONFIRM)
            return None
        if isinstance(met, HandedOver):
            _log.warning("handshake_not_open", source=source.name, do=_HANDED_OVER)
            return self._refuse(source, scope, Unmet.NOT_OPEN, request.body)
        if met is None:
            return self._refuse(source, scope, Unmet.UNREADABLE, request.body)
        if isinstance(met.reason, Reason) and request.method == "POST":
            return None  # verification says the same again, and looks for a key that is not known
        answer = self._refuse(source, scope, met.reason, request.body)
        return answer if met.status == _UNAUTHORIZED else answers.refused(met.status)

    async def _record(self, source: Source, event: NewEvent, now: int) -> answers.Answer:
        try:
            async with asyncio.timeout(self.acknowledge_s):
                outcome = await self.inbox.record(event, _conflict_id(event), now)
        except (StorageUnavailableError, TimeoutError) as error:
            # It may be on disk all the same; then the provider's retry is a duplicate.
            _log.warning("event_not_acknowledged", source=source.name, error=repr(error))
            return answers.UNAVAILABLE
        if isinstance(outcome, Conflict):
            _log.warning("event_conflict", source=source.name, event_id=outcome.event_id)
        return source.acknowledgement

    def _event(self, source: Source, request: RawRequest, verdict: Verified, now: int) -> NewEvent:
        key = verdict.event_key
        return NewEvent(
            event_id=self.new_id("evt"),
            scope=source.scope,
            source=source.name,
            key=f"{key.kind}:{key.text}",
            content_digest=content_digest(request),
            provider_event_id=verdict.event_id,
            event_type=verdict.event_type,
            key_id=verdict.key_id,
            signed_at=None if verdict.timestamp is None else verdict.timestamp * 1000,
            flags=_flags(verdict),
            # The query may hold the secret, and whoever reads events must not learn it.
            url=source.url if source.secret_query else request.url,
            headers=_header_lines(request.headers, source),
            body=request.body,
            profile=source.profile,
            remote_job_id=_read(source.job_id, request, verdict),
            client_reference=_read(source.client_reference, request, verdict),
            remember_until_at=now + source.memory_ms,
        )

    def _refuse(
        self,
        source: Source | None,
        scope: Mapping[str, Any],
        reason: Reason | Unread | Unmet,
        body: bytes = b"",
    ) -> answers.Answer:
        """Keep the refusal for reviewers and return what the caller may know of it."""
        self.refusals.note(
            Refusal(
                refusal_id=self.new_id("rfs"),
                scope=source.scope if source else _NOBODYS,
                source=source.name if source else "",
                reason=reason,
                at=self.clock(),
                peer=(scope["client"] or ("",))[0],
                method=scope["method"],
                body_bytes=len(body),
                body_digest=hashlib.sha256(body).digest(),
                headers=_header_lines([(b":path", scope["raw_path"]), *scope["headers"]], source),
            )
        )
        if source is not None and reason is Unread.WRONG_METHOD:
            return source.wrong_method
        return _ANSWERS.get(reason, answers.REFUSED if source is None else source.refusal)


def _asks(source: Source, method: str) -> bool:
    """Tell whether the source's provider sends this method when it registers a webhook."""
    return source.handshake is not None and method in source.handshake.methods


def _raw_request(source: Source, scope: Mapping[str, Any], body: bytes) -> RawRequest:
    query = scope["query_string"]
    url = f"{source.url}?{query.decode('latin-1')}" if query else source.url
    return RawRequest(scope["method"], url, tuple(scope["headers"]), body)


def _conflict_id(event: NewEvent) -> str:
    """Return the name of this request if it is a conflict: it then leaves its own id unused."""
    return event.event_id.replace("evt", "cfl", 1)


def _read(place: Locator | None, request: RawRequest, verdict: Verified) -> str | None:
    """Return how the event names its job, or nothing.

    No operation has another kind of name, so what this leaves out could not be found anyway.
    """
    found = None if place is None else place.read(request, verdict.document)
    return found if found is not None and is_name(found) else None


def _supported(headers: list[tuple[bytes, bytes]]) -> bool:
    """Tell whether the body is bytes that a signature can cover."""
    for name, value in headers:
        if name == b"content-encoding" and value.lower() not in _ENCODINGS:
            return False
        if name == b"content-type" and value[:10].lower() == b"multipart/":
            return False
    return True


def _header_lines(headers: Iterable[tuple[bytes, bytes]], source: Source | None) -> str:
    if source is None:
        # Which header would be a credential, only its source could tell.
        return _lines((name, value if name in _HARMLESS else _REDACTED) for name, value in headers)
    secret = _CREDENTIALS | source.secret_headers
    return _lines((name, _REDACTED if name in secret else value) for name, value in headers)


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> str:
    return b"\n".join([name + b": " + value for name, value in headers]).decode("latin-1")


def _flags(verdict: Verified) -> tuple[str, ...]:
    return (*verdict.flags, "weak") if verdict.weak else verdict.flags
