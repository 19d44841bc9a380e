"""Waiting for what must come true, instead of sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T | None], what: str, within_s: float = 15.0) -> T:
    """Return the first true value of `look`; `AssertionError` when there is none in time."""
    end = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        time.sleep(0.02)
