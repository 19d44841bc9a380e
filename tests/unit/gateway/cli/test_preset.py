"""`vouchback preset`: lists, a scheme to start from, and all mistakes of a file."""

import json
from pathlib import Path

import pytest

from tests.support.canned_api import Run
from tests.support.vectors import SECRET
from verifiers.preset import preset_names


def test_the_list_counts_what_is_proven(run: Run) -> None:
    """Every preset is listed; proven are sdk, published and reference, not documented."""
    told = json.loads(run("preset", "list", "--format", "json").stdout)
    counts = told["counts"]

    assert [item["provider"] for item in told["items"]] == list(preset_names())
    assert counts["total"] == len(told["items"])
    assert counts["proven"] == counts["total"] - counts["documented"]
    stripe = next(item for item in told["items"] if item["provider"] == "stripe")
    assert (stripe["kind"], stripe["proof"]) == ("hmac", "sdk")


def test_people_get_a_table_and_the_sum(run: Run) -> None:
    """The table goes to stdout, the counts to stderr."""
    result = run("preset", "list")

    assert result.stdout.startswith("PROVIDER")
    assert f"{len(preset_names())} presets, " in result.stderr


def test_a_preset_says_what_it_does_not_cover(run: Run) -> None:
    """Mailgun signs no body, and Meta's handshake needs a setting."""
    mailgun = json.loads(run("preset", "show", "mailgun", "--format", "json").stdout)
    meta = run("preset", "show", "meta").stdout

    assert "body" not in mailgun["covers"]
    assert "settings         verify_token\n" in meta
    assert run("preset", "show", "meta", "--source").stdout.startswith("# Facebook")


def test_an_unknown_preset_is_answered_with_the_nearest(run: Run) -> None:
    """A misspelt name is a configuration error with a suggestion."""
    result = run("preset", "show", "stirpe")

    assert result.exit_code == 78
    assert "did you mean 'stripe'" in result.stderr


def test_a_new_scheme_is_right_as_it_stands(run: Run) -> None:
    """What `new` prints passes `check`."""
    Path("acme.toml").write_text(run("preset", "new", "acme").stdout)
    result = run("preset", "check", "acme.toml")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "acme.toml: right; the signature covers body, time, event id" in result.stderr
    assert run("preset", "new", "A B").exit_code == 2


def test_all_mistakes_are_named_at_once(run: Run) -> None:
    """File, line, key and the nearest right word, for every table that is wrong."""
    text = run("preset", "new", "acme").stdout
    wrong = (("hex", "hexx"), ("tolerance_s", "tolerence_s"), ("body:/type", "bdy:/type"))
    for right, other in (*wrong, ("status = 200", "status = 500")):
        text = text.replace(f'"{right}"', f'"{other}"').replace(f"{right} =", f"{other} =")
        text = text.replace("status = 200", other) if right.startswith("status") else text
    Path("acme.toml").write_text(text)
    result = run("preset", "check", "acme.toml")

    assert result.exit_code == 78
    lines = [line for line in result.stderr.splitlines() if "acme.toml:" in line]
    found = [line.split(": ")[2] for line in lines]
    assert sorted(found) == ["ack.status", "event.type", "signature.encoding",
                             "timestamp.tolerence_s"]  # fmt: skip
    assert "'hexx' is unknown; did you mean 'hex'?" in result.stderr


@pytest.mark.parametrize(("secret", "code"), [("GOOD", 0), ("WRONG", 1)])
def test_a_captured_request_is_checked_too(
    run: Run, monkeypatch: pytest.MonkeyPatch, secret: str, code: int
) -> None:
    """With a secret, `check` verifies a raw HTTP request against the file."""
    monkeypatch.setenv("GOOD", SECRET)
    monkeypatch.setenv("WRONG", SECRET.lower())
    Path("own.toml").write_text(run("preset", "show", "stripe", "--source").stdout)
    Path("body").write_bytes(b'{"id":"evt_1"}')
    signed = ("--secret", "env:GOOD", "--body", "body")
    headers = run("sign", "--preset", "stripe", *signed).stdout
    Path("raw").write_text(
        f'POST /in/own HTTP/1.1\nHost: a.example\n{headers}Content-Length: 14\n\n{{"id":"evt_1"}}\n'
    )
    result = run("preset", "check", "own.toml", "--secret", f"env:{secret}", "--request", "raw")

    assert result.exit_code == code, result.output
    assert result.stdout.startswith("accepted" if code == 0 else "refused: signature_mismatch")


def test_a_file_that_is_no_toml_is_named(run: Run) -> None:
    """A syntax error has file and line."""
    Path("acme.toml").write_text("name = \n")
    result = run("preset", "check", "acme.toml")

    assert result.exit_code == 78
    assert "acme.toml: " in result.stderr
    assert "line 1" in result.stderr
