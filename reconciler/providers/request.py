"""Building the call that a profile describes.

An id is another party's text: it is percent-encoded with nothing left safe, and ids that would
change the path even so are refused. The result's headers hold the credential, so its repr does not
show them. No I/O; whether the URL may be called is the guard's to say.
"""

from dataclasses import dataclass, field
from urllib.parse import quote

from reconciler.domain.ids import NAME_CHARACTERS_MAX
from reconciler.providers.errors import EgressDeniedError
from reconciler.providers.job_api import Profile

#: Headers that frame or route a request: set by the client alone, in lower case.
RESERVED_HEADERS = frozenset(
    {
        "accept-encoding", "connection", "content-length", "expect", "host", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outbound:
    """A request to be sent: its headers are in the order in which they go out."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)


def status_request(
    profile: Profile,
    *,
    job_id: str | None = None,
    client_reference: str | None = None,
    secret: str | None = None,
) -> Outbound:
    """Build the status read by job id or, when that is not known yet, by client reference.

    Raises `EgressDeniedError` (`no_base_url`, `no_id`, `bad_id`, `no_credential`): nothing may be
    sent.
    """
    template, place, identifier = _place(profile, job_id, client_reference)
    if profile.base_url is None:
        raise EgressDeniedError("no_base_url", profile.name)
    url = template.replace("{base_url}", profile.base_url, 1)
    url = url.replace(place, encoded_id(identifier), 1)
    return Outbound(profile.status.method, url, _headers(profile, secret))


def encoded_id(identifier: str) -> str:
    """Percent-encode an id for any place of a URL; `EgressDeniedError` if none is safe."""
    # "." and ".." are unreserved, and "%2e" means the same to a server: no encoding makes them an
    # id.
    if not 0 < len(identifier) <= NAME_CHARACTERS_MAX or identifier in {".", ".."}:
        raise EgressDeniedError("bad_id", "an id has 1 to 512 characters and is no . or ..")
    try:
        return quote(identifier, safe="")
    except UnicodeEncodeError:
        raise EgressDeniedError("bad_id", "an id is valid Unicode") from None


def _place(
    profile: Profile, job_id: str | None, client_reference: str | None
) -> tuple[str, str, str]:
    if job_id is not None:
        return profile.status.url, "{job_id}", job_id
    if client_reference is None or profile.status.url_by_reference is None:
        raise EgressDeniedError("no_id", "no job id, and no way to ask by client reference")
    return profile.status.url_by_reference, "{client_reference}", client_reference


def _headers(profile: Profile, secret: str | None) -> tuple[tuple[str, str], ...]:
    headers = (("Accept", "application/json"), *profile.headers)
    if any(name.lower() == "accept" for name, _ in profile.headers):
        headers = profile.headers
    if profile.auth is None:
        return headers
    if not secret:
        raise EgressDeniedError("no_credential", f"profile {profile.name} needs a secret")
    return (*headers, (profile.auth.header, profile.auth.value.replace("{secret}", secret, 1)))
