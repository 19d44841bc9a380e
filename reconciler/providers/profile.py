"""Provider profiles: a provider's job API as data that can be reviewed.

The grammar is closed: no expressions, no templates beyond three named places, no credentials. A
profile says how a status is read and what the provider's words mean; `request` builds the call,
`interpret` reads the answer. Loading is strict: what a profile cannot mean is a `ProfileError` with
file, line, key and suggestion, before anything is called.

Words that no list of `[states]` holds are unreadable, never "still running": a profile therefore
lists every word that the provider documents.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from types import MappingProxyType
from typing import Any, Literal, cast

from reconciler.domain.observation import Meaning
from reconciler.domain.pace import BURST_MAX, PER_S_MAX, PER_S_MIN, Pace
from reconciler.domain.retry import Poll
from reconciler.providers.job_api import (
    BASE_URL,
    BASE_URL_RULE,
    Auth,
    Profile,
    Status,
    TimestampForm,
)
from reconciler.providers.request import RESERVED_HEADERS
from reconciler.providers.table import ProfileError, Table, did_you_mean, key_lines

__all__ = [
    "Profile",
    "ProfileError",
    "load_profile",
    "parse_profile",
    "profile_names",
    "read_profile",
]

# Every key there is, by section. [headers] takes any name.
_GRAMMAR = {
    "": (
        "name", "docs", "base_url", "auth", "headers", "status", "states", "timestamps", "poll",
        "rate", "deadlines", "result",
    ),
    "auth": ("header", "value"),
    "status": (
        "method", "url", "url_by_reference", "accepted", "not_found", "state", "outcome",
        "outcome_when", "job_id", "client_reference", "updated_at", "request_id_header",
        "grace_s",
    ),
    "states": ("pending", "running", "succeeded", "failed", "cancelled"),
    "timestamps": ("form",),
    "poll": ("min_interval_s", "base_s", "cap_s"),
    "rate": ("per_s", "burst"),
    "deadlines": ("result_s",),
    "result": ("kind",),
}  # fmt: skip

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, section 5.6.2
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_PLACE = re.compile(r"\{([^{}]*)\}")
_MEANINGS = (
    Meaning.PENDING,
    Meaning.RUNNING,
    Meaning.SUCCEEDED,
    Meaning.FAILED,
    Meaning.CANCELLED,
)


def profile_names() -> tuple[str, ...]:
    """Return the names of the shipped profiles, sorted."""
    folder = resources.files("reconciler.providers") / "profiles"
    return tuple(sorted(f.name[:-5] for f in folder.iterdir() if f.name.endswith(".toml")))


def load_profile(name: str) -> Profile:
    """Load a shipped profile by name."""
    names = profile_names()
    if name not in names:
        raise ProfileError(name, "", f"no such profile{did_you_mean(name, names)}")
    file = resources.files("reconciler.providers") / "profiles" / f"{name}.toml"
    return read_profile(file.read_text("utf-8"), f"{name}.toml")


def read_profile(text: str, where: str) -> Profile:
    """Read a profile from the text of a TOML file; `where` names the file in messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProfileError(where, "", f"this is no TOML: {error}") from None
    return parse_profile(table, where, text)


def parse_profile(table: Mapping[str, Any], where: str, text: str | None = None) -> Profile:
    """Check a parsed TOML table and return the profile. With `text`, messages know lines."""
    top = Table(table, where, key_lines(text) if text is not None else {}, _GRAMMAR)
    name = top.text("name")
    if _NAME.fullmatch(name) is None:
        raise top.error("name", "must be lower-case letters, digits and hyphens")
    status_table = top.table("status")
    status = _status(status_table)
    profile = Profile(
        name=name,
        docs=_docs(top),
        base_url=_base_url(top),
        auth=_auth(top),
        headers=_headers(top.table("headers")),
        status=status,
        states=_states(top.table("states")),
        timestamps=_timestamps(top.table("timestamps")),
        poll=_poll(top.table("poll")),
        pace=_pace(top),
        result_deadline_ms=top.table("deadlines").ms("result_s", least_s=1),
        result_kind=_result(top.table("result")),
    )
    _check_outcome_words(status_table, profile)
    return profile


def _docs(top: Table) -> str:
    docs = top.text("docs")
    if not docs.startswith("https://"):
        raise top.error("docs", "must be the https address of the page that the profile follows")
    return docs


def _base_url(top: Table) -> str | None:
    url = top.optional_text("base_url")
    if url is not None and BASE_URL.fullmatch(url) is None:
        raise top.error("base_url", BASE_URL_RULE)
    return url


def _auth(top: Table) -> Auth | None:
    if not top.has("auth"):
        return None
    table = top.table("auth")
    auth = Auth(_header_name(table, "header", table.text("header")), table.text("value"))
    _check_places(table, "value", auth.value, needed={"secret"})
    if _HEADER_VALUE.fullmatch(auth.value) is None:
        raise table.error("value", "must be printable ASCII")
    return auth


def _headers(table: Table) -> tuple[tuple[str, str], ...]:
    headers = table.all_texts()
    for name, value in headers:
        _header_name(table, name, name)
        if _HEADER_VALUE.fullmatch(value) is None:
            raise table.error(name, "must be printable ASCII")
        if name.lower() in {"authorization", "cookie", "proxy-authorization"}:
            raise table.error(name, "credentials belong in [auth], as a reference")
    return headers


def _status(table: Table) -> Status:
    status = Status(
        method=table.choice("method", ("GET",), "GET"),
        url=_url(table, "url", "job_id", table.text("url")),
        url_by_reference=_url_by_reference(table),
        accepted=table.statuses("accepted", (200,)),
        not_found=table.statuses("not_found", (404,)),
        state=table.pointer("state"),
        outcome=table.optional_pointer("outcome"),
        outcome_when=frozenset(table.words("outcome_when")),
        job_id=table.optional_pointer("job_id"),
        client_reference=table.optional_pointer("client_reference"),
        updated_at=table.optional_pointer("updated_at"),
        request_id_header=_request_id_header(table),
        grace_ms=table.ms("grace_s", 30),
    )
    if (status.outcome is None) != (not status.outcome_when):
        raise table.error("outcome_when", "outcome and outcome_when go together")
    if status.accepted & status.not_found:
        raise table.error("not_found", "a status is accepted or means not found, not both")
    return status


def _url_by_reference(table: Table) -> str | None:
    url = table.optional_text("url_by_reference")
    return None if url is None else _url(table, "url_by_reference", "client_reference", url)


def _url(table: Table, key: str, place: str, url: str) -> str:
    """Check a URL template: it starts with `{base_url}/` and holds the id once."""
    _check_places(table, key, url, needed={"base_url", place})
    if not url.startswith("{base_url}/"):
        raise table.error(key, "must start with {base_url}/, so that it cannot leave the provider")
    return url


def _request_id_header(table: Table) -> str | None:
    name = table.optional_text("request_id_header")
    return None if name is None else _header_name(table, "request_id_header", name)


def _header_name(table: Table, key: str, name: str) -> str:
    if _TOKEN.fullmatch(name) is None:
        raise table.error(key, f"{name!r} is no header name")
    if name.lower() in RESERVED_HEADERS:
        raise table.error(key, f"the header {name} is set by the client alone")
    return name


def _check_places(table: Table, key: str, template: str, *, needed: Iterable[str]) -> None:
    """Refuse a template whose `{places}` are not exactly the needed ones, each once."""
    places = _PLACE.findall(template)
    for place in places:
        if place not in needed:
            problem = f"{{{place}}} is not known here{did_you_mean(place, needed)}"
            raise table.error(key, problem)
    for place in needed:
        if places.count(place) != 1:
            raise table.error(key, f"must hold {{{place}}} exactly once")
    if re.search(r"[{}]", _PLACE.sub("", template)):
        raise table.error(key, "has a brace without its pair")


def _states(table: Table) -> Mapping[str, Meaning]:
    states: dict[str, Meaning] = {}
    for meaning in _MEANINGS:
        for word in table.words(meaning.value):
            if word in states:
                raise table.error(meaning.value, f"{word!r} is also in {states[word].value}")
            states[word] = meaning
    if Meaning.SUCCEEDED not in states.values():
        raise table.error("succeeded", "no word means success: an operation could never end well")
    return MappingProxyType(states)


def _check_outcome_words(status: Table, profile: Profile) -> None:
    for word in sorted(profile.status.outcome_when):
        if word in profile.states:
            raise status.error("outcome_when", f"{word!r} alone cannot be a state as well")
        if not any(known.startswith(f"{word}/") for known in profile.states):
            raise status.error("outcome_when", f"no state is written {word}/OUTCOME")


def _timestamps(table: Table) -> TimestampForm:
    return cast("TimestampForm", table.choice("form", ("rfc3339", "unix_s", "unix_ms"), "rfc3339"))


def _poll(table: Table) -> Poll:
    poll = Poll(
        min_interval_ms=table.ms("min_interval_s", 1, least_s=0.05),
        base_ms=table.ms("base_s", 5, least_s=0.05),
        cap_ms=table.ms("cap_s", 300, least_s=0.05),
    )
    if not poll.min_interval_ms <= poll.base_ms <= poll.cap_ms:
        raise table.error("cap_s", "min_interval_s <= base_s <= cap_s must hold")
    return poll


def _pace(top: Table) -> Pace | None:
    if not top.has("rate"):
        return None
    table = top.table("rate")
    return Pace.of(
        table.number("per_s", PER_S_MIN, PER_S_MAX),
        int(table.number("burst", 1, BURST_MAX, 1, whole=True)),
    )


def _result(table: Table) -> Literal["none"]:
    table.choice("kind", ("none",), "none")
    return "none"
