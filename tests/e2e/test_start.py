"""Starting and configuring: what is wrong stops the start, what is reloaded works at once."""

import re
import signal
from collections.abc import Callable

import pytest

from tests.support.installation import Installation
from tests.support.job_api import JobApi
from tests.support.signing import Sender
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

Install = Callable[[], Installation]


# ---------------------------------------------------------------- starting


def test_a_second_process_on_the_same_ledger_is_refused(install: Install) -> None:
    """It ends with exit code 78 and a sentence that says who is in the way and what to do."""
    gateway = install()
    gateway.source("hooks")
    gateway.start()
    second = gateway.run("serve")
    assert second.returncode == 78
    assert "in use by another process" in second.stderr
    assert "Traceback" not in second.stderr
    assert gateway.post(gateway.senders["hooks"].sign(b"{}").raw()).status == 200


def test_a_ledger_is_free_again_after_a_kill(install: Install) -> None:
    """No lock outlives its process: after kill -9 the next start works."""
    gateway = install()
    gateway.start()
    gateway.kill()
    gateway.start()
    assert gateway.stop() == 0


def test_a_taken_port_stops_the_start(install: Install) -> None:
    """The message names the setting; the exit code says configuration or environment."""
    first, second = install(), install()
    first.start()
    second.replace(
        '[public]\nlisten = "127.0.0.1:0"', f'[public]\nlisten = "127.0.0.1:{first.public}"'
    )
    second.write()
    ended = second.run("serve")
    assert ended.returncode not in {0, 1, 2}
    assert "public.listen" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (second.folder / "data").exists()


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('[sources.x]\npreset = "strype"\nkeys = []', ["sources.x", "stripe"]),
        ('[sources.x]\npreset = "stripe"\nkeys = []', ["sources.x"]),
        ('[sources.x]\npreset = "stripe"\nkeyz = []', ["keyz", "keys"]),
        ('[sources.x]\npreset = "stripe"\nkeys = [{ id = "k", secret = "whsec_inline" }]', ["secret"]),
        ('[sources.x]\npreset = "stripe"\nkeys = [{ id = "k", secret = "env:NOT_SET" }]', ["NOT_SET"]),
        ('[profiles.x]\nuses = "demo"\nbase_url = "http://169.254.169.254"', ["profiles.x"]),
        ('[profiles.x]\nuses = "demo"\nsecret = "env:HOME"\nbase_url = "http://10.0.0.1"', ["must not be called"]),
        ("[surces.x]", ["surces", "sources"]),
    ],
)  # fmt: skip
def test_a_wrong_configuration_stops_the_start(
    install: Install, section: str, words: list[str]
) -> None:
    """Exit code 78, a message with file, key and suggestion, no secret, and no ledger made."""
    gateway = install()
    gateway.section(section)
    gateway.write()
    ended = gateway.run("serve")
    assert ended.returncode == 78, ended.stderr
    assert [word for word in [str(gateway.config), *words] if word not in ended.stderr] == []
    assert "whsec_inline" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (gateway.folder / "data").exists()


def _no_parent(gateway: Installation) -> None:
    gateway.replace("sqlite:data/", "sqlite:not-there/data/")


def _file_in_the_way(gateway: Installation) -> None:
    (gateway.folder / "data").write_text("a file where a folder should be")


def _foreign_file(gateway: Installation) -> None:
    (gateway.folder / "data").mkdir()
    (gateway.folder / "data/ledger.db").write_bytes(b"no ledger at all " * 1_000)
    (gateway.folder / "data/ledger.db").chmod(0o600)


def _readable_by_others(gateway: Installation) -> None:
    gateway.start()
    assert gateway.stop() == 0
    (gateway.folder / "data/ledger.db").chmod(0o644)


@pytest.mark.parametrize(
    "prepare", [_no_parent, _file_in_the_way, _foreign_file, _readable_by_others]
)
def test_a_ledger_that_cannot_be_used_stops_the_start(
    install: Install, prepare: Callable[[Installation], None]
) -> None:
    """Exit code 78 and a sentence, no traceback, and nothing that was there is changed."""
    gateway = install()
    prepare(gateway)
    gateway.write()
    ledger = gateway.folder / "data/ledger.db"
    before = ledger.read_bytes() if ledger.exists() else None
    ended = gateway.run("serve")
    assert (ended.returncode, "Traceback" in ended.stderr) == (78, False)
    assert "vouchback: " in ended.stderr
    assert (ledger.read_bytes() if ledger.exists() else None) == before


def test_an_unknown_variable_stops_the_start(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt override is an error with a suggestion, never silently without effect."""
    gateway = install()
    gateway.write()
    environment = {**gateway.environment, "VOUCHBACK_LIMITS__BODY_BYTES_MAXX": "1"}
    monkeypatch.setattr(Installation, "environment", environment)
    ended = gateway.run("serve")
    assert ended.returncode == 78
    assert "VOUCHBACK_LIMITS__BODY_BYTES_MAX" in ended.stderr


# ---------------------------------------------------------------- reloading


def _accepted(gateway: Installation, sender: Sender) -> bool:
    return gateway.post(sender.sign(b'{"n": 1}').raw()).status == 200


def _by_api(gateway: Installation) -> None:
    assert gateway.api("POST", "/v1/config/reload").status == 200


def _by_signal(gateway: Installation) -> None:
    before = gateway.log.count('"event": "reloaded"')
    gateway.signal(signal.SIGHUP)
    until(lambda: gateway.log.count('"event": "reloaded"') > before, "the reload")


@pytest.mark.parametrize("reload", [_by_api, _by_signal])
def test_a_reload_adds_and_removes_sources(
    install: Install, reload: Callable[[Installation], None]
) -> None:
    """What the file says now counts with the next request, by command and by signal."""
    gateway = install()
    old = gateway.source("old")
    gateway.start()
    assert _accepted(gateway, old)
    gateway.replace("[sources.old]", "[sources.kept]")
    new = gateway.source("new")
    gateway.write()
    reload(gateway)
    assert _accepted(gateway, new)
    assert _accepted(gateway, Sender("kept", old.secret))
    assert gateway.post(old.sign(b"{}").raw()).status == 404
    assert [e["source"] for e in gateway.events("old")] == ["old"]


def test_a_bad_file_keeps_the_old_configuration(install: Install, jobs: JobApi) -> None:
    """A reload with any mistake changes nothing, and says what is wrong, by command and signal."""
    gateway = install()
    gateway.profile("jobs")
    hooks = gateway.source("hooks", "jobs")
    gateway.start()
    good = gateway.config.read_text()
    gateway.source("another")
    gateway.write()
    whole = gateway.config.read_text()
    for bad in (whole + "\n[sources.x]\npreset = 'strype'", whole + "\n[", whole + "\nx = 1"):
        gateway.config.write_text(bad)
        answer = gateway.api("POST", "/v1/config/reload")
        assert (answer.status, answer.json()["type"]) == (422, "/problems/invalid-configuration")
        refused = gateway.log.count('"event": "reload_refused"')
        gateway.signal(signal.SIGHUP)
        until(
            lambda n=refused: gateway.log.count('"event": "reload_refused"') > n,  # type: ignore[misc]
            "the refusal",
        )
        assert _accepted(gateway, hooks)
        assert gateway.post(gateway.senders["another"].sign(b"{}").raw()).status == 404
    gateway.config.write_text(good)
    _by_api(gateway)
    jobs.job("job_1", "succeeded")
    operation_id = gateway.register("jobs", remote_job_id="job_1")["operation_id"]
    assert gateway.ends(operation_id)["state"] == "succeeded"


def test_a_key_is_rotated_without_a_gap_or_a_restart(install: Install) -> None:
    """Old key, both keys, new key: each request names the key that verified it, none is lost."""
    gateway = install()
    old = gateway.source("hooks")
    new = Sender("hooks")
    entry = re.compile(r"\{ id = \"k1\".*\}")
    gateway.start()
    assert _accepted(gateway, old)
    assert not _accepted(gateway, new)
    reference = gateway.keep_secret("hooks-2", new.secret)
    text = gateway.config.read_text()
    found = entry.search(text)
    assert found is not None
    second = f'{{ id = "k2", secret = "{reference}" }}'
    gateway.config.write_text(text.replace(found[0], f"{found[0]}, {second}"))
    _by_api(gateway)
    assert _accepted(gateway, old)
    assert _accepted(gateway, new)
    gateway.config.write_text(text.replace(found[0], second))
    _by_api(gateway)
    assert not _accepted(gateway, old)
    assert _accepted(gateway, new)
    used = [event["key_id"] for event in gateway.events("hooks")]
    assert used == ["k2", "k2", "k1", "k1"]


def test_a_leaked_key_is_revoked_by_a_date_in_the_past(install: Install) -> None:
    """With `not_after` set to the past and a reload, the key is dead within the same second."""
    gateway = install()
    hooks = gateway.source("hooks")
    gateway.start()
    assert _accepted(gateway, hooks)
    text = gateway.config.read_text()
    gateway.config.write_text(
        text.replace('id = "k1",', 'id = "k1", not_after = 2020-01-01T00:00:00Z,')
    )
    gateway.api("POST", "/v1/config/reload")
    assert not _accepted(gateway, hooks)
    until(
        lambda: [r["reason"] for r in gateway.refusals("hooks")] == ["key_expired"],
        "the reviewer reads why",
    )
