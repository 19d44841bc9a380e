"""The egress guard: whether a URL may be called, and at which addresses.

It decides twice. `check_url` when a URL is registered: one spelling is accepted and every other one
is refused, so that nothing is left for two parsers to disagree on. `resolve_checked` before every
call: every address that the name has *now* must be allowed, and the caller dials one of those
addresses, never the name. It fails closed: no answer, a strange answer or one bad address among
good ones is a denial.

Not here: dialling (`client`), redirects (never followed), the table of networks (`networks`).
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address, ip_network

from reconciler.providers.networks import Address, Network, denial, embedded

URL_BYTES_MAX = 2048
#: More records than this in one DNS answer is no provider, it is an attack on our table walk.
ADDRESSES_MAX = 32

#: Host and port in, textual addresses out (A and AAAA together). May raise `OSError`.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

# RFC 3986 without user information and fragment; a percent sign starts two hex digits.
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<host>\[[^\[\]]*\]|[^/?#\[\]:]*)(?::(?P<port>[^/?#]*))?"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?"
)
_PATH = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:/-]|%[0-9A-Fa-f]{2})*")
_QUERY = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:/?-]|%[0-9A-Fa-f]{2})*")
_DOT_SEGMENT = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?=/|$)", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# A last label of digits, or of hex after 0x, makes browsers and libcs read the whole as an IPv4
# address.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_PORT_MAX = 65535
_HOST_CHARACTERS_MAX = 253  # RFC 1035, section 2.3.4, without the root's dot
_ALLOWED = re.compile(r"(?:(https?)://)?(?:\[([^\]]+)\]|([0-9./]+)):([1-9][0-9]{0,4})")
_DEFAULT_PORTS = {"https": 443, "http": 80}
# Names of the inside: RFC 6761 (localhost), RFC 6762 (local), RFC 8375 (home.arpa), ICANN
# (internal).
_LOCAL_SUFFIXES = ("localhost", "localdomain", "local", "internal", "intranet", "lan", "home.arpa")


@dataclass(frozen=True, slots=True)
class Denied:
    """A refusal: `slug` for records and metrics, `detail` for the operator (no query)."""

    slug: str
    detail: str


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that passed `check_url`. `path` is path and query as they go out."""

    scheme: str
    host: str
    port: int
    path: str = field(repr=False)
    address: Address | None = None

    @property
    def origin(self) -> tuple[str, str, int]:
        """Scheme, host and port: what credentials and connections are bound to."""
        return (self.scheme, self.host, self.port)

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if _DEFAULT_PORTS[self.scheme] == self.port else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Allowed:
    """An allow-list entry: this scheme, at this port, to the addresses of this network."""

    network: Network
    port: int
    scheme: str = "https"

    @classmethod
    def parse(cls, text: str) -> "Allowed":
        """Read `10.0.0.0/8:8443`, `[fd00::/8]:8443` or `http://…`. Raises `ValueError`."""
        match = _ALLOWED.fullmatch(text)
        if match is None or int(match[4]) > _PORT_MAX:
            raise ValueError(f"{text!r} is no NETWORK:PORT, such as 10.0.0.0/8:8443")
        return cls(ip_network(match[2] or match[3]), int(match[4]), match[1] or "https")

    def covers(self, scheme: str, address: Address, port: int) -> bool:
        """Whether the entry speaks of this very address, port and scheme."""
        same_way = (self.scheme, self.port) == (scheme, port)
        return same_way and address.version == self.network.version and address in self.network


@dataclass(frozen=True, slots=True)
class Policy:
    """What an operator allows beyond public HTTPS, and what is ours and must not be called.

    `own_addresses` holds (address, port) pairs where we listen, `None` for every port; a wildcard
    listener is named by the addresses of the machine. What is ours is denied whatever the list
    allows.
    """

    allowed: tuple[Allowed, ...] = ()
    ports: frozenset[int] = frozenset({443})
    own_addresses: frozenset[tuple[Address, int | None]] = frozenset()
    own_names: frozenset[str] = frozenset()

    def opens(self, scheme: str, port: int) -> bool:
        """Whether an allow-list entry exists for this way out, whatever the address."""
        return any((entry.scheme, entry.port) == (scheme, port) for entry in self.allowed)


def check_url(url: str, policy: Policy) -> Target | Denied:
    """Judge a URL as it is registered. No look-up is made: names are judged again at each call."""
    if len(url) > URL_BYTES_MAX:
        return Denied("too_long", f"a URL has at most {URL_BYTES_MAX} characters")
    if not all("!" <= character <= "~" for character in url) or "\\" in url:
        return Denied("bad_character", "a URL is printable ASCII without spaces and backslashes")
    if "@" in url:
        return Denied("userinfo", "no user name, password or @ in a URL")
    match = _URL.fullmatch(url)
    if match is None:
        return Denied("malformed", "expected https://host[:port]/path, without a fragment")
    scheme = match["scheme"].lower()
    if scheme not in _DEFAULT_PORTS:
        return Denied("scheme", f"{scheme} is not https")
    port = _port(match["port"], scheme)
    if isinstance(port, Denied):
        return port
    path = _path(match["path"], match["query"])
    if isinstance(path, Denied):
        return path
    return _host_checked(match["host"].lower(), scheme, port, path, policy)


async def resolve_checked(
    target: Target, policy: Policy, resolver: Resolver
) -> tuple[Address, ...] | Denied:
    """Find the addresses that may be dialled for `target` right now, in the resolver's order."""
    if target.address is not None:
        return _judged(target, target.address, policy) or (target.address,)
    try:
        answers = await resolver(target.host, target.port)
    except (OSError, UnicodeError):
        return Denied("no_address", f"{target.host} has no address: the look-up failed")
    if not answers:
        return Denied("no_address", f"{target.host} has no address")
    if len(answers) > ADDRESSES_MAX:
        return Denied("too_many_addresses", f"{target.host} has {len(answers)} addresses")
    addresses: list[Address] = []
    for answer in answers:
        address = _parsed(answer)
        if address is None:
            return Denied("bad_address", f"{target.host}: the resolver answered {answer[:80]!r}")
        denied = _judged(target, address, policy)
        if denied is not None:
            return denied
        addresses.append(address)
    return tuple(dict.fromkeys(addresses))


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Ask the operating system, off the event loop."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


def _port(text: str | None, scheme: str) -> int | Denied:
    if text is None:
        return _DEFAULT_PORTS[scheme]
    if _PORT.fullmatch(text) is None or int(text) > _PORT_MAX:
        return Denied("bad_port", "a port is a number from 1 to 65535 without leading zeros")
    return int(text)


def _path(path: str | None, query: str | None) -> str | Denied:
    path = path or "/"
    if not _PATH.fullmatch(path) or not _QUERY.fullmatch(query or ""):
        return Denied(
            "bad_character", "percent-encode what RFC 3986 does not allow in a path or query"
        )
    if _DOT_SEGMENT.search(path):
        return Denied("dot_segment", "a path without . and .. segments")
    return path if query is None else f"{path}?{query}"


def _host_checked(host: str, scheme: str, port: int, path: str, policy: Policy) -> Target | Denied:
    address = _literal(host)
    if isinstance(address, Denied):
        return address
    target = Target(scheme, host.strip("[]"), port, path, address)
    if address is not None:
        return _judged(target, address, policy) or target
    denied = _name_denied(host, policy, opened=policy.opens(scheme, port))
    if denied is not None:
        return denied
    return _way_denied(scheme, port, policy) or target


def _literal(host: str) -> Address | Denied | None:
    """Read an address in its usual spelling; `None` for a name; any other spelling is denied."""
    if host.startswith("["):
        address = _parsed(host[1:-1])
        return (
            address if isinstance(address, IPv6Address) else Denied("bad_host", "no IPv6 address")
        )
    if _NUMERIC_LABEL.fullmatch(host.rstrip(".").rpartition(".")[2]):
        try:
            return IPv4Address(host)
        except AddressValueError:
            return Denied("numeric_host", f"{host[:80]} is no IPv4 address in its usual spelling")
    return None


def _name_denied(host: str, policy: Policy, *, opened: bool) -> Denied | None:
    if host.endswith("."):
        return Denied("trailing_dot", "a host name without a dot at its end")
    labels = host.split(".")
    if len(host) > _HOST_CHARACTERS_MAX or not all(_LABEL.fullmatch(label) for label in labels):
        return Denied("bad_host", "a host name of letters, digits and hyphens (IDN as xn--)")
    if host in policy.own_names:
        return Denied("own_address", f"{host} is this machine")
    inside = len(labels) == 1 or any(f".{host}".endswith(f".{end}") for end in _LOCAL_SUFFIXES)
    # With an allow-list entry for this way out, the addresses decide at the call.
    if inside and not opened:
        return Denied("local_name", f"{host} names something inside; allow its network and port")
    return None


def _way_denied(scheme: str, port: int, policy: Policy) -> Denied | None:
    if policy.opens(scheme, port):
        return None
    if scheme != "https":
        return Denied("scheme", "plain http needs an allow-list entry (http://NETWORK:PORT)")
    return None if port in policy.ports else Denied("port", f"port {port} is not allowed")


def _judged(target: Target, address: Address, policy: Policy) -> Denied | None:
    """Judge one address of `target`: ours never, allow-listed yes, then the table."""
    for one in (address, *embedded(address)):
        if policy.own_addresses & {(one, target.port), (one, None)}:
            return Denied("own_address", f"{address} is where we listen")
    if any(entry.covers(target.scheme, address, target.port) for entry in policy.allowed):
        return None
    if target.scheme != "https":
        return Denied("scheme", f"plain http to {address} needs an allow-list entry")
    reason = denial(address)
    if reason is not None:
        return Denied("address", f"{target.host}: {address} is not public: {reason}")
    if target.port not in policy.ports:
        return Denied("port", f"port {target.port} is not allowed")
    return None


def _parsed(text: str) -> Address | None:
    """Read an address without a zone (fe80::1%eth0): a zone names an interface of ours."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None
