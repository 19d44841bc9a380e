"""`send`: genuine requests and their wrong twins, for every preset there is."""

import base64
import json
from pathlib import Path

import pytest

from gateway.cli.errors import CommandError
from gateway.cli.send import find
from gateway.cli.twins import PARTS, Twin, Wanted, build, reason_of
from gateway.config import Config, Settings
from gateway.source import Source, build_sources
from tests.support.canned_api import CannedApi, Run
from verifiers.preset import load_preset

NOW = 1_796_000_000
#: Presets whose signatures stand in headers alone, one for each kind of twin.
TWINNED = ("github", "shopify", "slack", "standard-webhooks", "stripe", "svix", "timestamp-body")
RAW = bytes(range(32))
#: The same key in each form that a provider may show it in.
FORMS = {"utf8": "a secret of forty characters, or so, at all", "hex": RAW.hex()}
FORMS["base64"] = base64.b64encode(RAW).decode()


def source_of(preset: str, **more: object) -> Source:
    """Return a source with one key and a job id in its body."""
    form = load_preset(preset).secrets[0]
    Path("key").write_text(form.prefix + FORMS[form.form])
    section = {
        "preset": preset,
        "keys": [{"id": "k1", "secret": "file:key"}],
        "profile": "demo",
        "job_id": "body:/data/object/id",
        **more,
    }
    table = {"sources": {"acme": section}, "profiles": {"demo": {}}}
    settings = Settings.model_validate(table)
    return build_sources(Config(settings, None, Path().absolute()))["acme"]


def wanted(**fields: object) -> Wanted:
    """Return what an ordinary `send` wants."""
    plain = {"event_id": "evt_1", "event_type": "t.done", "body": None, "job_id": None}
    return Wanted(**{**plain, "signed_at": NOW, **fields})  # type: ignore[arg-type]


def agrees(source: Source, twin: Twin) -> bool:
    """Tell whether our own verification judges a twin as it says it should be judged."""
    return (reason_of(source, twin.request, NOW) is None) is twin.acceptable


@pytest.mark.parametrize("preset", TWINNED)
def test_an_honest_request_is_accepted(preset: str) -> None:
    """What is sent without a twin's options is genuine, for every preset."""
    source = source_of(preset)
    twin = build(source, wanted(job_id="job_1"), NOW)

    assert twin.acceptable
    assert agrees(source, twin)
    assert json.loads(twin.request.body)["data"]["object"]["id"] == "job_1"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("preset", TWINNED)
def test_a_tampered_request_is_judged_by_what_is_signed(preset: str, part: str) -> None:
    """A change of anything signed is refused; of anything unsigned it is said that nobody sees."""
    source = source_of(preset)
    honest = build(source, wanted(), NOW).request
    sent = {"ts": source.preset.timestamp, "id": source.preset.event_id}
    if not sent.get(part, True):
        with pytest.raises(CommandError, match=f"{preset} sends no"):
            build(source, wanted(), NOW, part)
        return
    twin = build(source, wanted(), NOW, part)

    assert twin.request != honest
    assert agrees(source, twin), twin.why


@pytest.mark.parametrize("preset", TWINNED)
def test_a_replay_is_refused_where_time_is_signed(preset: str) -> None:
    """Ten minutes are too old for every preset that signs its time, two are not."""
    source = source_of(preset)
    old = build(source, wanted(signed_at=NOW - 600), NOW)
    recent = build(source, wanted(signed_at=NOW - 120), NOW)

    assert agrees(source, old)
    assert agrees(source, recent)
    assert recent.acceptable
    assert old.acceptable is not source.preset.timestamp_signed


def test_a_given_body_is_sent_as_it_is() -> None:
    """Not a byte of a user's body changes."""
    body = b'{ "a" :1}\n'

    assert build(source_of("stripe"), wanted(body=body), NOW).request.body == body


def test_the_job_may_stand_in_a_header() -> None:
    """Where the source looks into a header, the job is named there."""
    source = source_of("github", job_id="header:x-job")

    assert (b"x-job", b"job_1") in build(source, wanted(job_id="job_1"), NOW).request.headers


@pytest.mark.parametrize("body", [b"[]", b"nonsense", b"[" * 100_000])
def test_a_job_needs_an_object(body: bytes) -> None:
    """A job id cannot be put into a body that is no JSON object."""
    with pytest.raises(CommandError, match="JSON object"):
        build(source_of("stripe"), wanted(body=body, job_id="job_1"), NOW)


def test_an_unknown_source_is_not_found() -> None:
    """A mistyped source ends with 3 and the nearest one."""
    with pytest.raises(CommandError, match="did you mean acme") as caught:
        find({"acme": source_of("stripe")}, "acne")

    assert caught.value.exit_code == 3


CONFIG = """
[sources.acme]
preset = "stripe"
keys = [{ id = "k1", secret = "file:key" }]
"""


@pytest.fixture
def configured() -> None:
    """Write a configuration with one source."""
    Path("key").write_text(FORMS["utf8"])
    Path("vouchback.toml").write_text(CONFIG)


@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ("", 200, 0),
        ("", 401, 1),
        ("", 503, 1),
        ("--tamper body", 401, 0),
        ("--tamper body", 200, 1),
        ("--replay 10m", 401, 0),
        ("--replay 10m", 404, 1),
    ],
)
def test_the_exit_code_says_whether_the_answer_was_right(
    run: Run, api: CannedApi, options: str, status: int, code: int
) -> None:
    """0 means: 2xx for the genuine, 401 for the forged; anything else is 1."""
    api.put("POST /in/acme", {}, status)

    assert run("send", "acme", "--to", api.url, *options.split()).exit_code == code


@pytest.mark.usefixtures("configured")
def test_again_sends_the_same_bytes_twice(run: Run, api: CannedApi) -> None:
    """The second request is the first, byte for byte, so that it is a duplicate."""
    api.put("POST /in/acme", {})
    run("send", "acme", "t.done", "--again", "--to", api.url)
    first, second = api.asked

    assert first == second


@pytest.mark.usefixtures("configured")
def test_an_age_needs_its_unit(run: Run) -> None:
    """A bare number is a usage error, not seconds or minutes by guess."""
    assert run("send", "acme", "--replay", "10").exit_code == 2
