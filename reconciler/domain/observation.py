"""What a status read showed.

An observation is the only evidence that moves an operation after its creation (design: "a webhook
is a hint"). This module holds the closed list of meanings a read can have; `providers.interpret`
maps a provider's answer to one, `decide` maps it to a transition. Pure values; nothing here reads a
clock.
"""

from dataclasses import dataclass
from enum import StrEnum


class Meaning(StrEnum):
    """What the provider's answer says about the job, in our words."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    #: The provider answered that it knows no such job (404 or the profile's equivalent).
    NOT_FOUND = "not_found"
    #: The provider asked us to come back later (429, 503 with Retry-After): it says nothing of the
    #: job.
    THROTTLED = "throttled"
    #: No answer, or one that cannot be read as a status (401, HTML, bad JSON, unknown state word).
    UNREADABLE = "unreadable"
    #: The answer contradicts what we know (another job id than ours): a person must look.
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class Observation:
    """One status read: what was asked, what came back, what it means.

    Instants are integer milliseconds since the epoch. `detail` is a stable slug that says why a
    read was unreadable (`http_401`, `not_json`, `unknown_state`, `connect_failed`, ...) or `None`.
    """

    meaning: Meaning
    fetched_at: int
    #: The provider's own word for the state, verbatim, at most 200 characters; `None` when
    #: unreadable.
    remote_state: str | None = None
    #: The job id that the answer carried, when the profile says where it stands.
    remote_job_id: str | None = None
    #: The provider's own timestamp of the state.
    provider_at: int | None = None
    http_status: int | None = None
    #: SHA-256 of the raw response body, lower-case hex.
    body_digest: str | None = None
    #: When the provider asked not to be read again before.
    not_before_at: int | None = None
    detail: str | None = None
    #: The provider's id of this request, for its support (header named by the profile).
    request_id: str | None = None
    #: The address that was dialled, as text.
    address: str | None = None
