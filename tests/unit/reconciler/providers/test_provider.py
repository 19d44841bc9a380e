"""Providers as an installation uses them."""

from pathlib import Path

import pytest

from reconciler.config import ConfigError, ProfileSection
from reconciler.domain.pace import Pace
from reconciler.providers.egress import Policy
from reconciler.providers.provider import build_providers

WITHOUT = """\
name = "acme"
docs = "https://acme.example/docs"
base_url = "https://api.acme.example"
[status]
url = "{base_url}/jobs/{job_id}"
state = "/state"
[states]
succeeded = ["done"]
[deadlines]
result_s = 3600
"""
WITH = WITHOUT + "[rate]\nper_s = 2\nburst = 4\n"


def _pace(folder: Path, text: str, **settings: object) -> Pace | None:
    (folder / "acme.toml").write_text(text)
    section = ProfileSection.model_validate({"file": "acme.toml", **settings})
    return build_providers({"acme": section}, Policy(), folder)["acme"].profile.pace


@pytest.mark.parametrize(
    ("text", "settings", "expected"),
    [
        (WITHOUT, {}, None),
        (WITH, {}, Pace(500_000, 4)),
        (WITH, {"rate_per_s": 10}, Pace(100_000, 4)),
        (WITH, {"rate_burst": 9}, Pace(500_000, 9)),
        (WITHOUT, {"rate_per_s": 0.5}, Pace(2_000_000, 1)),
        (WITHOUT, {"rate_per_s": 0.5, "rate_burst": 2}, Pace(2_000_000, 2)),
    ],
)
def test_rate(
    tmp_path: Path, text: str, settings: dict[str, object], expected: Pace | None
) -> None:
    """What the installation says of the rate goes before what the profile says."""
    assert _pace(tmp_path, text, **settings) == expected


def test_a_burst_without_a_rate(tmp_path: Path) -> None:
    """A burst alone limits nothing, so it is a mistake."""
    with pytest.raises(ConfigError, match=r"profiles\.acme: rate_burst: .* add rate_per_s"):
        _pace(tmp_path, WITHOUT, rate_burst=2)
