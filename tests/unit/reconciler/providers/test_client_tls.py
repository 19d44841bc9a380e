"""TLS of the client, with real certificates on loopback: whom it believes, and for which name."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest

from reconciler.providers.answer import Answer
from reconciler.providers.client import Limits, ProviderClient
from reconciler.providers.errors import ProviderUnavailableError
from reconciler.providers.request import Outbound
from tests.support.calls import OK, policy_for, resolver_of
from tests.support.certificates import server_context
from tests.support.loopback import Loopback, answering, serving

pytestmark = pytest.mark.anyio


async def over_tls(server: Loopback, trusted: Path, host: str) -> Answer:
    """Call a TLS server on loopback under the name `host`, trusting one certificate."""
    client = ProviderClient(
        policy_for(server.port, scheme="https"),
        resolver=resolver_of("127.0.0.1"),
        ssl_context=ssl.create_default_context(cafile=trusted),
        limits=Limits(total_s=2),
    )
    try:
        return await client.send(Outbound("GET", f"https://{host}:{server.port}/"))
    finally:
        await client.aclose()


async def test_tls_is_checked_against_the_host_name(tmp_path: Path) -> None:
    """The certificate must be for the URL's host, although an address is dialled."""
    context, trusted = server_context(tmp_path, ["provider.example"])
    seen: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    async with serving(answering(OK), context) as server:
        answer = await over_tls(server, trusted, "provider.example")
        with pytest.raises(ProviderUnavailableError) as wrong_host:
            await over_tls(server, trusted, "other.example")
        with pytest.raises(ProviderUnavailableError) as by_address:
            await over_tls(server, trusted, "127.0.0.1")

    assert (answer.status, answer.address) == (200, "127.0.0.1")
    for caught in (wrong_host, by_address):
        assert (caught.value.slug, caught.value.ambiguous) == ("tls_failed", False)
    assert seen == ["provider.example", "other.example", None]


async def test_tls_connections_belong_to_one_name(tmp_path: Path) -> None:
    """A connection made for one name is never used for another name at the same address."""
    context, trusted = server_context(tmp_path, ["provider.example"])
    async with serving(answering(OK), context) as server:
        client = ProviderClient(
            policy_for(server.port, scheme="https"),
            resolver=resolver_of("127.0.0.1"),
            ssl_context=ssl.create_default_context(cafile=trusted),
        )
        await client.send(Outbound("GET", f"https://provider.example:{server.port}/"))
        with pytest.raises(ProviderUnavailableError) as caught:
            await client.send(Outbound("GET", f"https://other.example:{server.port}/"))
        await client.aclose()

    assert (caught.value.slug, len(server.heads)) == ("tls_failed", 1)


async def test_tls_certificates_for_an_address(tmp_path: Path) -> None:
    """A URL with an address needs a certificate for that address."""
    context, trusted = server_context(tmp_path, ["127.0.0.1"])
    async with serving(answering(OK), context) as server:
        assert (await over_tls(server, trusted, "127.0.0.1")).status == 200


@pytest.mark.parametrize("expired", [True, False])
async def test_untrusted_tls(tmp_path: Path, *, expired: bool) -> None:
    """An expired certificate, and one that nobody vouches for, end in a failure before any request."""
    context, own = server_context(tmp_path, ["provider.example"], expired=expired)
    _, other = server_context(tmp_path, ["unrelated.example"])
    async with serving(answering(OK), context) as server:
        with pytest.raises(ProviderUnavailableError) as caught:
            await over_tls(server, own if expired else other, "provider.example")

    assert (caught.value.slug, caught.value.ambiguous, server.heads) == ("tls_failed", False, [])


async def test_default_trust_is_the_public_roots(tmp_path: Path) -> None:
    """Without a context of its own the client verifies, and trusts no self-signed certificate."""
    context, _ = server_context(tmp_path, ["provider.example"])
    async with serving(answering(OK), context) as server:
        client = ProviderClient(
            policy_for(server.port, scheme="https"), resolver=resolver_of("127.0.0.1")
        )
        with pytest.raises(ProviderUnavailableError) as caught:
            await client.send(Outbound("GET", f"https://provider.example:{server.port}/"))
        await client.aclose()

    assert caught.value.slug == "tls_failed"


async def test_plaintext_where_tls_belongs(tmp_path: Path) -> None:
    """A server that speaks plain HTTP at a TLS port gets no request."""
    _, trusted = server_context(tmp_path, ["provider.example"])

    async def shout(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        writer.close()

    listener = await asyncio.start_server(shout, "127.0.0.1", 0)
    server = Loopback(port=listener.sockets[0].getsockname()[1])
    with pytest.raises(ProviderUnavailableError) as caught:
        await over_tls(server, trusted, "provider.example")
    listener.close()

    assert (caught.value.slug, caught.value.ambiguous) == ("tls_failed", False)


async def test_plaintext_after_tls(tmp_path: Path) -> None:
    """A server that falls out of TLS after the request leaves doubt, and no answer."""
    context, trusted = server_context(tmp_path, ["provider.example"])

    async def fall_out(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock: socket.socket = writer.get_extra_info("socket")
        with socket.fromfd(sock.fileno(), sock.family, sock.type) as plain:
            plain.sendall(OK)

    async with serving(fall_out, context) as server:
        with pytest.raises(ProviderUnavailableError) as caught:
            await over_tls(server, trusted, "provider.example")

    assert caught.value.ambiguous is True
