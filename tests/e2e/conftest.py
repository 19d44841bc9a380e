"""A running server for every test of a module, or one of its own for a test that breaks it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.engines import storage_of
from tests.support.installation import Installation
from tests.support.job_api import JobApi


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> str:
    """Name the ledger's engine: SQLite, unless a test is marked `on_both_engines`."""
    name: str = getattr(request, "param", "sqlite")
    return name


@pytest.fixture(scope="module")
def jobs(engine: str) -> Iterator[JobApi]:
    """Run the provider's job API, scripted by the tests."""
    assert engine  # a provider for each, so that none remembers the other's reads
    with JobApi() as api:
        yield api


@pytest.fixture
def install(tmp_path: Path, jobs: JobApi, engine: str) -> Iterator[Callable[[], Installation]]:
    """Make installations of the product that end with the test."""
    made: list[Installation] = []

    def make() -> Installation:
        folder = tmp_path / f"installation-{len(made)}"
        storage = storage_of(engine, folder)
        made.append(Installation(folder, provider_port=jobs.port, storage=storage))
        return made[-1]

    yield make
    for installation in made:
        installation.close()
