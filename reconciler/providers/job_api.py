"""A provider's job API as a value: what a profile says, once it has been checked.

Plain frozen data: it is read by `profile`, called by `request` and `client`, judged by `interpret`.
Durations are milliseconds.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.domain.observation import Meaning
from reconciler.domain.pace import Pace
from reconciler.domain.retry import Poll
from reconciler.providers.table import ProfileError

#: Unescaped tokens of a JSON Pointer (RFC 6901).
Pointer = tuple[str, ...]
TimestampForm = Literal["rfc3339", "unix_s", "unix_ms"]

BASE_URL = re.compile(r"https?://[^/?#@\s]+(?:/[^?#\s]*[^/?#\s])?")
BASE_URL_RULE = "must be https://host[:port][/path] without a slash at its end, query or user name"


@dataclass(frozen=True, slots=True)
class Auth:
    """The header that carries the credential; `value` holds `{secret}` exactly once."""

    header: str
    value: str


@dataclass(frozen=True, slots=True)
class Status:
    """How a status is read. Pointers are unescaped RFC 6901 tokens into the answer's JSON.

    When the word at `state` is one of `outcome_when`, the word at `outcome` tells how it ended, and
    the state is both, joined by a slash (`completed/success`).
    """

    method: str
    url: str
    url_by_reference: str | None
    accepted: frozenset[int]
    not_found: frozenset[int]
    state: Pointer
    outcome: Pointer | None
    outcome_when: frozenset[str]
    job_id: Pointer | None
    client_reference: Pointer | None
    updated_at: Pointer | None
    request_id_header: str | None
    #: For this long after the create, "no such job" is the provider being slow to know its own job.
    grace_ms: int


@dataclass(frozen=True, slots=True)
class Profile:
    """One provider's job API. `base_url` is `None` where each installation has its own."""

    name: str
    docs: str
    base_url: str | None
    auth: Auth | None
    headers: tuple[tuple[str, str], ...]
    status: Status
    states: Mapping[str, Meaning]
    timestamps: TimestampForm
    poll: Poll
    #: How often it may be asked, by all nodes together; `None`: as often as there is work.
    pace: Pace | None
    result_deadline_ms: int
    result_kind: Literal["none"]

    def with_base_url(self, base_url: str | None) -> "Profile":
        """Return the profile for this installation; `ProfileError` if no base URL is known."""
        url = base_url or self.base_url
        if url is None:
            raise ProfileError(self.name, "base_url", "the profile has none: configure one")
        if BASE_URL.fullmatch(url) is None:
            raise ProfileError(self.name, "base_url", BASE_URL_RULE)
        return replace(self, base_url=url)
