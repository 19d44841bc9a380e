"""Where the client's requests go, and where they never go."""

from collections.abc import Sequence

import pytest

from reconciler.providers.client import ProviderClient
from reconciler.providers.egress import Policy
from reconciler.providers.errors import EgressDeniedError, ProviderUnavailableError
from reconciler.providers.request import Outbound
from tests.support.calls import (
    LIMITS,
    OK,
    PUBLIC,
    SECRET,
    Dialled,
    Recorder,
    policy_for,
    resolver_of,
)
from tests.support.loopback import answering, serving

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_not_followed(status: int) -> None:
    """SC-67: a redirect, be it to metadata or elsewhere, is an answer and no second request."""
    async with serving(answering(OK)) as other:
        for location in ("http://169.254.169.254/latest/meta-data", other.url, "/loop"):
            raw = (
                f"HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
            )
            async with serving(answering(raw)) as server:
                client = ProviderClient(policy_for(server.port, other.port), limits=LIMITS)
                answer = await client.send(
                    Outbound("GET", server.url, (("Authorization", SECRET),))
                )
                await client.aclose()
            assert (status, 1) == (answer.status, len(server.heads))

    assert other.connections == 0


async def test_the_checked_address_is_the_dialled_one() -> None:
    """SC-68: the name is looked up once a call, and that answer is dialled, whatever DNS says next."""
    answers = iter([[PUBLIC], ["127.0.0.1"]])
    asked: list[str] = []

    async def rebinding(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return next(answers)

    dialled = Dialled()
    client = ProviderClient(
        Policy(), resolver=rebinding, transport_factory=lambda: Recorder(dialled), limits=LIMITS
    )
    first = await client.send(Outbound("GET", "https://example.com/a"))
    with pytest.raises(EgressDeniedError) as caught:
        await client.send(Outbound("GET", "https://example.com/b"))

    assert [(r.url.host, r.headers["host"], r.extensions["sni_hostname"]) for r in dialled] == [
        (PUBLIC, "example.com", "example.com")
    ]
    assert (first.address, caught.value.slug, asked) == (PUBLIC, "address", ["example.com"] * 2)


async def test_nothing_is_dialled_for_a_denied_url() -> None:
    """SC-66: a URL or address that is denied reaches no dialler."""
    dialled = Dialled()
    client = ProviderClient(
        Policy(),
        resolver=resolver_of(PUBLIC, "10.0.0.1"),
        transport_factory=lambda: Recorder(dialled),
    )
    for url in (
        "https://127.0.0.1/",
        "http://example.com/",
        "https://example.com/",
        "https://a@b.cc/",
    ):
        with pytest.raises(EgressDeniedError):
            await client.send(Outbound("GET", url))

    assert dialled == []


async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxy variables and netrc have no say about where a request goes."""
    async with serving(answering(OK)) as proxy, serving(answering(OK)) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        client = ProviderClient(policy_for(server.port), limits=LIMITS)
        await client.send(Outbound("GET", server.url))
        await client.aclose()

    assert (proxy.connections, server.connections) == (0, 1)


async def test_next_address_is_tried_when_nothing_was_sent() -> None:
    """When connecting to one allowed address fails, the next one of the same answer is dialled."""
    async with serving(answering(OK)) as server:
        client = ProviderClient(
            policy_for(server.port), resolver=resolver_of("127.0.0.9", "127.0.0.1"), limits=LIMITS
        )
        answer = await client.send(Outbound("GET", f"http://a.example:{server.port}/"))
        await client.aclose()

    assert (answer.address, len(server.heads)) == ("127.0.0.1", 1)


async def test_nothing_is_sent_twice_when_it_may_have_arrived() -> None:
    """An ambiguous failure is final for the call: no other address gets the same request."""
    closing = answering(b"", close=True)
    async with serving(closing) as one, serving(closing, host="127.0.0.2", port=one.port) as two:
        client = ProviderClient(
            policy_for(one.port), resolver=resolver_of("127.0.0.1", "127.0.0.2"), limits=LIMITS
        )
        with pytest.raises(ProviderUnavailableError):
            await client.send(Outbound("POST", f"http://a.example:{one.port}/", body=b"x"))
        await client.aclose()

    assert (len(one.heads), two.connections) == (1, 0)
