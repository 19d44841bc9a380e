"""Ids never change where a request goes, and the credential goes to its header alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.providers.egress import Policy, Target, check_url
from reconciler.providers.errors import EgressDeniedError
from reconciler.providers.profile import load_profile
from reconciler.providers.request import status_request

DEMO = load_profile("demo").with_base_url("https://demo.example/v1")
STRIPE = load_profile("stripe")


def test_status_by_job_id() -> None:
    """The job id stands in the path, the secret in the profile's header."""
    request = status_request(DEMO, job_id="job 1", client_reference="r", secret="s3cret")

    assert (request.method, request.url) == ("GET", "https://demo.example/v1/jobs/job%201")
    assert request.headers == (("Accept", "application/json"), ("Authorization", "Bearer s3cret"))
    assert "s3cret" not in repr(request)


def test_status_by_reference() -> None:
    """Without a job id the client reference asks, where the profile offers that."""
    request = status_request(DEMO, client_reference="a/b", secret="s")

    assert request.url == "https://demo.example/v1/jobs/by-reference/a%2Fb"


def test_fixed_headers_of_a_profile() -> None:
    """A profile's own Accept replaces ours."""
    github = load_profile("github").with_base_url("https://api.github.com/repos/o/r")
    names = [name for name, _ in status_request(github, job_id="1", secret="s").headers]

    assert names == ["Accept", "X-GitHub-Api-Version", "Authorization"]


@pytest.mark.parametrize("identifier", ["", ".", "..", "x" * 513, "\ud800"])
def test_ids_without_a_safe_form(identifier: str) -> None:
    """An id that no encoding makes safe is refused before anything is sent."""
    with pytest.raises(EgressDeniedError) as caught:
        status_request(DEMO, job_id=identifier, secret="s")

    assert caught.value.slug == "bad_id"


@pytest.mark.parametrize(
    ("job_id", "reference", "secret", "slug"),
    [
        (None, None, "s", "no_id"),
        (None, "ref", "s", "no_id"),
        ("j", None, None, "no_credential"),
        ("j", None, "", "no_credential"),
    ],
)
def test_incomplete_requests(
    job_id: str | None, reference: str | None, secret: str | None, slug: str
) -> None:
    """Without an id, a way to ask, or the credential, there is no request."""
    with pytest.raises(EgressDeniedError) as caught:
        status_request(STRIPE, job_id=job_id, client_reference=reference, secret=secret)

    assert slug == caught.value.slug


def test_no_base_url() -> None:
    """A profile that needs a base URL of the installation sends nothing without it."""
    with pytest.raises(EgressDeniedError) as caught:
        status_request(load_profile("github"), job_id="1", secret="s")

    assert caught.value.slug == "no_base_url"


@given(st.text(min_size=1, max_size=80))
@pytest.mark.parametrize("literal", ["{base_url}", "{secret}", "../x", "a?b#c", "%2e%2e", "x/../y"])
def test_ids_never_change_the_path(literal: str, text: str) -> None:
    """Whatever an id holds, it is one segment of the path below the base URL, at the same origin."""
    for identifier in (text, literal, literal + text):
        try:
            request = status_request(DEMO, job_id=identifier, secret="s")
        except EgressDeniedError:
            continue
        target = check_url(request.url, Policy())
        assert isinstance(target, Target)
        assert target.origin == ("https", "demo.example", 443)
        assert target.path.startswith("/v1/jobs/")
        assert (target.path.count("/"), "?" in target.path) == (3, False)
