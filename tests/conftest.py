"""Fixtures that every test may use."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, the loop that the product runs on."""
    return "asyncio"
