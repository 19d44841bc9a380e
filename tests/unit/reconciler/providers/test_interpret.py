"""What answers mean, hostile ones included: never an exception, never a guess."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.domain.observation import Meaning, Observation
from reconciler.providers.answer import Answer
from reconciler.providers.errors import EgressDeniedError, ProviderUnavailableError
from reconciler.providers.interpret import interpret, observation_of
from reconciler.providers.profile import Profile, load_profile

NOW = 784_111_777_000
DEMO = load_profile("demo")
GITHUB = load_profile("github")
STRIPE = load_profile("stripe")
JOB = {
    "id": "job_1",
    "status": "running",
    "reference": "ref-1",
    "updated_at": "1994-11-06T08:49:30.250Z",
}


def read(
    body: Any, *, profile: Profile = DEMO, status: int = 200, age_ms: int = 60_000, **answer: Any
) -> Observation:
    """Interpret an answer about job_1; a dict becomes JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return interpret(
        profile,
        Answer(status, body=raw, **answer),
        expected_job_id=None if profile is GITHUB else "job_1",
        expected_reference="ref-1",
        now=NOW,
        age_ms=age_ms,
    )


def meaning_of(body: Any, **more: Any) -> tuple[Meaning, str | None]:
    """Interpret, and return meaning and detail."""
    seen = read(body, **more)
    return seen.meaning, seen.detail


def test_a_whole_observation() -> None:
    """A good read holds the word, the id, both times, the digest, the request id and the address."""
    raw = json.dumps(JOB).encode()
    headers = ((b"x-REQUEST-id", b"req_9"),)

    seen = read(raw, headers=headers, address="93.184.216.34")

    assert seen == Observation(
        meaning=Meaning.RUNNING,
        fetched_at=NOW,
        remote_state="running",
        remote_job_id="job_1",
        provider_at=784_111_770_250,
        http_status=200,
        body_digest=hashlib.sha256(raw).hexdigest(),
        request_id="req_9",
        address="93.184.216.34",
    )


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("queued", Meaning.PENDING),
        ("running", Meaning.RUNNING),
        ("succeeded", Meaning.SUCCEEDED),
        ("failed", Meaning.FAILED),
        ("cancelled", Meaning.CANCELLED),
    ],
)
def test_listed_words(word: str, meaning: Meaning) -> None:
    """A word of the profile has the meaning that the profile gives it."""
    assert meaning_of(JOB | {"status": word}) == (meaning, None)


@pytest.mark.parametrize(
    "word", ["Succeeded", "SUCCEEDED", "succeeded.", "done", "completed", "pending"]
)
def test_unlisted_words_are_unreadable(word: str) -> None:
    """A word that the profile does not list is unreadable and kept verbatim, never pending."""
    seen = read(JOB | {"status": word})

    assert (seen.meaning, seen.detail, seen.remote_state) == (
        Meaning.UNREADABLE,
        "unknown_state",
        word,
    )


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (None, "no_state"),
        ("", "unknown_state"),
        (3, "state_not_text"),
        (True, "state_not_text"),
        (["running"], "state_not_text"),
        ({"a": 1}, "state_not_text"),
        ("running\x00", "state_not_text"),
        ("run\x1b[2Jning", "state_not_text"),
        ("\ud800", "state_not_text"),
    ],
)
def test_states_that_are_no_words(status: Any, detail: str) -> None:
    """A state that is null, empty or no text is unreadable, never pending for ever."""
    assert meaning_of(JOB | {"status": status}) == (Meaning.UNREADABLE, detail)


def test_long_words_are_cut() -> None:
    """A word of any length is unknown, and recorded with 200 characters."""
    assert read(JOB | {"status": "x" * 10_000}).remote_state == "x" * 200


def test_a_missing_state_is_unreadable() -> None:
    """An error body with status 200 shows no state."""
    assert meaning_of({"error": {"message": "try later"}}) == (Meaning.UNREADABLE, "no_state")


@pytest.mark.parametrize(
    ("status", "meaning", "detail"),
    [
        (400, Meaning.UNREADABLE, "http_400"),
        (401, Meaning.UNREADABLE, "http_401"),
        (403, Meaning.UNREADABLE, "http_403"),
        (404, Meaning.NOT_FOUND, None),
        (410, Meaning.UNREADABLE, "http_410"),
        (429, Meaning.THROTTLED, "http_429"),
        (500, Meaning.UNREADABLE, "http_500"),
        (502, Meaning.UNREADABLE, "http_502"),
        (503, Meaning.THROTTLED, "http_503"),
        (504, Meaning.UNREADABLE, "http_504"),
        (201, Meaning.UNREADABLE, "http_201"),
        (204, Meaning.UNREADABLE, "http_204"),
        (301, Meaning.UNREADABLE, "redirect"),
        (302, Meaning.UNREADABLE, "redirect"),
        (304, Meaning.UNREADABLE, "redirect"),
        (307, Meaning.UNREADABLE, "redirect"),
        (308, Meaning.UNREADABLE, "redirect"),
    ],
)
def test_status_codes_decide_first(status: int, meaning: Meaning, detail: str | None) -> None:
    """With any other status than an accepted one the body has no say, however good it looks."""
    seen = read(JOB | {"status": "succeeded"}, status=status)

    assert (seen.meaning, seen.detail, seen.http_status) == (meaning, detail, status)
    assert (seen.remote_state, seen.remote_job_id) == (None, None)


@pytest.mark.parametrize(
    ("age_ms", "detail"), [(0, "within_grace"), (4999, "within_grace"), (5000, None)]
)
def test_not_found_within_the_grace(age_ms: int, detail: str | None) -> None:
    """Just after the create, 404 is marked as the provider's own delay."""
    assert meaning_of(b"", status=404, age_ms=age_ms) == (Meaning.NOT_FOUND, detail)


@pytest.mark.parametrize(
    ("values", "not_before_at"),
    [
        ([b"120"], NOW + 120_000),
        ([b"Sun, 06 Nov 1994 08:50:07 GMT"], NOW + 30_000),
        ([b"0"], NOW),
        ([b"-1"], None),
        ([b"1.5"], None),
        ([b"10, 20"], None),
        ([b"0x10"], None),
        ([b"10", b"20"], None),
        ([b"9" * 4096], None),
        ([], None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after(status: int, values: list[bytes], not_before_at: int | None) -> None:
    """A throttled read carries the time the provider asked for, if it asked lawfully."""
    headers = tuple((b"Retry-After", value) for value in values)
    seen = read(b"", status=status, headers=headers)

    assert (seen.meaning, seen.not_before_at) == (Meaning.THROTTLED, not_before_at)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "empty_body"),
        (b" \r\n", "empty_body"),
        (b"<!DOCTYPE html><title>Log in</title>", "html"),
        (b"\n <html>", "html"),
        (b'{"id": "job_1", "status": "succ', "not_json"),
        (b'{"id": "job_1", "status": "succeeded"} trailing', "not_json"),
        (b'{"id":"job_1","status":"failed","status":"succeeded"}', "duplicate_key"),
        (b'{"id":"job_1","status":"succeeded","x":{"a":1,"a":1}}', "duplicate_key"),
        ('{"id":"job_1","status":"succeeded"}'.encode("utf-16"), "not_json"),
        ('{"id":"job_1","status":"succeeded"}'.encode("utf-16-le"), "not_json"),
        (b'\xef\xbb\xbf{"id":"job_1","status":"succeeded"}', "not_json"),
        (b'{"id":"job_1","status":"succeeded","x":"\xff"}', "not_json"),
        (b'{"id":"job_1","status":"succeeded","x":NaN}', "not_json"),
        (b'{"id":"job_1","status":"succeeded","x":-Infinity}', "not_json"),
        (b'{"id":"job_1","status":"succeeded","x":1e999}', "not_json"),
        (b'{"id":"job_1","status":"succeeded","x":' + b"9" * 5000 + b"}", "not_json"),
        (b"[" * 100_000 + b"]" * 100_000, "not_json"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "not_json"),
        (b'"succeeded"', "no_state"),
        (b"[]", "no_state"),
        (b"null", "no_state"),
        (b"17", "no_state"),
    ],
)
def test_bodies_that_are_no_status(body: bytes, detail: str) -> None:
    """HTML, bad, ambiguous or bombed JSON with status 200 is unreadable, each with its slug."""
    assert meaning_of(body) == (Meaning.UNREADABLE, detail)


@pytest.mark.parametrize(
    "fault", ["timeout", "too_large", "truncated", "reset", "content_encoding", "unframed"]
)
def test_body_faults(fault: str) -> None:
    """A body that the client could not have is unreadable, unless the status says enough."""
    assert meaning_of(b"", body_fault=fault) == (Meaning.UNREADABLE, fault)
    assert meaning_of(b"", body_fault=fault, status=404)[0] == Meaning.NOT_FOUND


@pytest.mark.parametrize(
    ("changes", "meaning", "detail"),
    [
        ({"id": "job_2", "status": "succeeded"}, Meaning.CONTRADICTION, "other_job_id"),
        ({"id": "JOB_1"}, Meaning.CONTRADICTION, "other_job_id"),
        ({"id": "job_2", "status": None}, Meaning.CONTRADICTION, "other_job_id"),
        ({"reference": "ref-2"}, Meaning.CONTRADICTION, "other_reference"),
        ({"reference": None}, Meaning.RUNNING, None),
        ({"id": None}, Meaning.UNREADABLE, "no_job_id"),
        ({"id": ""}, Meaning.UNREADABLE, "bad_job_id"),
        ({"id": ["job_1"]}, Meaning.UNREADABLE, "bad_job_id"),
        ({"id": True}, Meaning.UNREADABLE, "bad_job_id"),
        ({"id": 1.0}, Meaning.UNREADABLE, "bad_job_id"),
        ({"id": "job_1\n"}, Meaning.UNREADABLE, "bad_job_id"),
        ({"id": "x" * 513}, Meaning.UNREADABLE, "bad_job_id"),
    ],
)
def test_answers_about_another_job(
    changes: dict[str, Any], meaning: Meaning, detail: str | None
) -> None:
    """Another job id or reference is a contradiction whatever the state; none at all is unreadable."""
    assert meaning_of(JOB | changes) == (meaning, detail)


def test_numeric_ids_are_exact() -> None:
    """An id beyond 2**53 keeps every digit."""
    body = {"id": 2**63 + 1, "status": "queued"}

    assert read(body, profile=GITHUB).remote_job_id == "9223372036854775809"


@pytest.mark.parametrize(
    ("status", "conclusion", "expected"),
    [
        ("in_progress", None, (Meaning.RUNNING, None)),
        ("queued", "success", (Meaning.PENDING, None)),
        ("completed", "success", (Meaning.SUCCEEDED, None)),
        ("completed", "failure", (Meaning.FAILED, None)),
        ("completed", "timed_out", (Meaning.FAILED, None)),
        ("completed", "cancelled", (Meaning.CANCELLED, None)),
        ("completed", "action_required", (Meaning.PENDING, None)),
        ("completed", "brand_new", (Meaning.UNREADABLE, "unknown_state")),
        ("completed", None, (Meaning.UNREADABLE, "no_state")),
        ("success", None, (Meaning.UNREADABLE, "unknown_state")),
    ],
)
def test_states_of_two_words(
    status: str, conclusion: str | None, expected: tuple[Meaning, str | None]
) -> None:
    """Where one word says that it is over and another says how, both together are the state."""
    body = {"id": 5, "status": status, "conclusion": conclusion}

    assert meaning_of(body, profile=GITHUB) == expected


@pytest.mark.parametrize(
    ("value", "provider_at"),
    [
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T01:00:01.9996+01:00", 1999),
        ("1970-01-01t00:00:01.5z", 1500),
        ("1970-01-01 00:00:01Z", None),
        ("1970-01-01T00:00:01", None),
        ("1970-13-01T00:00:01Z", None),
        ("1969-12-31T23:59:59Z", None),
        ("9999-12-31T23:59:59-23:59", None),
        ("0001-01-01T00:00:00+23:59", None),
        (1000, None),
        (None, None),
        ("x" * 4096, None),
    ],
)
def test_rfc3339_timestamps(value: Any, provider_at: int | None) -> None:
    """The provider's time is read where it is one; a bad one spoils nothing else."""
    seen = read(JOB | {"updated_at": value})

    assert (seen.meaning, seen.provider_at) == (Meaning.RUNNING, provider_at)


@pytest.mark.parametrize("values", [[b"a", b"b"], [b"\xff"], [b"a\x1b"], [b"x" * 201], [b""]])
def test_request_ids_that_are_none(values: list[bytes]) -> None:
    """A request id that is repeated, long or not plain text is left out."""
    assert read(JOB, headers=tuple((b"X-Request-Id", v) for v in values)).request_id is None


def test_errors_become_observations() -> None:
    """A call without an answer is an unreadable observation that says what happened."""
    unavailable = ProviderUnavailableError("connect_failed", "example.com")
    denied = EgressDeniedError("address", "10.0.0.1")

    assert [observation_of(error, now=NOW) for error in (unavailable, denied)] == [
        Observation(Meaning.UNREADABLE, NOW, detail="connect_failed"),
        Observation(Meaning.UNREADABLE, NOW, detail="egress_address"),
    ]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "status", "x"]), inner),
    max_leaves=10,
)
_BODY = st.one_of(
    st.binary(max_size=200),
    _JSON.map(lambda value: json.dumps(value).encode()),
    st.fixed_dictionaries({"id": _JSON, "status": _JSON, "updated_at": _JSON}).map(
        lambda value: json.dumps(value).encode()
    ),
)


@given(
    profile=st.sampled_from([DEMO, GITHUB, STRIPE]),
    body=_BODY,
    status=st.integers(200, 599),
    headers=st.lists(
        st.tuples(st.sampled_from([b"Retry-After", b"X-Request-Id"]), st.binary(max_size=50))
    ),
    expected=st.none() | st.text(max_size=5),
)
@example(profile=DEMO, body=b"[" * 50_000, status=200, headers=[], expected=None)
def test_interpretation_is_total(
    profile: Profile,
    body: bytes,
    status: int,
    headers: list[tuple[bytes, bytes]],
    expected: str | None,
) -> None:
    """Any answer gives an observation that a store can take, and no ending without its word."""
    seen = interpret(
        profile,
        Answer(status, tuple(headers), body),
        expected_job_id=expected,
        now=NOW,
        age_ms=0,
    )

    for text in (seen.remote_state, seen.remote_job_id, seen.detail, seen.request_id):
        assert text is None or (text.isprintable() and text.encode())
    if seen.meaning in {Meaning.SUCCEEDED, Meaning.FAILED, Meaning.CANCELLED}:
        assert profile.states[str(seen.remote_state)] == seen.meaning
