"""The configuration: every mistake names its place, and no message repeats a secret."""

from operator import attrgetter
from pathlib import Path

import pytest

from gateway.config import Settings, load_config, split_listen
from reconciler.config import ConfigError

SECRET = "whsec_" + "S3CRET" * 5


def written(folder: Path, text: str) -> Path:
    """Write a configuration."""
    file = folder / "vouchback.toml"
    file.write_text(text)
    return file


def mistake(folder: Path, text: str) -> str:
    """Return what is said of a wrong configuration, its file's path as `F`."""
    file = written(folder, text)
    with pytest.raises(ConfigError) as raised:
        load_config(file)
    return str(raised.value).replace(str(file), "F")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[publik]", "F: unknown key publik (did you mean public?)"),
        ("[public]\nlisen = 'a:1'", "F: unknown key public.lisen (did you mean listen?)"),
        (
            "[sources.a]\nkeys = [{ id = 'k', secert = 'env:X' }]",
            "F: unknown key sources.a.keys.0.secert (did you mean secret?)",
        ),
        (
            "[sources.Bad_Name]\npreset = 'github'",
            "F: sources.Bad_Name: a name is lower-case letters, digits and hyphens",
        ),
        ("worker = 3", "F: worker: must be a table, [worker]"),
        (
            "[public]\nlisten = 'a:65536'",
            "F: public.listen: must be HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080",
        ),
        (
            "[limits]\nheader_timeout_s = inf",
            "F: limits.header_timeout_s: Input should be a finite number",
        ),
        (
            "[sources.a]\nmemory_days = 99999999",
            "F: sources.a.memory_days: Input should be less than or equal to 3650",
        ),
    ],
)
def test_a_mistake_names_file_key_and_what_may_be_meant(
    tmp_path: Path, text: str, message: str
) -> None:
    """Whoever reads the message knows what to change, and where."""
    assert message in mistake(tmp_path, text).splitlines()


@pytest.mark.parametrize(
    "text",
    [
        f"[sources.a]\nkeys = [{{ id = 'k', secret = '{SECRET}' }}]",
        f"[sources.a]\nkeys = [{{ id = 'k', secret = ['{SECRET}'] }}]",
        f"[sources.a]\nkeys = [{{ id = '{SECRET}', secret = 'env:X' }}]",
        f"[sources.a]\nkeys = '{SECRET}'",
        f"[sources.a]\nkeys = ['{SECRET}']",
        f"[sources.a]\nsecret = '{SECRET}'",
        f"[profiles.a]\nsecret = '{SECRET}'",
        f"[profiles.a]\nmode = '{SECRET}'",
        f"[log]\nlevel = '{SECRET}'",
        f"[public]\nlisten = '{SECRET}'",
        f"worker = '{SECRET}'",
    ],
)
def test_a_secret_in_the_wrong_place_is_not_repeated(tmp_path: Path, text: str) -> None:
    """However a secret got into the file, no message carries it on."""
    assert "S3CRET" not in mistake(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    ["[", "a = 1\na = 2", "x = " + "1" * 5_000, "x = " + "[" * 5_000, "x = '\udcff'"],
)
def test_what_is_no_toml_is_one_error(tmp_path: Path, text: str) -> None:
    """Any text at all is a configuration or a `ConfigError` that names the file."""
    file = tmp_path / "vouchback.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError) as raised:
        load_config(file)
    assert str(file) in str(raised.value)


def test_the_defaults_are_a_configuration(tmp_path: Path) -> None:
    """An empty file is enough to start."""
    config = load_config(written(tmp_path, ""))
    assert config.settings == Settings()
    assert config.ledger() == tmp_path / ".vouchback/ledger.db"
    assert config.data_folder() == tmp_path / ".vouchback"


def test_a_file_that_was_named_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped path is an error, never a start with the defaults."""
    missing = tmp_path / "missing.toml"
    for path, variable in ((missing, ""), (None, str(missing))):
        monkeypatch.setenv("VOUCHBACK_CONFIG", variable)
        with pytest.raises(ConfigError, match="there is no such file"):
            load_config(path)


# ---------------------------------------------------------------- variables


@pytest.mark.parametrize(
    ("name", "text", "place", "expected"),
    [
        ("VOUCHBACK_WORKER__CONCURRENCY", "3", "worker.concurrency", 3),
        ("VOUCHBACK_WORKER__IDLE_S", "0.5", "worker.idle_s", 0.5),
        ("VOUCHBACK_LOG__LEVEL", "debug", "log.level", "debug"),
        ("VOUCHBACK_LOG__LEVEL", '"debug"', "log.level", "debug"),
        ("VOUCHBACK_PUBLIC__LISTEN", "[::1]:80", "public.listen", "[::1]:80"),
        ("VOUCHBACK_STORAGE__URL", "sqlite:/x", "storage.url", "sqlite:/x"),
        ("VOUCHBACK_EGRESS__ALLOW", '["10.0.0.0/8:443"]', "egress.allow", ["10.0.0.0/8:443"]),
    ],
)
def test_a_variable_goes_before_the_file(
    tmp_path: Path, name: str, text: str, place: str, expected: object
) -> None:
    """`VOUCHBACK_SECTION__KEY` sets one value; the section's others stay the file's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(name, text)
        config = load_config(written(tmp_path, "[worker]\nlease_ttl_s = 77\nconcurrency = 9"))
    assert attrgetter(place)(config.settings) == expected
    assert config.settings.worker.lease_ttl_s == 77


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "VOUCHBACK_WORKER__CONCURENCY",
            "environment: unknown variable VOUCHBACK_WORKER__CONCURENCY (did you mean VOUCHBACK_WORKER__CONCURRENCY?)",
        ),
        (
            "VOUCHBACK_CONFIGG",
            "environment: unknown variable VOUCHBACK_CONFIGG (did you mean VOUCHBACK_CONFIG?)",
        ),
        (
            "VOUCHBACK_WORKER__CONCURRENCY",
            "environment: VOUCHBACK_WORKER__CONCURRENCY: worker.concurrency: Input should be a valid integer",
        ),
    ],
)
def test_a_wrong_variable_is_named_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str
) -> None:
    """A mistake in the environment is not looked for in the file, and its value is not shown."""
    monkeypatch.setenv(name, SECRET)
    assert message == mistake(tmp_path, "")


def test_a_variable_does_not_hide_a_wrong_section(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no table stays the mistake that it is."""
    monkeypatch.setenv("VOUCHBACK_WORKER__CONCURRENCY", "3")
    assert mistake(tmp_path, "worker = 3") == "F: worker: must be a table, [worker]"


def test_variables_of_others_are_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the prefix is ours; the command line's own variables are known."""
    for name in ("VOUCHBACK_URL", "VOUCHBACK_TOKEN", "VOUCHBACKX", "vouchback_x"):
        monkeypatch.setenv(name, "x")
    assert load_config(written(tmp_path, "")).settings == Settings()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), ("host:65535", ("host", 65535))],
)
def test_a_listen_setting_is_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    """IPv6 hosts lose their brackets."""
    assert split_listen(text) == expected
