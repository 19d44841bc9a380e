"""Which server, which token, which configuration."""

import json
from pathlib import Path

import pytest

from gateway.cli.errors import CommandError
from gateway.cli.invocation import Invocation

DEV = '[storage]\nurl = "sqlite:dev/ledger.db"\n[internal]\nlisten = "127.0.0.1:18081"\n'


@pytest.fixture
def dev_folder() -> Path:
    """Return a folder as `dev` leaves it."""
    Path(".vouchback/dev").mkdir(parents=True)
    Path(".vouchback/dev.toml").write_text(DEV)
    Path(".vouchback/dev/admin.token").write_text("vbk_first\n")
    return Path(".vouchback")


def token_of(invocation: Invocation) -> str | None:
    """Return the token that the API would be called with."""
    return invocation.api()._token


@pytest.mark.usefixtures("dev_folder")
def test_the_option_wins_over_variable_and_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--url` and `--token` beat the environment, which beats the configuration."""
    Path("t").write_text("vbk_option\n")
    plain = Invocation()
    monkeypatch.setenv("VOUCHBACK_URL", "http://127.0.0.1:2")
    monkeypatch.setenv("VOUCHBACK_TOKEN", "vbk_variable")
    given = Invocation(url="http://127.0.0.1:1/", token="file:t")

    assert (given.internal_url(), token_of(given)) == ("http://127.0.0.1:1", "vbk_option")
    assert (plain.internal_url(), token_of(plain)) == ("http://127.0.0.1:2", "vbk_variable")
    monkeypatch.delenv("VOUCHBACK_URL")
    monkeypatch.delenv("VOUCHBACK_TOKEN")
    assert (plain.internal_url(), token_of(plain)) == ("http://127.0.0.1:18081", "vbk_first")


def test_the_variable_may_hold_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """`$VOUCHBACK_TOKEN` may name a file instead of holding the token."""
    Path("t").write_text("vbk_file\n")
    monkeypatch.setenv("VOUCHBACK_TOKEN", "file:t")

    assert token_of(Invocation()) == "vbk_file"


def test_a_token_on_the_command_line_is_refused() -> None:
    """The token itself is never taken as an argument, and never printed back."""
    with pytest.raises(CommandError) as caught:
        Invocation(url="http://127.0.0.1:1", token="vbk_secret").api()

    assert caught.value.exit_code == 2
    assert "vbk_secret" not in caught.value.message


@pytest.mark.usefixtures("dev_folder")
def test_a_configuration_of_ones_own_wins_over_the_one_of_dev() -> None:
    """`dev.toml` is used only where there is no other configuration."""
    Path("vouchback.toml").write_text('[internal]\nlisten = "127.0.0.1:18082"\n')

    assert Invocation().internal_url() == "http://127.0.0.1:18082"


def test_a_running_dev_is_found_where_it_really_listens(dev_folder: Path) -> None:
    """When `dev` had to take other ports, other commands in the folder follow."""
    told = {"public": "http://127.0.0.1:3", "internal": "http://127.0.0.1:4"}
    (dev_folder / "dev/addresses.json").write_text(json.dumps(told))

    assert Invocation().internal_url() == "http://127.0.0.1:4"


def test_an_url_that_is_none_is_a_usage_error() -> None:
    """A host without its scheme is refused with an example."""
    with pytest.raises(CommandError) as caught:
        Invocation(url="127.0.0.1:8081").internal_url()

    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999", "http://[::1", "http://", "http://\u2603"]
)
def test_half_an_url_is_a_usage_error(url: str) -> None:
    """A port that is none, or half a host, is the caller's mistake and not a bug of ours."""
    with pytest.raises(CommandError) as caught:
        Invocation(url=url).internal_url()

    assert caught.value.exit_code == 2


@pytest.mark.parametrize("token", ["vbk_a\nb", "vbk_\u2603"])
def test_a_token_that_no_header_takes_is_refused(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends with 5 and is never printed back."""
    monkeypatch.setenv("VOUCHBACK_TOKEN", token)
    with pytest.raises(CommandError) as caught:
        Invocation(url="http://127.0.0.1:1").api()

    assert caught.value.exit_code == 5
    assert "vbk_" not in caught.value.message
