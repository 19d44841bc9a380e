"""Fixtures that every test may use."""

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and nothing about the product.
settings.register_profile("vouchback", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("vouchback")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio, the loop that the product runs on."""
    return "asyncio"
