"""What connections of one listener share."""

import pytest

from gateway.http.front import Front, peer_of
from gateway.http.limits import HttpLimits


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (None, ""),
        (("192.0.2.1", 1), "192.0.2.1"),
        (("::ffff:192.0.2.1", 1), "192.0.2.1"),
        (("2001:db8:1:2:3::4", 1), "2001:db8:1:2::/64"),
        (("2001:db8:1:2:ffff::9", 2), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 1), "fe80::/64"),
    ],
)
def test_peer(client: tuple[str, int] | None, expected: str) -> None:
    """An IPv4 address is a peer; in IPv6 the network that one customer gets is."""
    assert expected == peer_of(client)


def test_peer_is_forgotten_when_its_last_connection_ends() -> None:
    """The table of peers does not grow with the number of strangers."""
    front = Front(HttpLimits())

    for _ in range(2):
        front.enter("a")
    for _ in range(2):
        front.leave("a")

    assert dict(front._peers) == {}


def test_room_for_a_peer_ends_at_its_cap() -> None:
    """One peer cannot take the places of all."""
    front = Front(HttpLimits(connections_per_peer_max=1))

    assert [front.enter(peer) for peer in ("a", "a", "b")] == [True, False, True]
