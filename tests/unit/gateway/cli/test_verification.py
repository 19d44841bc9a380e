"""`vouchback verify`, `sign` and `vectors`."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from gateway.cli.captured import parse_headers
from gateway.cli.verification import sign, vectors, verify
from tests.support.vectors import BODY, FOLDER, NOW, OTHER_SECRET, SECRET

AT = ("--at", str(NOW))


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder with a body and two secrets."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GOOD", SECRET)
    monkeypatch.setenv("WRONG", OTHER_SECRET)
    Path("body").write_bytes(BODY)


def run(command: click.Command, *words: str, given: bytes | None = None) -> Result:
    """Run a command and return what it printed and its exit code."""
    return CliRunner().invoke(command, list(words), input=given)


def signed(*more: str, preset: str = "stripe") -> str:
    """Return the headers of a signed body, as `sign` prints them."""
    result = run(sign, "--preset", preset, "--secret", "env:GOOD", "--body", "body", *AT, *more)
    assert result.exit_code == 0, result.output
    return result.stdout


def check(*more: str, secret: str = "env:GOOD", given: bytes | None = None) -> Result:
    """Run `verify` on the files of this test for Stripe."""
    headers = () if "--headers" in more else ("--headers", "headers")
    words = ("--preset", "stripe", "--secret", secret, *headers, "--body", "body", *more)
    return run(verify, *words, given=given)


def test_a_signed_request_is_accepted() -> None:
    """What `sign` prints, `verify` accepts with exit code 0, and it names every check."""
    Path("headers").write_text(signed())
    result = check(*AT)

    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("accepted\n  ok      signature_present\n")
    assert "event_key   id:evt_1\n" in result.stdout


def test_a_wrong_secret_is_refused_with_exit_code_1() -> None:
    """A refusal shows reason and checks on stdout and ends with 1."""
    Path("headers").write_text(signed())
    result = check(*AT, secret="env:WRONG")

    assert result.exit_code == 1
    assert result.stdout.startswith("refused: signature_mismatch\n")
    assert "  FAILED  signature_matches\n  -       key_valid\n" in result.stdout


def test_explain_says_what_would_mend_it() -> None:
    """--explain adds what was seen and the fix."""
    Path("headers").write_text(signed())
    Path("body").write_bytes(BODY + b"\n")
    result = check(*AT, "--explain")

    assert result.exit_code == 1
    assert "seen: the signature is right for the body without the white space" in result.stdout
    assert "  fix: verify the bytes as they came over the wire" in result.stdout


def test_the_clock_is_now_by_default() -> None:
    """Without --at the request is judged today."""
    Path("headers").write_text(signed())

    assert "refused: timestamp_too_old" in check().stdout


def test_json_is_for_programs() -> None:
    """--format json prints one document with verdict, evidence and checks."""
    Path("headers").write_text(signed())
    report = json.loads(check(*AT, "--format", "json", "--key-id", "main").stdout)

    assert (report["verdict"], report["key_id"], report["event_key"]) == (
        "accepted",
        "main",
        "id:evt_1",
    )
    assert report["checks"][0] == {"check": "signature_present", "state": "passed"}


def test_headers_may_be_json_or_stdin() -> None:
    """JSON pairs are read too, and `-` is stdin."""
    pairs = signed("--format", "json").encode()

    assert check("--headers", "-", *AT, given=pairs).exit_code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--preset", "strpe"),
        ("--secret", "env:NOT_SET"),
        ("--secret", SECRET),
        ("--headers", "absent"),
        ("--headers", "-", "--body", "-"),
        ("--at", "today"),
        ("--key-id", "a", "--key-id", "b"),
    ],
)
def test_wrong_usage_ends_with_2(words: tuple[str, ...]) -> None:
    """Mistakes of the caller are told on stderr, without the secret, and end with 2."""
    Path("headers").write_text(signed())
    base = {"--preset": "stripe", "--secret": "env:GOOD", "--headers": "headers", "--body": "body"}
    for option in words[::2]:
        base.pop(option, None)
    result = run(verify, *(word for pair in base.items() for word in pair), *words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert SECRET not in result.stderr


def test_an_empty_secret_is_no_key() -> None:
    """F08: a secret that is only its prefix ends with 2 and is never used."""
    Path("headers").write_text(signed())
    Path("secret").write_text("whsec_\n")
    result = check(secret="file:secret")

    assert result.exit_code == 2
    assert "nothing after its prefix" in result.stderr


def test_what_a_stranger_wrote_is_shown_inert() -> None:
    """SC-77: a control character in a payload does not reach the terminal."""
    Path("body").write_bytes(b'{"id":"evt_1","type":"\\u001b[2J"}')
    Path("headers").write_text(signed())
    result = check(*AT)

    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_sign_prints_a_curl_command() -> None:
    """--curl prints a command line that a shell reads as one request with our headers."""
    words = shlex.split(signed("--curl", "http://127.0.0.1:8080/in/x?a=1&b=2"))

    assert words[:2] == ["curl", "-sS"]
    assert words[2] == "-H"
    assert words[3].startswith("stripe-signature: t=1780000000,v1=")
    assert words[-3:] == ["--data-binary", "@body", "http://127.0.0.1:8080/in/x?a=1&b=2"]


def test_sign_carries_id_and_type() -> None:
    """--id and --type stand in the headers that a preset has for them."""
    printed = signed("--id", "d-1", "--type", "push", preset="github").splitlines()

    assert printed[:2] == ["x-github-delivery: d-1", "x-github-event: push"]


def test_sign_refuses_what_would_not_be_accepted() -> None:
    """An id with the separator in it is wrong usage."""
    words = ("--preset", "svix", "--secret", "env:GOOD", "--body", "body", "--id", "a.b")

    assert run(sign, *words).exit_code == 2


def test_vectors_can_count_by_provider() -> None:
    """One line a file, for whoever wants to see what is proved."""
    result = run(vectors, "--by-provider", str(FOLDER / "github.json"))

    assert result.stdout.splitlines() == ["github: 21 passed, 0 failed", "21 passed, 0 failed"]


def test_vectors_counts_on_its_last_line() -> None:
    """All vectors of the project pass; the last line says how many."""
    result = run(vectors, str(FOLDER))

    assert result.exit_code == 0
    passed, failed = result.stdout.splitlines()[-1].replace(",", "").split()[::2]
    assert int(passed) >= 153
    assert failed == "0"


def test_a_failing_vector_is_named() -> None:
    """A wrong verdict and an unreadable file are a line each, and the exit code is 1."""
    document = json.loads((FOLDER / "github.json").read_text("utf-8"))
    document["vectors"] = [{**document["vectors"][0], "expect": "reject"}]
    Path("wrong.json").write_text(json.dumps(document))
    Path("broken.json").write_text("{")
    result = run(vectors, "wrong.json", "broken.json")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[0] == (
        "wrong.json: published-hello-world: accepted, must be refused"
    )
    assert result.stdout.splitlines()[1].startswith("broken.json: not a vector file")
    assert result.stdout.splitlines()[-1] == "0 passed, 2 failed"


def test_no_vector_at_all_is_no_success() -> None:
    """An empty folder does not pass."""
    Path("empty").mkdir()
    result = run(vectors, "empty")

    assert (result.exit_code, result.stdout) == (2, "0 passed, 0 failed\n")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"A: 1\nB:2\r\na:  3 \n", ((b"a", b"1"), (b"b", b"2"), (b"a", b" 3 "))),
        (b"POST /in/x HTTP/1.1\r\nHost: h\r\n\r\n", ((b"host", b"h"),)),
        (b'[["X-A", "caf\\u00e9"], ["x-a", "2"]]', ((b"x-a", b"caf\xe9"), (b"x-a", b"2"))),
        (b"", ()),
    ],
)
def test_headers_keep_order_repeats_and_bytes(
    raw: bytes, expected: tuple[tuple[bytes, bytes], ...]
) -> None:
    """Nothing is merged or trimmed beyond the one space of the notation."""
    assert expected == parse_headers(raw)


@pytest.mark.parametrize(
    "raw", [b"nonsense", b": value", b"a b\n", b"name : v", b"[1]", b'[["a"]]', b"[["]
)
def test_what_is_no_header_is_wrong_usage(raw: bytes) -> None:
    """A line that is not a header is an error, not a header that is never found."""
    with pytest.raises(click.UsageError):
        parse_headers(raw)


def test_the_commands_are_quick_to_import() -> None:
    """Verification offline loads neither server, store, HTTP client nor asymmetric cryptography."""
    code = (
        "import sys, gateway.cli.verification\n"
        "print([m for m in ('uvicorn', 'starlette', 'httpx', 'apsw', 'pydantic', 'cryptography')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "[]"
