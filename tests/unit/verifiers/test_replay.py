"""The event key and its memory."""

from dataclasses import replace

import pytest

from tests.support.vectors import BODY, NOW, request, ring, signed
from verifiers.preset import load_preset, preset_names
from verifiers.replay import (
    DAY_S,
    EventKey,
    ReplayMemoryError,
    check_memory,
    content_digest,
    is_usable_id,
    memory_s,
)
from verifiers.verdict import Verified
from verifiers.verify import verify


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("standard-webhooks", 259_200),
        ("stripe", 259_200),
        ("slack", 90_000),
        ("github", 400 * DAY_S),
    ],
)
def test_memory_covers_window_and_retries(name: str, expected: int) -> None:
    """F23, F25: as long as retries last, and 400 days where nothing signed says when."""
    assert memory_s(load_preset(name)) == expected


def test_memory_covers_both_sides_of_the_window() -> None:
    """F23: stamped 300 s ahead, a capture lives 600 s; the key is remembered longer than that."""
    assert memory_s(replace(load_preset("slack"), retry_horizon_s=0)) > 600


@pytest.mark.parametrize("name", preset_names())
def test_a_shorter_memory_is_refused(name: str) -> None:
    """F23: a configured memory below what is needed stops the start; exactly enough does not."""
    preset = load_preset(name)

    check_memory(preset, memory_s(preset))
    with pytest.raises(ReplayMemoryError, match="at least"):
        check_memory(preset, memory_s(preset) - 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("msg_1", True),
        ("a.b:c/d", True),
        ("x" * 255, True),
        ("x" * 256, False),
        ("", False),
        ("a b", False),
        ("a\x00", False),
        ("a\n", False),
        ("\x7f", False),
        ("é", False),
        ("e\u0301", False),
        ("\ud800", False),
        ("\u202e", False),
    ],
)
def test_ids_are_printable_ascii(text: str, expected: bool) -> None:
    """SC-29: an id can be stored, compared and shown as it is, or it is not used."""
    assert is_usable_id(text) is expected


def test_a_restamped_retry_is_the_same_event() -> None:
    """The digest of a Slack form leaves the timestamp out: a retry is signed anew."""
    preset = load_preset("slack")
    body = b"payload=%7B%7D"
    found = [
        verify(signed("slack", body, at=at), preset, ring(preset), at) for at in (NOW, NOW + 60)
    ]

    assert len({v.event_key for v in found if isinstance(v, Verified)}) == 1


def test_a_kept_timestamp_is_part_of_the_event() -> None:
    """Where retries keep their timestamp, another one is another event."""
    preset = load_preset("slack")
    assert preset.timestamp is not None
    preset = replace(preset, timestamp=replace(preset.timestamp, retry_restamps=False))
    body = b"payload=%7B%7D"
    found = [
        verify(signed("slack", body, at=at), preset, ring(preset), at) for at in (NOW, NOW + 60)
    ]

    assert len({v.event_key for v in found if isinstance(v, Verified)}) == 2


def test_kinds_of_keys_do_not_meet() -> None:
    """An id that looks like a digest is not that digest."""
    assert str(EventKey("id", "ab")) != str(EventKey("digest", "ab"))
    assert EventKey("id", "ab") != EventKey("weak", "ab")


def test_the_content_digest_is_that_of_the_body() -> None:
    """F57, SC-26: the same id with another body is seen as other content."""
    assert content_digest(request([], BODY)) != content_digest(request([], BODY + b" "))
    assert len(content_digest(request([], b""))) == 32
