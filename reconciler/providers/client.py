"""The bounded, guarded HTTP client: the only module of the server that imports httpx.

It promises that
- the address that is dialled is one that the egress guard has just allowed: the URL handed on
  holds the address, Host and TLS name hold the host (httpcore makes `sni_hostname` the
  `server_hostname` of the TLS stream, which is the name that certificates are checked against);
- a call ends within its deadline, whatever trickles in (httpx's own timeouts are per operation),
  and never holds more than the caps of `Limits`;
- redirects, cookies, proxies, netrc and environment have no say: a request goes straight to a
  transport;
- connections are shared within one origin only, and credentials appear in no message and no repr.

It does not retry a request that may have left, and it does not interpret answers.
"""

import asyncio
import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from reconciler.providers.answer import Answer
from reconciler.providers.egress import (
    Denied,
    Policy,
    Resolver,
    Target,
    check_url,
    resolve_checked,
    system_resolver,
)
from reconciler.providers.errors import (
    EgressDeniedError,
    ProviderError,
    ProviderUnavailableError,
)
from reconciler.providers.networks import Address
from reconciler.providers.request import RESERVED_HEADERS, Outbound

T = TypeVar("T")
TransportFactory = Callable[[], httpx.AsyncBaseTransport]

#: How many of a name's addresses are tried, within the one deadline, when connecting fails.
ADDRESSES_TRIED_MAX = 3
_CONNECTIONS = httpx.Limits(max_connections=16, max_keepalive_connections=4, keepalive_expiry=30.0)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~\t]*[!-~])?")
_BODILESS = frozenset({204, 205, 304})
#: What the transport traces, and how far a call has then come.
_STEPS = {
    "connection.connect_tcp.started": "connecting",
    "connection.start_tls.started": "securing",
    "http11.send_request_headers.started": "sent",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one call: seconds and bytes. h11 cuts a response head at 100 KiB in any case."""

    total_s: float = 10.0
    connect_s: float = 4.0
    body_bytes_max: int = 1 << 20
    head_bytes_max: int = 1 << 16


@dataclass(slots=True)
class _Progress:
    """How far a call has come, told by the transport's trace; unknown counts as sent."""

    step: str = "unknown"

    async def __call__(self, event: str, _info: dict[str, Any]) -> None:
        self.step = _STEPS.get(event, self.step)

    @property
    def may_have_sent(self) -> bool:
        return self.step not in {"connecting", "securing"}


@dataclass(frozen=True, slots=True)
class _Call:
    """One request on its way: checked URL, complete headers, bounds."""

    request: Outbound
    target: Target
    headers: list[tuple[str, str]] = field(repr=False)
    limits: Limits
    deadline: float


class ProviderClient:
    """Sends requests to providers; many at once, on one event loop. `aclose` ends it."""

    def __init__(
        self,
        policy: Policy,
        *,
        resolver: Resolver = system_resolver,
        limits: Limits | None = None,
        ssl_context: ssl.SSLContext | None = None,
        transport_factory: TransportFactory | None = None,
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._limits = limits or Limits()
        self._ssl_context = ssl_context
        self._transport_factory = transport_factory or self._direct_transport
        self._pools: dict[tuple[str, str, int], httpx.AsyncBaseTransport] = {}

    async def send(self, request: Outbound, *, limits: Limits | None = None) -> Answer:
        """Send one request and return its answer, of whatever status.

        Raises `EgressDeniedError` (nothing was sent) or `ProviderUnavailableError` (no response
        head came; `ambiguous` when the request may have arrived).
        """
        limits = limits or self._limits
        started = asyncio.get_running_loop().time()
        deadline = started + limits.total_s
        target = _allowed(check_url(request.url, self._policy))
        call = _Call(request, target, _headers(request, target), limits, deadline)
        response, address = await self._reached(call, await self._addresses(call))
        try:
            body, fault = await _body(response, limits.body_bytes_max, deadline)
        finally:
            await response.aclose()
        elapsed_ms = round((asyncio.get_running_loop().time() - started) * 1000)
        head = tuple(response.headers.raw)
        return Answer(response.status_code, head, body, str(address), elapsed_ms, fault)

    async def aclose(self) -> None:
        """Close every connection."""
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.aclose()

    async def _addresses(self, call: _Call) -> tuple[Address, ...]:
        try:
            async with asyncio.timeout_at(call.deadline):
                checked = await resolve_checked(call.target, self._policy, self._resolver)
        except TimeoutError:
            raise ProviderUnavailableError("timeout", f"looking up {call.target.host}") from None
        return _allowed(checked)

    async def _reached(
        self, call: _Call, addresses: tuple[Address, ...]
    ) -> tuple[httpx.Response, Address]:
        """Try the addresses in turn until one answers, as long as nothing can have been sent."""
        failure: ProviderError = ProviderUnavailableError("connect_failed", call.target.host)
        for address in addresses[:ADDRESSES_TRIED_MAX]:
            try:
                return await self._head(call, address), address
            except ProviderUnavailableError as error:
                failure = error
            if failure.ambiguous:
                break
        raise failure

    async def _head(self, call: _Call, address: Address) -> httpx.Response:
        progress = _Progress()
        outgoing = _outgoing(call, address, progress)
        try:
            async with asyncio.timeout_at(call.deadline):
                response = await self._pool(call.target).handle_async_request(outgoing)
        except (TimeoutError, httpx.HTTPError, OSError, UnicodeError) as error:
            # Without the cause: its text may quote the request.
            raise _unavailable(error, progress, call.target) from None
        size = sum(len(name) + len(value) for name, value in response.headers.raw)
        if size > call.limits.head_bytes_max:
            await response.aclose()
            raise ProviderUnavailableError("bad_http", call.target.host, ambiguous=True)
        return response

    def _pool(self, target: Target) -> httpx.AsyncBaseTransport:
        # One pool an origin, not one for all: a slow provider exhausts its own connections only,
        # and a TLS session made for one name is never used for another one at the same address.
        if target.origin not in self._pools:
            self._pools[target.origin] = self._transport_factory()
        return self._pools[target.origin]

    def _direct_transport(self) -> httpx.AsyncBaseTransport:
        if self._ssl_context is None:
            self._ssl_context = httpx.create_ssl_context(trust_env=False)
        return httpx.AsyncHTTPTransport(
            verify=self._ssl_context, trust_env=False, limits=_CONNECTIONS, retries=0
        )


def _allowed(outcome: T | Denied) -> T:
    if isinstance(outcome, Denied):
        raise EgressDeniedError(outcome.slug, outcome.detail)
    return outcome


def _headers(request: Outbound, target: Target) -> list[tuple[str, str]]:
    """Put our headers before the request's; refuse any that could break out of its line."""
    for name, value in request.headers:
        if not _HEADER_NAME.fullmatch(name) or name.lower() in RESERVED_HEADERS:
            raise EgressDeniedError("bad_header", f"{name[:80]!r} may not be sent")
        if not _HEADER_VALUE.fullmatch(value):
            raise EgressDeniedError("bad_header", f"the value of {name} is not printable ASCII")
    ours = [("Host", target.authority), ("Accept-Encoding", "identity")]
    if not any(name.lower() == "user-agent" for name, _ in request.headers):
        ours.append(("User-Agent", "vouchback"))
    return [*ours, *request.headers]


def _outgoing(call: _Call, address: Address, progress: _Progress) -> httpx.Request:
    target, request, limits = call.target, call.request, call.limits
    path = target.path.encode("ascii")
    url = httpx.URL(scheme=target.scheme, host=str(address), port=target.port, raw_path=path)
    if url.raw_path != path:
        raise EgressDeniedError("bad_path", "the path would be sent other than it was checked")
    timeout = httpx.Timeout(limits.total_s, connect=limits.connect_s, pool=limits.connect_s)
    extensions: dict[str, Any] = {"timeout": timeout.as_dict(), "trace": progress}
    if target.address is None:
        extensions["sni_hostname"] = target.host
    return httpx.Request(
        request.method, url, headers=call.headers, content=request.body, extensions=extensions
    )


async def _body(
    response: httpx.Response, bytes_max: int, deadline: float
) -> tuple[bytes, str | None]:
    """Read the body, or say why there is none to trust."""
    headers = response.headers
    if "content-encoding" in headers:
        return b"", "content_encoding"
    if response.status_code in _BODILESS:
        return b"", None
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return b"", "unframed"
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > bytes_max:
                    return b"", "too_large"
    except (TimeoutError, httpx.TimeoutException):
        return b"", "timeout"
    except httpx.RemoteProtocolError:
        return b"", "truncated"
    except (httpx.HTTPError, OSError):
        return b"", "reset"
    return bytes(body), None


def _unavailable(error: Exception, progress: _Progress, target: Target) -> ProviderUnavailableError:
    """Name a failure before the response head, and say whether the request may have arrived."""
    ambiguous = progress.may_have_sent
    match error:
        case httpx.ConnectError() | UnicodeError():
            slug = "tls_failed" if progress.step == "securing" else "connect_failed"
            ambiguous = False
        case httpx.PoolTimeout():
            slug, ambiguous = "pool_exhausted", False
        case httpx.ConnectTimeout():
            slug, ambiguous = "timeout", False
        case TimeoutError() | httpx.TimeoutException():
            slug = "timeout"
        case httpx.LocalProtocolError():
            slug, ambiguous = "bad_request", False
        case httpx.RemoteProtocolError():
            slug = "no_answer" if str(error).startswith("Server disconnected") else "bad_http"
        case _:
            slug = "reset"
    return ProviderUnavailableError(slug, target.host, ambiguous=ambiguous)
