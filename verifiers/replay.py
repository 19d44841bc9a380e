"""The event key, and how long it must be remembered.

A key is built from what the signature covers, because anything else is the replayer's to choose:

- `id`: the id is signed (in the content, or within a signed body). The key is its raw text.
- `digest`: no signed id, or none that can be used. SHA-256 over the signed content, field by
  field with lengths; a timestamp that the provider re-stamps on retries is left out.
- `weak`: the signature covers no body. Unsigned id and body digest; the event may only make a
  read due.
"""

import hashlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from verifiers.request import RawRequest

if TYPE_CHECKING:
    from verifiers.preset import Preset

DAY_S = 86_400

# Without a signed timestamp a capture stays valid for ever; this is longer than anything retries.
TIMELESS_MEMORY_S = 400 * DAY_S

# Clocks of several machines differ a little.
MARGIN_S = 60

_ID_CHARACTERS_MAX = 255


class ReplayMemoryError(Exception):
    """The configured memory is shorter than replay protection needs."""


class EventKey(NamedTuple):
    """What deduplication compares, within project, mode and source. `str()` is unambiguous."""

    kind: Literal["id", "digest", "weak"]
    text: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.text}"


def is_usable_id(text: str) -> bool:
    """Whether an id can be stored and shown as it is: 1 to 255 printable ASCII, no space."""
    return (
        0 < len(text) <= _ID_CHARACTERS_MAX
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def content_digest(request: RawRequest) -> bytes:
    """Return the SHA-256 of the body: the same event key with another one is a conflict."""
    return hashlib.sha256(request.body).digest()


def digest_of(*named: tuple[bytes, bytes]) -> str:
    """Hash named values with their lengths, so that no two lists of values read alike."""
    state = hashlib.sha256()
    for name, value in named:
        state.update(b"%b %d\n" % (name, len(value)))
        state.update(value)
    return state.hexdigest()


def memory_s(preset: "Preset") -> int:
    """Return for how many seconds an event key must be remembered, at least.

    The window of a signed timestamp is open on both sides, so a capture lives as long as both
    together; and a provider's own retry must still be seen as a duplicate.
    """
    rule = preset.timestamp
    if rule is None or not rule.judged or not preset.timestamp_signed:
        return max(TIMELESS_MEMORY_S, preset.retry_horizon_s)
    window_s = 2 * max(rule.past_s, rule.future_s) + MARGIN_S
    return max(window_s, preset.retry_horizon_s)


def check_memory(preset: "Preset", configured_s: int) -> None:
    """Raise ReplayMemoryError when `configured_s` is shorter than `memory_s(preset)`."""
    needed_s = memory_s(preset)
    if configured_s < needed_s:
        raise ReplayMemoryError(
            f"event keys of preset {preset.name!r} must be remembered for at least {needed_s} s,"
            f" not {configured_s} s: a replay would be taken for a new event"
        )
