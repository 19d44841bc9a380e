"""Which addresses an outbound call may reach, IPv4 ones hidden in IPv6 ones included.

`ipaddress.is_private` and `is_global` are not used: CPython 3.11 calls 64:ff9b::a9fe:a9fe, fec0::1
and 224.0.0.1 global, and 100.64.0.1 not private. The table is explicit; each line names where it
comes from. IPv6 is the other way round: only 2000::/3 is assigned as global unicast (RFC 4291 and
the IANA IPv6 address space registry), so everything else is refused as a whole and the table takes
away from 2000::/3.
"""

from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# "v4" is the IANA IPv4 Special-Purpose Address Registry, "v6" the IPv6 one.
_DENIED = {
    "0.0.0.0/8": "v4, RFC 791: this host; the kernel takes 0.0.0.0 for loopback",
    "10.0.0.0/8": "v4, RFC 1918: private",
    "100.64.0.0/10": "v4, RFC 6598: carrier NAT; cloud metadata at 100.100.100.200",
    "127.0.0.0/8": "v4, RFC 1122: loopback",
    "168.63.129.16/32": "Azure's documentation: the host agent behind a public address",
    "169.254.0.0/16": "v4, RFC 3927: link local; cloud metadata at .169.254 and .170.2",
    "172.16.0.0/12": "v4, RFC 1918: private",
    "192.0.0.0/24": "v4, RFC 6890: protocol assignments; cloud metadata at 192.0.0.192",
    "192.0.2.0/24": "v4, RFC 5737: documentation",
    "192.31.196.0/24": "v4, RFC 7535: AS112",
    "192.52.193.0/24": "v4, RFC 7450: multicast tunnels",
    "192.88.99.0/24": "v4, RFC 7526: 6to4 relays, withdrawn",
    "192.168.0.0/16": "v4, RFC 1918: private",
    "192.175.48.0/24": "v4, RFC 7534: AS112",
    "198.18.0.0/15": "v4, RFC 2544: benchmarks",
    "198.51.100.0/24": "v4, RFC 5737: documentation",
    "203.0.113.0/24": "v4, RFC 5737: documentation",
    "224.0.0.0/4": "IANA IPv4 multicast registry, RFC 5771",
    "240.0.0.0/4": "v4, RFC 1112: reserved; broadcast at the end",
    "::/3": "outside 2000::/3: loopback, v4-mapped, local NAT64 64:ff9b:1::/48, 100::/64",
    "2001::/23": "v6, RFC 2928: protocol assignments: Teredo, benchmarks, ORCHID",
    "2001:db8::/32": "v6, RFC 3849: documentation",
    "2002::/16": "v6, RFC 3056: 6to4",
    "2620:4f:8000::/48": "v6, RFC 7534: AS112",
    "3fff::/20": "v6, RFC 9637: documentation",
    "4000::/2": "outside 2000::/3: unassigned; segment routing 5f00::/16 (RFC 9602)",
    "8000::/1": "outside 2000::/3: unique local, link local, site local (RFC 3879), multicast",
}
_TABLE: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(text), source) for text, source in _DENIED.items()
)

# The one IPv6 form with an IPv4 address inside that an honest resolver hands out: DNS64 (RFC 6147)
# on networks without IPv4. It leads to the embedded address and to nothing else, so that one
# decides.
_NAT64 = IPv6Network("64:ff9b::/96")


def denial(address: Address) -> str | None:
    """Say why `address` must never be called (network, source); `None` when it is public.

    Addresses inside the address are judged first, then the address itself.
    """
    for inner in embedded(address):
        reason = _looked_up(inner)
        if reason is not None:
            return f"{inner} inside {address}: {reason}"
    if address in _NAT64:
        return None
    return _looked_up(address)


def embedded(address: Address) -> tuple[IPv4Address, ...]:
    """Take out the IPv4 addresses that an IPv6 address carries, in every scheme there is."""
    if isinstance(address, IPv4Address):
        return ()
    number = int(address)
    low = number & 0xFFFF_FFFF
    if number >> 32 in {0, 0xFFFF, 0xFFFF_0000}:
        # v4-compatible and v4-mapped (RFC 4291, 2.5.5), v4-translated (RFC 2765). :: and ::1 fall
        # in.
        return (IPv4Address(low),)
    if address in _NAT64:  # RFC 6052
        return (IPv4Address(low),)
    if number >> 112 == 0x2002:  # noqa: PLR2004 - 6to4, RFC 3056: bits 16 to 48
        return (IPv4Address(number >> 80 & 0xFFFF_FFFF),)
    if number >> 96 == 0x2001_0000:  # noqa: PLR2004 - Teredo, RFC 4380: server, and inverted client
        return (IPv4Address(number >> 64 & 0xFFFF_FFFF), IPv4Address(low ^ 0xFFFF_FFFF))
    if number >> 32 & 0xFDFF_FFFF == 0x5EFE:  # noqa: PLR2004 - ISATAP, RFC 5214: any prefix
        return (IPv4Address(low),)
    return ()


def _looked_up(address: Address) -> str | None:
    for network, source in _TABLE:
        if address.version == network.version and address in network:
            return f"{network} ({source})"
    return None
