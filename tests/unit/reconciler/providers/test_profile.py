"""The profile grammar: what ships is right, and what is wrong is explained."""

import copy
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from reconciler.domain.observation import Meaning
from reconciler.domain.pace import Pace
from reconciler.providers.egress import Policy, Target, check_url
from reconciler.providers.job_api import Auth
from reconciler.providers.profile import (
    ProfileError,
    load_profile,
    parse_profile,
    profile_names,
    read_profile,
)
from reconciler.providers.request import status_request

TEXT = """\
name = "acme"
docs = "https://acme.example/docs"
base_url = "https://api.acme.example/v1"

[auth]
header = "X-Api-Key"
value = "{secret}"

[status]
url = "{base_url}/jobs/{job_id}"
state = "/job/state"

[states]
pending = ["waiting"]
succeeded = ["done"]
failed = ["broken"]

[deadlines]
result_s = 3600
"""


def message(text: str) -> str:
    """Read a bad profile and return what the operator is told."""
    with pytest.raises(ProfileError) as caught:
        read_profile(text, "acme.toml")
    return str(caught.value)


def test_shipped_profiles_load() -> None:
    """Every shipped profile is named after its file and passes the strict loader."""
    assert {"demo", "github", "stripe"} <= set(profile_names())
    assert [load_profile(name).name for name in profile_names()] == list(profile_names())


def test_shipped_profiles_call_public_addresses() -> None:
    """The status URL of each shipped profile but the demo passes the guard as it stands."""
    for name in set(profile_names()) - {"demo"}:
        profile = load_profile(name)
        profile = profile.with_base_url(profile.base_url or "https://api.example.com/a")
        url = status_request(profile, job_id="x", secret="s").url
        assert isinstance(check_url(url, Policy()), Target), name


def test_small_profile() -> None:
    """What a profile leaves out has the defaults that the grammar gives."""
    profile = read_profile(TEXT, "acme.toml")

    assert profile.auth == Auth("X-Api-Key", "{secret}")
    assert profile.states == {
        "waiting": Meaning.PENDING,
        "done": Meaning.SUCCEEDED,
        "broken": Meaning.FAILED,
    }
    assert profile.status.state == ("job", "state")
    assert (profile.status.accepted, profile.status.not_found) == ({200}, {404})
    assert (profile.status.grace_ms, profile.result_deadline_ms) == (30_000, 3_600_000)
    assert (profile.timestamps, profile.result_kind) == ("rfc3339", "none")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("state = ", "staet = ", "acme.toml:11: status.staet: unknown key; did you mean 'state'?"),
        ("state = ", "nonsense = ", "acme.toml:11: status.nonsense: unknown key"),
        ('state = "/job/state"\n', "", "acme.toml:9: status.state: is missing"),
        ("[states]", "[sates]", "acme.toml:13: sates: unknown key; did you mean 'states'?"),
        ('"/job/state"', '"job.state"', "acme.toml:11: status.state: 'job.state' is no JSON Pointer (RFC 6901), such as /status"),
        ('"/job/state"', '"/a~2"', "acme.toml:11: status.state: '/a~2' is no JSON Pointer (RFC 6901), such as /status"),
        ('"/job/state"', "5", "acme.toml:11: status.state: must be a text that is not empty"),
        ("{job_id}", "{jobid}", "acme.toml:10: status.url: {jobid} is not known here; did you mean 'job_id'?"),
        ("/{job_id}", "", "acme.toml:10: status.url: must hold {job_id} exactly once"),
        ("{job_id}", "{job_id}}", "acme.toml:10: status.url: has a brace without its pair"),
        ('"{base_url}/jobs', '"https://evil.example/{base_url}', "acme.toml:10: status.url: must start with {base_url}/, so that it cannot leave the provider"),
        ('"{base_url}/jobs', '"{base_url}.evil.example/jobs', "acme.toml:10: status.url: must start with {base_url}/, so that it cannot leave the provider"),
        ('"{secret}"', '"hunter2"', "acme.toml:7: auth.value: must hold {secret} exactly once"),
        ('"X-Api-Key"', '"X Api"', "acme.toml:6: auth.header: 'X Api' is no header name"),
        ('"X-Api-Key"', '"Host"', "acme.toml:6: auth.header: the header Host is set by the client alone"),
        ('["broken"]', '["done"]', "acme.toml:16: states.failed: 'done' is also in succeeded"),
        ('["broken"]', '[""]', "acme.toml:16: states.failed: must be a list of texts that are not empty"),
        ("failed = ", "faild = ", "acme.toml:16: states.faild: unknown key; did you mean 'failed'?"),
        ('succeeded = ["done"]\n', "", "acme.toml:13: states.succeeded: no word means success: an operation could never end well"),
        ("result_s = 3600", "result_s = true", "acme.toml:19: deadlines.result_s: must be a number of seconds"),
        ("result_s = 3600", "result_s = nan", "acme.toml:19: deadlines.result_s: must be at least 1 and at most ten years"),
        ("result_s = 3600", "result_s = 0", "acme.toml:19: deadlines.result_s: must be at least 1 and at most ten years"),
        ("result_s = 3600", "result_ms = 3600", "acme.toml:19: deadlines.result_ms: unknown key; did you mean 'result_s'?"),
        ('name = "acme"', 'name = "Acme!"', "acme.toml:1: name: must be lower-case letters, digits and hyphens"),
        ('"https://acme.example/docs"', '"see wiki"', "acme.toml:2: docs: must be the https address of the page that the profile follows"),
        ("acme.example/v1", "acme.example/v1/", "acme.toml:3: base_url: must be https://host[:port][/path] without a slash at its end, query or user name"),
        ("https://api.acme", "https://user@api.acme", "acme.toml:3: base_url: must be https://host[:port][/path] without a slash at its end, query or user name"),
        ("[auth]", "[auth", "acme.toml: this is no TOML: Expected ']' at the end of a table declaration (at line 5, column 6)"),
    ],
)  # fmt: skip
def test_mistakes_are_explained(old: str, new: str, expected: str) -> None:
    """A mistake is told with file, line, key, what is wrong, and the nearest right word."""
    assert old in TEXT
    assert message(TEXT.replace(old, new)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ('method = "POST"', "status.method: 'POST' is none of GET"),
        ("accepted = []", "status.accepted: must be a list of HTTP statuses, such as [200]"),
        ("accepted = [100]", "status.accepted: 100 is no final HTTP status (200 to 599)"),
        ("accepted = [true]", "status.accepted: True is no final HTTP status (200 to 599)"),
        ("accepted = [404]", "status.not_found: a status is accepted or means not found, not both"),
        ('outcome = "/x"', "status.outcome_when: outcome and outcome_when go together"),
        ('outcome_when = ["x"]', "status.outcome_when: outcome and outcome_when go together"),
        ('outcome = "/x"\noutcome_when = ["done"]', "status.outcome_when: 'done' alone cannot be a state as well"),
        ('outcome = "/x"\noutcome_when = ["over"]', "status.outcome_when: no state is written over/OUTCOME"),
        ('request_id_header = "a b"', "status.request_id_header: 'a b' is no header name"),
        ('url_by_reference = "{base_url}/x/{job_id}"', "status.url_by_reference: {job_id} is not known here"),
        ("grace_s = -1", "status.grace_s: must be at least 0 and at most ten years"),
    ],
)  # fmt: skip
def test_mistakes_in_status(lines: str, expected: str) -> None:
    """The keys of [status] are checked one by one."""
    assert expected in message(TEXT.replace('state = "/job/state"', f'state = "/a"\n{lines}'))


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("[poll]\nbase_s = 0.5\n", "poll.cap_s: min_interval_s <= base_s <= cap_s must hold"),
        ("[poll]\nbase_s = 0\n", "poll.base_s: must be at least 0.05 and at most ten years"),
        ('[result]\nkind = "url"\n', "result.kind: 'url' is none of none"),
        ('[timestamps]\nform = "unix-s"\n', "timestamps.form: 'unix-s' is none of rfc3339, unix_s, unix_ms; did you mean 'unix_s'?"),
        ('[headers]\nAuthorization = "Bearer x"\n', "headers.Authorization: credentials belong in [auth], as a reference"),
        ('[headers]\nX-A = "a\\nb"\n', "headers.X-A: must be printable ASCII"),
        ("[create]\n", "create: unknown key"),
    ],
)  # fmt: skip
def test_mistakes_in_other_sections(section: str, expected: str) -> None:
    """Each section is strict."""
    assert expected in message(TEXT + section)


def test_unknown_profile() -> None:
    """A profile that does not ship is refused with the nearest name."""
    with pytest.raises(ProfileError, match=r"strpe: no such profile; did you mean 'stripe'\?"):
        load_profile("strpe")


@pytest.mark.parametrize("name", ["../demo", "profiles/demo", "", "demo\x00"])
def test_profile_names_are_no_paths(name: str) -> None:
    """Only a listed name is loaded."""
    with pytest.raises(ProfileError):
        load_profile(name)


def test_base_url_of_an_installation() -> None:
    """An installation's base URL replaces the profile's; without any there is nothing to call."""
    github = load_profile("github")

    with pytest.raises(ProfileError, match="configure one"):
        github.with_base_url(None)
    with pytest.raises(ProfileError, match="without a slash at its end"):
        github.with_base_url("https://api.github.com/")
    assert load_profile("demo").with_base_url("http://127.0.0.1:1").base_url == "http://127.0.0.1:1"


_WRONG: list[Any] = [None, 7, "text", [], [1], {}, {"x": 1}, True, float("nan"), ""]


def _paths(table: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    return [
        path
        for key, value in table.items()
        for path in [
            (*prefix, key),
            *(_paths(value, (*prefix, key)) if isinstance(value, dict) else []),
        ]
    ]


@pytest.mark.parametrize("path", _paths(tomllib.loads(TEXT)), ids=".".join)
def test_wrong_kinds_are_profile_errors(path: tuple[str, ...]) -> None:
    """Whatever kind of value stands at a key, the loader accepts it or explains it."""
    for wrong in _WRONG:
        table = copy.deepcopy(tomllib.loads(TEXT))
        _put(table, path, wrong)
        outcome = _attempt(lambda table=table: parse_profile(table, "x"))  # type: ignore[misc]
        assert outcome in {"fine", "ProfileError"}


def _put(table: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        table = table[key]
    table[path[-1]] = value


def _attempt(action: Callable[[], object]) -> str:
    try:
        action()
    except ProfileError:
        return "ProfileError"
    return "fine"


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("", None),
        ("[rate]\nper_s = 0.5\n", Pace(2_000_000, 1)),
        ("[rate]\nper_s = 100\nburst = 20\n", Pace(10_000, 20)),
    ],
)
def test_rate(section: str, expected: Pace | None) -> None:
    """A profile may say how often its provider wants to be asked; without that nothing holds."""
    assert read_profile(TEXT + section, "acme.toml").pace == expected


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("[rate]\nburst = 2\n", "acme.toml:20: rate.per_s: is missing"),
        ("[rate]\nper_s = 0\n", "rate.per_s: must be a number from 0.001 to 10000"),
        ("[rate]\nper_s = nan\n", "rate.per_s: must be a number from 0.001 to 10000"),
        ("[rate]\nper_s = 1\nburst = 1.5\n", "rate.burst: must be a whole number from 1 to 10000"),
        ("[rate]\nper_s = 1\nburst = true\n", "rate.burst: must be a whole number"),
        ("[rate]\nper_second = 1\n", "rate.per_second: unknown key"),
    ],
)
def test_wrong_rates(section: str, expected: str) -> None:
    """A rate that cannot be kept is named with its bounds."""
    assert expected in message(TEXT + section)
