"""Names: of the things we make, and which names from outside we take.

Ours are a prefix that says the kind, then 26 characters that sort by time: Crockford's base 32 of
48 bits of milliseconds and 80 random bits (the shape of a ULID), in lower case. Time and randomness
are parameters, so a simulation makes the same names twice.
"""

from collections.abc import Callable

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RANDOM_BYTES = 10
#: The longest name from outside.
NAME_CHARACTERS_MAX = 512

#: Makes a fresh id of a kind, `new_id("evt")`; composition roots bind clock and randomness to it.
IdMaker = Callable[[str], str]


def make_id(prefix: str, now: int, random: bytes) -> str:
    """Return `prefix_` and 26 characters for `now` (milliseconds) and 10 random bytes."""
    assert len(random) == RANDOM_BYTES
    number = ((now & (1 << 48) - 1) << 80) | int.from_bytes(random)
    digits = [_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5)]
    return f"{prefix}_{''.join(digits)}"


def is_name(text: str) -> bool:
    """Tell whether a text from outside can be a name: a job id, a client reference, a label.

    It has 1 to 512 printable characters. Not printable are line breaks, terminal codes and the lone
    surrogates that come in through JSON escapes: no store, header or log takes them.
    """
    return 0 < len(text) <= NAME_CHARACTERS_MAX and text.isprintable()
