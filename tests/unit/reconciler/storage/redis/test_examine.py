"""What an examination says that no server can be brought to show."""

import pytest

from reconciler.storage.finding import Level
from reconciler.storage.redis.examine import clock


@pytest.mark.parametrize(
    ("skew_ms", "expected"),
    [
        (0, Level.OK),
        (-499, Level.OK),
        (500, Level.WARNING),
        (-4_999, Level.WARNING),
        (5_000, Level.FAILED),
        (-60_000, Level.FAILED),
    ],
)
def test_clock(skew_ms: int, expected: Level) -> None:
    """Clocks that differ are told before they make deadlines and leases differ."""
    assert clock(skew_ms).level is expected
