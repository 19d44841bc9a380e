"""The limits of the HTTP front, in one place, each with its reason.

Every wait and every buffer of a connection has a figure here; nothing in `gateway.http` waits or
grows without one. The figures are plain data: tests shorten them, the configuration sets them.
"""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """What one listener grants to whoever connects. Times in seconds, sizes in bytes."""

    # Request line and fields together. nginx grants 4 x 8 KiB, Apache 8 KiB a line; signatures in
    # JWT or certificate form stay below 8 KiB.
    head_bytes_max: int = 32 * KIB
    # Providers send 8 to 25 fields, a chain of proxies adds a dozen. Apache's limit is 100 too.
    fields_max: int = 100
    # From the first byte of a head to its end, and from connecting to the first byte: a head fits
    # into one segment, so this is generous even for a phone in a tunnel.
    head_s: float = 10.0
    # Longer than the idle time of the proxies in front (nginx and AWS 60 s): the side that reuses
    # the connection must be the side that closes it, or a request is lost in the crossing.
    keep_alive_s: float = 75.0

    # The largest cap of any source; the route's own cap is smaller or equal and answers first.
    # GitHub documents 25 MB, the most of all providers.
    body_bytes_max: int = 25 * MIB
    # Chunk sizes, chunk extensions and trailers may cost this much, and beyond it one byte for each
    # byte of body. Chunks of 1 KiB cost 7 bytes each; a flood of extensions is all cost.
    framing_bytes_max: int = 64 * KIB
    # A body that is not complete after this long must have brought `body_bytes_per_s_min` in each
    # such stretch of time: a large upload over a slow line passes, a drip does not.
    body_stretch_s: float = 20.0
    body_bytes_per_s_min: int = KIB

    # Requests that wait behind an unanswered one on the same connection. Senders of webhooks do
    # not pipeline at all; each one that waits costs memory, and one segment can hold thousands.
    pipelined_max: int = 8
    # A peer that takes no byte of its answer for this long is gone.
    write_stall_s: float = 30.0
    # After a refusal we go on reading (and throw away) for this long, so that the answer is not
    # destroyed by the reset that closing on unread input causes (RFC 9112, 9.6).
    linger_s: float = 2.0

    # 1,000 slow connections must leave room for the honest ones; an idle connection costs about
    # 10 KB, and the limit of open files is raised to fit when the listeners start.
    connections_max: int = 2_000
    # One address (one /64 in IPv6). A proxy in front is one address as well: whoever serves behind
    # one that opens more sets this to `connections_max`.
    connections_per_peer_max: int = 1_500
