"""The guarded HTTP/1.1 protocol: uvicorn's httptools protocol with its holes closed.

What llhttp and uvicorn let through is refused here, once, when the head is complete and before the
application is started (`gateway.http.head` says what). Beyond that:

- the fields are final when the head is complete: a trailer never joins them;
- head, body, chunk framing and the queue of pipelined requests have caps;
- head, body, idle time, unread answers and farewell have deadlines. There is no timer a request:
  a sweep (`gateway.http.server`) asks each connection a few times a second, which makes this
  protocol about as cheap as the one it guards.

After a refusal nothing that arrives on the connection is served; requests that came before it are
answered first, in order.

It does not know routes, sources, credentials or per-source body limits, and does not trust any
forwarding header: `scope["client"]` is the peer of the socket.
"""

import asyncio
from enum import Enum
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn._types import ASGIVersions
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.http.front import Front, peer_of
from gateway.http.head import head_bytes, judge_head
from gateway.http.refusal import Refusal, RefusedError


class Input(Enum):
    """Where the parser stands in what the peer sends."""

    REST = "between two messages"
    HEAD = "inside a head"
    BODY = "after a head, before the end of its body"
    DEAF = "refused or closing: what arrives is thrown away"


# Looked up several times a request.
_REST, _HEAD, _BODY, _DEAF = Input.REST, Input.HEAD, Input.BODY, Input.DEAF

_ASGI: ASGIVersions = {"version": "3.0", "spec_version": "2.3"}

# `_since` of a message that has come this far in one segment: nobody waits for it yet.
_UNSTAMPED = 0.0
_UNKNOWN = -1


class GuardedProtocol(HttpToolsProtocol):
    """One connection. All times are `loop.time()` seconds."""

    def __init__(
        self,
        config: Config,
        server_state: Front,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.front = server_state
        self.limits = server_state.limits
        self._line: asyncio.Transport  # the real transport; `self.transport` closes gently
        self._peer = ""
        self._input = _REST
        self._hung_up = False
        self._deferred: Refusal | None = None
        # Bytes of the segment at hand that may belong to a message which begins in it.
        self._unclaimed_bytes = 0
        self._head_bytes = 0  # at least what the head has; `head_bytes` counts exactly
        self._body_bytes = 0
        self._wire_bytes = 0  # body with its framing, from the second segment on
        self._stretch_from_bytes = 0
        self._since = 0.0  # when the present wait (idle, head, stretch of body, linger) began
        self._idle_s = self.limits.head_s  # until the first request is answered
        self._unsent_bytes = _UNKNOWN  # at the sweep before, while the peer does not read
        self._unsent_since = 0.0

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or turn it away at once when there are too many."""
        super().connection_made(transport)
        self._line = transport
        self.transport = _GentleTransport(self, transport)
        self._since = self.loop.time()
        self._peer = peer_of(self.client)
        if not self.front.enter(self._peer):
            self.front.count(Refusal.TOO_MANY_CONNECTIONS)
            self._input = _DEAF
            transport.write(Refusal.TOO_MANY_CONNECTIONS.answer)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; a request that was not complete ends as disconnected."""
        self._input, self._hung_up = _DEAF, True
        self.front.leave(self._peer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feed one segment to the parser and look at what it left unfinished."""
        size = len(data)
        if self._input is _REST:
            self._unclaimed_bytes = size
        elif self._input is _DEAF:
            return
        elif self._input is _HEAD:
            self._head_bytes += size
        else:
            self._wire_bytes += size
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._refuse(self._refusal_behind(error))
            return
        if self._input is not _REST:
            self._check_unfinished()

    def resume_writing(self) -> None:
        """Take up writing again; the peer has read."""
        super().resume_writing()
        self._unsent_bytes = _UNKNOWN

    def shutdown(self) -> None:
        """Close an idle connection; let the request at hand be the last one."""
        if self._is_idle():
            self._line.close()
        elif self._is_answering():
            self.cycle.keep_alive = False

    def close_gently(self) -> None:
        """Close; where the peer may still be sending, say so first and read on for a moment."""
        if self._input is _REST:
            self._line.close()
            return
        self._input = _DEAF
        if self.is_closing():
            return
        self._hung_up = True
        self._since = self.loop.time()
        self.flow.resume_reading()
        self._line.write_eof()

    def abort(self) -> None:
        """Close now, whatever has not been sent."""
        self._line.abort()

    def is_closing(self) -> bool:
        """Tell whether nothing more can be answered."""
        return self._hung_up or self._line.is_closing()

    # What the parser reports

    def on_message_begin(self) -> None:
        """Open a new head; the first one in a segment may own all of its bytes."""
        if self.pipeline and len(self.pipeline) >= self.limits.pipelined_max:
            raise RefusedError(Refusal.TOO_MANY_PIPELINED)
        self._input = _HEAD
        self._head_bytes, self._unclaimed_bytes = self._unclaimed_bytes, 0
        self._since = _UNSTAMPED
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a field, its value without the white space around it (RFC 9112, 5.1)."""
        # Of all white space only blanks and tabs get past llhttp.
        self.headers.append((name.lower(), value.rstrip()))

    def on_headers_complete(self) -> None:
        """Judge the head, and start the application or queue the request."""
        limits = self.limits
        if len(self.headers) > limits.fields_max or (
            self._head_bytes > limits.head_bytes_max
            and head_bytes(self.url, self.headers) > limits.head_bytes_max
        ):
            raise RefusedError(Refusal.HEAD_TOO_LARGE)
        version = self.parser.get_http_version()
        verdict = judge_head(version, self.url, self.headers)
        if isinstance(verdict, Refusal):
            raise RefusedError(verdict)
        earlier = self.cycle
        self.cycle = self._open_cycle(version, expects_100=verdict)
        self.headers = []  # trailers end here, where nobody looks
        self._input = _BODY
        self._body_bytes = self._wire_bytes = self._stretch_from_bytes = 0
        self._since = _UNSTAMPED
        if earlier is None or earlier.response_complete:  # type: ignore[redundant-expr]
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _open_cycle(self, version: str, *, expects_100: bool) -> RequestResponseCycle:
        raw_path, _, query = self.url.partition(b"?")
        path = raw_path.decode("ascii")
        self.scope = {
            "type": "http",
            "asgi": _ASGI,
            "http_version": version,
            "method": self.parser.get_method().decode("ascii"),
            "scheme": "http",
            "server": self.server,
            "client": self.client,
            "root_path": "",
            "path": unquote(path) if "%" in path else path,
            "raw_path": raw_path,
            "query_string": query,
            "headers": self.headers,
        }
        return RequestResponseCycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.front.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=expects_100,
            keep_alive=(
                version == "1.1" and self.parser.should_keep_alive() and not self.front.stopping
            ),
            on_response=self.on_response_complete,
        )

    def on_body(self, body: bytes) -> None:
        """Hand a piece of body on, up to the cap."""
        self._body_bytes += len(body)
        if self._body_bytes > self.limits.body_bytes_max:
            raise RefusedError(Refusal.BODY_TOO_LARGE)
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """Come to rest, and tell the application that its body is complete."""
        self._input = _REST
        self.cycle.more_body = False
        self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """Start the next request that waits, or wait for one; a refusal comes last."""
        self.front.total_requests += 1
        if self.is_closing():
            return
        self._since = self.loop.time()
        self._idle_s = self.limits.keep_alive_s
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._deferred is not None:
            self._answer(self._deferred)
        elif self._input is _BODY:
            # Answered before the body was read: what still comes is not worth reading.
            self.close_gently()

    # Limits that are met between segments

    def _check_unfinished(self) -> None:
        if self._since == _UNSTAMPED:
            self._since = self.loop.time()
        if self._input is _HEAD:
            if (
                self._head_bytes > self.limits.head_bytes_max
                or len(self.headers) > self.limits.fields_max
            ):
                self._refuse(Refusal.HEAD_TOO_LARGE)
        elif self._wire_bytes > 2 * self._body_bytes + self.limits.framing_bytes_max:
            self._refuse(Refusal.FRAMING_TOO_LARGE)

    def check_deadlines(self, now: float) -> None:
        """Close or refuse what has waited too long. Called by the sweep."""
        waited = now - self._since
        if self._hung_up:
            if waited > self.limits.linger_s:
                self._line.abort()
        elif self.flow.write_paused or self._line.is_closing():
            self._check_write_stall(now)
        elif self.flow.read_paused:
            self._since = now  # it is we who make the peer wait
        elif self._input is _HEAD and waited > self.limits.head_s:
            self._refuse(Refusal.HEAD_TOO_SLOW)
        elif self._input is _BODY and waited > self.limits.body_stretch_s:
            self._check_body_rate(now, waited)
        elif self._is_idle() and waited > self._idle_s:
            self._line.close()

    def _check_body_rate(self, now: float, waited: float) -> None:
        if self._body_bytes - self._stretch_from_bytes < waited * self.limits.body_bytes_per_s_min:
            self._refuse(Refusal.BODY_TOO_SLOW)
            return
        self._stretch_from_bytes = self._body_bytes
        self._since = now

    def _check_write_stall(self, now: float) -> None:
        unsent = self._line.get_write_buffer_size()
        if unsent != self._unsent_bytes:
            self._unsent_bytes, self._unsent_since = unsent, now
        elif now - self._unsent_since > self.limits.write_stall_s:
            self._line.abort()

    def _is_answering(self) -> bool:
        # uvicorn's annotation hides that there is no cycle before the first request.
        return self.cycle is not None and not self.cycle.response_complete  # type: ignore[redundant-expr]

    def _is_idle(self) -> bool:
        return self._input is _REST and not self._is_answering()

    # Refusing

    def _refusal_behind(self, error: httptools.HttpParserError) -> Refusal:
        cause = error.__context__
        if isinstance(cause, RefusedError):
            return cause.refusal
        if cause is not None:
            self.logger.error("a parser callback failed", exc_info=cause)
        return Refusal.MALFORMED

    def _refuse(self, refusal: Refusal) -> None:
        """Serve nothing more. Answer at once, or after the requests that came before."""
        self.front.count(refusal)
        answerable, must_wait = True, self._is_answering()
        if self._input is _BODY:
            answerable, must_wait = self._give_up_cycle()
        self._input = _DEAF
        if must_wait:
            self._deferred = refusal
        elif answerable:
            self._answer(refusal)
        else:
            self.close_gently()

    def _give_up_cycle(self) -> tuple[bool, bool]:
        """Tell the request whose body is refused that its sender is gone.

        Returns whether it can still be answered, and whether another one is answered before it.
        """
        cycle = self.cycle
        cycle.disconnected = True
        cycle.message_event.set()
        was_waiting = bool(self.pipeline)
        if was_waiting:  # it is the newest of those that wait, and was never started
            self.pipeline.popleft()
        return not cycle.response_started, was_waiting

    def _answer(self, refusal: Refusal) -> None:
        self._line.write(refusal.answer)
        self.close_gently()


class _GentleTransport(asyncio.Transport):
    """The transport as uvicorn's request cycle sees it: its `close` is `close_gently`."""

    def __init__(self, protocol: GuardedProtocol, line: asyncio.Transport) -> None:
        super().__init__()
        self._protocol = protocol
        # Bound once: it is called twice a request.
        self.write = line.write  # type: ignore[method-assign]

    def is_closing(self) -> bool:
        return self._protocol.is_closing()

    def close(self) -> None:
        self._protocol.close_gently()

    def abort(self) -> None:
        self._protocol.abort()
