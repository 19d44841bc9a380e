"""Retry-After and backoff over all inputs."""

from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.domain.retry import backoff_ms, retry_after_ms

_HEADER = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60),
    st.from_regex(r"\A[0-9]{1,20}\Z"),
    st.from_regex(
        r"\A(Mon|Sunday),? [0-9]{1,2}[ -](Jan|Feb)[ -][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\Z"
    ),
    st.from_regex(r"\ASun (Feb|Dec) [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}\Z"),
)


@given(st.lists(_HEADER, max_size=3), st.integers(0, 253_402_300_799_999), st.integers(0, 10**9))
@example(["Sun Feb 29 23:59:60 0001"], 0, 1)
def test_retry_after_is_total_and_clamped(values: list[bytes | str], now: int, cap_ms: int) -> None:
    """Any headers at any time give nothing or a wait within [0, cap]."""
    wait = retry_after_ms(values, now, cap_ms=cap_ms)

    assert wait is None or 0 <= wait <= cap_ms


@given(
    attempt=st.integers(-(10**20), 10**20),
    base_ms=st.integers(-10, 10**7),
    cap_ms=st.integers(1, 10**9),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_backoff_is_bounded(attempt: int, base_ms: int, cap_ms: int, jitter: float) -> None:
    """A wait is at least one millisecond and at most the cap."""
    assert 1 <= backoff_ms(attempt, base_ms=base_ms, cap_ms=cap_ms, jitter=jitter) <= cap_ms


@given(attempt=st.integers(0, 60), jitter=st.floats(0, 1, exclude_max=True))
def test_backoff_never_shrinks(attempt: int, jitter: float) -> None:
    """For equal jitter a later attempt waits no shorter than an earlier one."""
    earlier = backoff_ms(attempt, base_ms=500, cap_ms=300_000, jitter=jitter)
    later = backoff_ms(attempt + 1, base_ms=500, cap_ms=300_000, jitter=jitter)

    assert earlier <= later
