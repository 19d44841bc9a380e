"""Sources: compiled once, every mistake an operator can make found before anything listens."""

from pathlib import Path

import pytest

from gateway.source import Sources, build_sources
from reconciler.config import ConfigError
from tests.support.edge import configured

KEY = "keys = [{ id = 'k1', secret = 'file:acme.key' }]"


def mistake(folder: Path, text: str) -> str:
    """Return what is said of a wrong source, the folder's path as `F`."""
    config = configured(folder, text)
    with pytest.raises(ConfigError) as raised:
        build_sources(config)
    return str(raised.value).replace(str(folder), "F")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        (f"{KEY}", "give either preset or scheme"),
        (f"preset = 'github'\nscheme = {{}}\n{KEY}", "give either preset or scheme"),
        (f"preset = 'gihub'\n{KEY}", "github"),
        ("preset = 'github'", "no key"),
        (
            "preset = 'github'\nkeys = [{ id = 'k', secret = 'env:NOT_SET' }]",
            "keys.k: secret env:NOT_SET",
        ),
        (
            "preset = 'github'\nkeys = [{ id = 'k', secret = 'file:/no' }]",
            "keys.k: secret file:/no",
        ),
        (
            "preset = 'github'\nkeys = [{ id = 'k', secret = 'file:acme.key', not_after = 2026-01-01 }]",
            "keys.k: write the instant with its offset",
        ),
        (
            "preset = 'github'\nkeys = [{ id = 'k', secret = 'file:acme.key', not_after = 5 }]",
            "keys.k: write the instant with its offset",
        ),
        (
            f"preset = 'github'\nmemory_days = 1\n{KEY}",
            "must be remembered",
        ),
        (f"preset = 'github'\n{KEY}\njob_id = 'body:/id'", "need a profile"),
        (f"preset = 'github'\n{KEY}\nprofile = 'acm'", "no [profiles.acm] (did you mean acme?)"),
        (f"preset = 'github'\n{KEY}\nprofile = 'acme'\nmode = 'test'", "is default/live"),
        (f"preset = 'github'\n{KEY}\nprofile = 'acme'\njob_id = 'id'", "sources.a.job_id: 'id'"),
        (
            f"preset = 'github'\n{KEY}\nprofile = 'acme'\njob_id = 'signature:t'",
            "header or the body",
        ),
    ],
)
def test_a_mistake_names_file_source_and_key(tmp_path: Path, text: str, part: str) -> None:
    """Each message begins with the file and the source, and says what is wrong."""
    said = mistake(tmp_path, f"[sources.a]\n{text}\n[profiles.acme]\nuses = 'demo'\n")
    assert said.startswith("F/vouchback.toml: sources.a")
    assert part in said


def test_every_wrong_source_is_named_at_once(tmp_path: Path) -> None:
    """Two wrong sources are two messages."""
    said = mistake(tmp_path, "[sources.a]\npreset = 'github'\n[sources.b]\npreset = 'no'\n")
    assert [line.split(":")[1].strip() for line in said.splitlines()] == ["sources.a", "sources.b"]


def test_two_sources_have_no_key_in_common(tmp_path: Path) -> None:
    """SC-04: with one key for both, a capture from one would be genuine at the other."""
    said = mistake(
        tmp_path, f"[sources.a]\npreset = 'github'\n{KEY}\n[sources.b]\npreset = 'github'\n{KEY}\n"
    )
    assert "sources a and b share a key" in said


def test_a_key_that_does_not_fit_is_not_shown(tmp_path: Path) -> None:
    """A secret of another form stops the start, and stays a secret."""
    (tmp_path / "bad.key").write_text("whsec_!!S3CRET!!")
    text = "[sources.a]\npreset = 'standard-webhooks'\nkeys = [{{ id = 'k', secret = 'file:{}' }}]"
    said = mistake(tmp_path, text.format(tmp_path / "bad.key"))
    assert "'k'" in said
    assert "S3CRET" not in said


def test_a_source_is_found_by_its_exact_path(tmp_path: Path) -> None:
    """A path is compared byte for byte: no decoding, no case, no slash more or less."""
    sources = Sources(build_sources(configured(tmp_path)))
    assert sources.named("acme") is sources.at(b"/in/acme")
    assert [source.name for source in sources.all()] == ["acme", "plain"]
    for path in (b"/in/acme/", b"/in/Acme", b"/in/%61cme", b"in/acme", b"/in/acme?", b""):
        assert sources.at(path) is None


def test_no_repr_holds_a_key(tmp_path: Path) -> None:
    """A source that is printed in anger shows no key."""
    config = configured(tmp_path)
    secret = (tmp_path / "acme.key").read_text()
    assert secret.removeprefix("whsec_") not in repr(build_sources(config))
    assert secret not in repr(build_sources(config))


def test_a_sender_that_signs_nothing_must_be_wanted(tmp_path: Path) -> None:
    """A source that anybody can post to is somebody's decision, never an accident."""
    said = mistake(tmp_path, "[sources.a]\npreset = 'mollie-classic'\n")
    assert "accept_unverified = true" in said
    config = configured(
        tmp_path, "[sources.a]\npreset = 'mollie-classic'\naccept_unverified = true\n"
    )
    assert build_sources(config)["a"].preset.unsigned


@pytest.mark.parametrize("place", ["signature:t", "claim:/sub", "item:/id", "raw:body"])
def test_a_job_is_named_where_anybody_can_see_it(tmp_path: Path, place: str) -> None:
    """Places that only a preset understands name no job."""
    text = f"[sources.a]\npreset = 'github'\n{KEY}\nprofile = 'acme'\njob_id = '{place}'\n"
    assert place in mistake(tmp_path, f"{text}[profiles.acme]\nuses = 'demo'\n")
