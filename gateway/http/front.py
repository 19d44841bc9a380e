"""What the connections of one listener share: limits, counts, and whether we are stopping."""

import ipaddress
from collections import Counter

from uvicorn.server import ServerState

from gateway.http.limits import HttpLimits
from gateway.http.refusal import Refusal


class Front(ServerState):
    """The state of one listener; `refusals` counts what was refused, by slug."""

    def __init__(self, limits: HttpLimits) -> None:
        super().__init__()
        self.limits = limits
        self.stopping = False
        self.refusals: Counter[str] = Counter()
        self._peers: Counter[str] = Counter()

    def enter(self, peer: str) -> bool:
        """Count a connection of this peer; False when there is no room for it."""
        self._peers[peer] += 1
        return (
            len(self.connections) <= self.limits.connections_max
            and self._peers[peer] <= self.limits.connections_per_peer_max
        )

    def leave(self, peer: str) -> None:
        """Count a connection out, and forget a peer without connections."""
        self._peers[peer] -= 1
        if not self._peers[peer]:
            del self._peers[peer]

    def count(self, refusal: Refusal) -> None:
        """Count a refusal under its slug."""
        self.refusals[refusal.slug] += 1


def peer_of(client: tuple[str, int] | None) -> str:
    """Return what counts as one peer: an IPv4 address, or the /64 that an IPv6 host is given."""
    if client is None:
        return ""
    host = client[0]
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host.partition("%")[0])
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, 64), strict=False))
