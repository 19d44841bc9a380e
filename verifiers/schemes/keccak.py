"""Keccak-256 as Ethereum uses it: the padding before SHA-3 was standardised.

hashlib's SHA3-256 pads otherwise and cannot be told not to. This one is plain Python, some
milliseconds a kilobyte, so content beyond `BYTES_MAX` is not hashed at all: it would hold the loop.
Source: the Keccak reference, version 3.0, sections 1.2 and 1.3.
"""

BYTES_MAX = 64 * 1024

_RATE = 136
_MASK = (1 << 64) - 1
_ROTATIONS = (
    (0, 36, 3, 41, 18),
    (1, 44, 10, 45, 2),
    (62, 6, 43, 15, 61),
    (28, 55, 25, 21, 56),
    (27, 20, 39, 8, 14),
)


def keccak_256(content: bytes) -> bytes:
    """Return the 32 bytes; none at all, which no signature equals, for content that is too long."""
    if len(content) > BYTES_MAX:
        return b""
    padding = bytearray(_RATE - len(content) % _RATE)
    padding[0] |= 0x01
    padding[-1] |= 0x80
    padded = content + bytes(padding)
    lanes = [0] * 25
    for start in range(0, len(padded), _RATE):
        for lane in range(_RATE // 8):
            at = start + 8 * lane
            lanes[lane] ^= int.from_bytes(padded[at : at + 8], "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _round_constants() -> list[int]:
    """Return the constants of iota, from the LFSR that defines them."""
    constants, state = [], 1
    for _ in range(24):
        constant = 0
        for power in range(7):
            if state & 1:
                constant |= 1 << ((1 << power) - 1)
            state = (state << 1) ^ (0x171 if state & 0x80 else 0)
        constants.append(constant)
    return constants


_CONSTANTS = _round_constants()
# Where lane x, y goes, and by how many bits it is turned on the way (rho and pi).
_MOVES = [
    (x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), _ROTATIONS[x][y]) for x in range(5) for y in range(5)
]


def _turned(lane: int, bits: int) -> int:
    return ((lane << bits) | (lane >> (64 - bits))) & _MASK


def _permuted(lanes: list[int]) -> list[int]:
    for constant in _CONSTANTS:
        sums = [
            lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
            for x in range(5)
        ]
        mixed = [sums[x - 1] ^ _turned(sums[(x + 1) % 5], 1) for x in range(5)]
        moved = [0] * 25
        for source, target, bits in _MOVES:
            moved[target] = _turned(lanes[source] ^ mixed[source % 5], bits)
        lanes = [
            moved[at] ^ (~moved[at - at % 5 + (at + 1) % 5] & moved[at - at % 5 + (at + 2) % 5])
            for at in range(25)
        ]
        lanes[0] ^= constant
    return lanes
