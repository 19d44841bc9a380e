"""Secrets by reference, and sections whose mistakes say how to mend them."""

from pathlib import Path

import pytest

from reconciler.config import (
    ConfigError,
    EgressSection,
    ProfileSection,
    StorageSection,
    WorkerSection,
    check_secret_reference,
    resolve_secret,
    suggest,
    validate,
)

SECRET = "whsec_" + "S3CRET" * 5


def test_a_variable_gives_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """`env:NAME` is the variable, exactly."""
    monkeypatch.setenv("SOME_SECRET", " x y\n")
    assert resolve_secret("env:SOME_SECRET") == " x y\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [("s", "s"), ("s\n", "s"), ("s\n\n", "s\n"), ("s\r\n", "s"), ("ß", "ß")],
)
def test_a_file_gives_its_text(tmp_path: Path, content: str, expected: str) -> None:
    """`file:PATH` is the text without the one line break that editors add."""
    file = tmp_path / "secret"
    file.write_bytes(content.encode())
    assert resolve_secret(f"file:{file}") == expected


def test_a_credential_is_a_file_that_systemd_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cred:NAME` is found in the unit's credentials, and nowhere else."""
    (tmp_path / "stripe").write_text(SECRET)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert resolve_secret("cred:stripe") == SECRET


@pytest.mark.parametrize(
    "reference",
    [
        *("env:NOT_SET", "env:EMPTY", "file:/no/such/file", "file:/", "cred:x", "cred:../x"),
        *("cred:..", "file:{tmp}/empty", "file:{tmp}/binary", "file:a\0b", "env:a\0b"),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_mistake(
    reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No value, an empty one, an unreadable one: the message names the reference."""
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "nowhere"))
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    named = reference.replace("{tmp}", str(tmp_path))
    with pytest.raises(ConfigError) as raised:
        resolve_secret(named)
    assert named in str(raised.value)


@pytest.mark.parametrize("text", [SECRET, "", "env:", "ENV:X", "vault:x", f"x env:{SECRET}"])
def test_a_secret_where_a_reference_belongs_is_not_repeated(text: str) -> None:
    """The message asks for a reference and does not hold what was written."""
    for refuse in (check_secret_reference, resolve_secret):
        with pytest.raises((ValueError, ConfigError)) as raised:
            refuse(text)
        assert "env:NAME" in str(raised.value)
        assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("section", "table", "message"),
    [
        (WorkerSection, {"concurency": 3}, "unknown key concurency (did you mean concurrency?)"),
        (WorkerSection, {"xyz": 3}, "unknown key xyz"),
        (WorkerSection, {"concurrency": "3"}, "concurrency: Input should be a valid integer"),
        (WorkerSection, {"concurrency": True}, "concurrency: Input should be a valid integer"),
        (
            WorkerSection,
            {"concurrency": 0},
            "concurrency: Input should be greater than or equal to 1",
        ),
        (WorkerSection, {"idle_s": float("inf")}, "idle_s: Input should be a finite number"),
        (WorkerSection, {"idle_s": float("nan")}, "idle_s: Input should be a finite number"),
        (EgressSection, {"allow": "x"}, "allow: Input should be a valid list"),
        (
            StorageSection,
            {"url": "mysql:x"},
            "url: String should match pattern '^(sqlite:|rediss?://|unix:/).+$'",
        ),
        (ProfileSection, {"mode": "prod"}, "mode: String should match pattern '^(live|test)$'"),
        (
            ProfileSection,
            {"result_s": 10**12},
            "result_s: Input should be less than or equal to 315360000",
        ),
        (
            ProfileSection,
            {"secret": SECRET},
            "secret: must be a reference, env:NAME, file:PATH or cred:NAME, never the secret itself",
        ),
    ],
)
def test_a_mistake_names_its_place(section: type, table: dict[str, object], message: str) -> None:
    """Place, key and, where there is one, the nearest known key; never the value."""
    with pytest.raises(ConfigError) as raised:
        validate(section, table, "f.toml")
    assert str(raised.value) == f"f.toml: {message}"


def test_every_mistake_is_named_at_once() -> None:
    """Two mistakes are two lines, so that one start shows both."""
    with pytest.raises(ConfigError) as raised:
        validate(WorkerSection, {"concurrency": 0, "idle": 3}, "f.toml")
    assert len(str(raised.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("url", "expected"),
    [("sqlite:x/l.db", "/base/x/l.db"), ("sqlite:/abs/l.db", "/abs/l.db")],
)
def test_a_relative_ledger_starts_at_the_configurations_folder(url: str, expected: str) -> None:
    """A path means the same from whatever folder the program is started."""
    assert str(StorageSection(url=url).path(Path("/base"))) == expected


def test_a_suggestion_is_near_or_none() -> None:
    """Only a word that may have been meant is suggested."""
    assert suggest("concurency", ["concurrency", "idle_s"]) == " (did you mean concurrency?)"
    assert suggest("zzz", ["concurrency"]) == ""


def test_a_relative_secret_file_starts_in_the_configurations_folder(tmp_path: Path) -> None:
    """What a configuration names does not depend on where the process was started."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/stripe").write_text("0123456789abcdef\n")

    assert resolve_secret("file:keys/stripe", tmp_path) == "0123456789abcdef"
