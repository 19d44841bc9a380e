"""A running server for every test of a module, or one of its own for a test that breaks it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.installation import Installation
from tests.support.job_api import JobApi


@pytest.fixture(scope="module")
def jobs() -> Iterator[JobApi]:
    """Run the provider's job API, scripted by the tests."""
    with JobApi() as api:
        yield api


@pytest.fixture
def install(tmp_path: Path, jobs: JobApi) -> Iterator[Callable[[], Installation]]:
    """Make installations of the product that end with the test."""
    made: list[Installation] = []

    def make() -> Installation:
        made.append(Installation(tmp_path / f"installation-{len(made)}", provider_port=jobs.port))
        return made[-1]

    yield make
    for installation in made:
        installation.close()
