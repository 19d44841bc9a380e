"""A canned API on loopback, and a folder and environment without anything of ours."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import root
from tests.support.canned_api import CannedApi, Run, canned_api


@pytest.fixture
def api() -> Iterator[CannedApi]:
    """Serve what the test puts, and 404 for everything else."""
    with canned_api() as canned:
        yield canned


@pytest.fixture(autouse=True)
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, without variables of ours."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("VOUCHBACK_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def run() -> Run:
    """Run a command line; the result has exit code, stdout and stderr."""

    def invoke(*words: str) -> Result:
        return CliRunner().invoke(root, words)

    return invoke


@pytest.fixture
def ask(run: Run, api: CannedApi, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line against the canned API."""
    monkeypatch.setenv("VOUCHBACK_URL", api.url)
    monkeypatch.setenv("VOUCHBACK_TOKEN", "vbk_canned")
    return run
