"""Keys that a provider publishes, end to end over loopback: fetched, rotated, lost, lied about."""

import datetime as dt
import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support import valkey
from tests.support.installation import Installation
from tests.support.key_server import SCHEME, KeyServer, Page, SigningKey
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

HTML = Page(b"<!doctype html><title>Sign in</title>", 200, {"Content-Type": "text/html"})


@pytest.fixture
def server() -> Iterator[KeyServer]:
    """Run a key server."""
    with KeyServer() as running:
        yield running


@pytest.fixture
def gateway(install: Callable[[], Installation], server: KeyServer) -> Installation:
    """Start a gateway whose source `acme` has no key but those that the server publishes."""
    return _start(install(), server)


def _start(installation: Installation, server: KeyServer) -> Installation:
    installation.replace("allow = [", f'allow = ["http://127.0.0.1/32:{server.port}", ')
    installation.section(SCHEME.format(name="acme", url=server.url))
    return installation.start()


def _published(gateway: Installation) -> dict[str, Any]:
    found: list[dict[str, Any]] = gateway.get("/v1/sources/acme")["published_keys"]
    return found[0] if found else {}


def _accepts(gateway: Installation, key: SigningKey) -> bool:
    return gateway.post(key.raw("acme", secrets.token_hex(8))).status == 200


def _fetched(gateway: Installation, *kids: str) -> None:
    until(lambda: _published(gateway).get("ids") == list(kids), f"{kids} are fetched")
    until(lambda: gateway.get("/v1/sources/acme")["ready"], "the source is ready")
    until(lambda: _pause(gateway) > dt.timedelta(minutes=10), "no fetch is due or under way")


def _pause(gateway: Installation) -> dt.timedelta:
    """Return how long it is until the next fetch; a lease is half a minute."""
    next_at = dt.datetime.fromisoformat(_published(gateway)["next_fetch_at"])
    return next_at - dt.datetime.now(dt.UTC)


def _run(gateway: Installation, *arguments: str) -> str:
    done = gateway.run(*arguments, "--url", f"http://127.0.0.1:{gateway.internal}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def _refresh(gateway: Installation) -> None:
    _run(gateway, "source", "refresh", "acme")


def test_keys_are_fetched_and_nothing_is_accepted_before(
    gateway: Installation, server: KeyServer
) -> None:
    """A source whose keys are not there yet refuses as key_unknown, and accepts once they are."""
    key = SigningKey("k1")

    refused = gateway.post(key.raw("acme", "evt_1"))
    assert (refused.status, gateway.get("/v1/sources/acme")["ready"]) == (401, False)
    until(lambda: gateway.refusals("acme"), "the refusal is kept")
    assert gateway.refusals("acme")[0]["reason"] == "key_unknown"

    server.publish(key)
    _refresh(gateway)
    _fetched(gateway, "k1")
    assert gateway.post(key.raw("acme", "evt_1")).status == 200
    [event] = gateway.events("acme")
    assert event["key_id"] == "k1"
    shown = _run(gateway, "source", "show", "acme")
    assert server.url[:40] in shown
    assert "k1" in shown


def test_a_rotation_is_seen_without_a_restart(gateway: Installation, server: KeyServer) -> None:
    """A new key serves as soon as a request names it, and one that is withdrawn no longer does."""
    old, new = SigningKey("k1"), SigningKey("k2")
    server.publish(old)
    _refresh(gateway)
    _fetched(gateway, "k1")

    server.publish(new)
    _refresh(gateway)

    until(lambda: _accepts(gateway, new), "the new key serves")
    assert not _accepts(gateway, old)


@pytest.mark.parametrize(
    ("page", "failure"),
    [
        (HTML, "no_keys"),
        (Page(b"{}"), "no_keys"),
        (Page(b'{"keys":[]}'), "no_keys"),
        (Page(b"", 302, {"Location": "http://127.0.0.1:9/jwks"}), "http_302"),
        (Page(b" " * 70_000), "too_large"),
        (Page(b"", 503), "http_503"),
    ],
    ids=["html", "empty", "no keys", "redirect", "huge", "unavailable"],
)
def test_a_server_that_lies_takes_nothing_away(
    gateway: Installation, server: KeyServer, page: Page, failure: str
) -> None:
    """Whatever stands at the address, the last good keys go on serving and the failure is named."""
    key = SigningKey("k1")
    server.publish(key)
    _refresh(gateway)
    _fetched(gateway, "k1")

    server.pages["/jwks"] = page
    _refresh(gateway)

    until(lambda: _published(gateway)["failure"] == failure, f"the failure is {failure}")
    assert _published(gateway)["ids"] == ["k1"]
    assert _accepts(gateway, key)
    assert {path for _, path, _ in server.asked} == {"/jwks"}


def test_the_last_good_keys_survive_outage_and_restart(
    gateway: Installation, server: KeyServer
) -> None:
    """With the key server gone, requests are accepted from the first one after a restart on."""
    key = SigningKey("k1")
    server.publish(key)
    _refresh(gateway)
    _fetched(gateway, "k1")
    server.down()
    _refresh(gateway)
    until(lambda: _published(gateway)["failures"], "the outage is seen")
    assert _accepts(gateway, key)

    gateway.kill()
    gateway.start()

    assert _accepts(gateway, key)


def test_a_flood_of_unknown_keys_is_one_fetch(gateway: Installation, server: KeyServer) -> None:
    """Five hundred requests that each name another key make at most one fetch an interval."""
    key = SigningKey("k1")
    server.publish(key)
    _refresh(gateway)
    _fetched(gateway, "k1")
    before = len(server.asked)

    def send(number: int) -> int:
        return gateway.post(SigningKey(f"none-{number}").raw("acme", f"evt_{number}")).status

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(send, range(500))) == {401}

    assert _accepts(gateway, key)
    # The minimum interval is a minute, and the last fetch was a moment ago.
    assert len(server.asked) == before
    until(lambda: _published(gateway)["next_fetch_at"], "a fetch is scheduled")


def test_nodes_share_what_one_fetched(
    install: Callable[[], Installation], server: KeyServer
) -> None:
    """Of two nodes over one ledger one fetches, and both see a rotation without a restart."""
    old, new = SigningKey("k1"), SigningKey("k2")
    server.publish(old)
    ledger = valkey.shared().url(f"keys-{secrets.token_hex(4)}")
    nodes = [install(), install()]
    for node in nodes:
        node.replace('url = "sqlite:data/ledger.db"', f'url = "{ledger}"\nfolder = "data"')
        _start(node, server)
        (node.token_folder / "admin.token").write_text(nodes[0].admin)

    for node in nodes:
        until(lambda n=node: _accepts(n, old), "the keys serve in each node")  # type: ignore[misc]
    assert len(server.asked) == 1

    server.publish(new)
    _refresh(nodes[0])
    for node in nodes:
        until(lambda n=node: _accepts(n, new), "the new key serves in each node")  # type: ignore[misc]
        assert not _accepts(node, old)
    assert len(server.asked) == 2


def test_a_source_cannot_have_its_keys_from_inside(install: Callable[[], Installation]) -> None:
    """An address of keys that no allow-list opens stops the start and names the setting."""
    installation = install()
    installation.section(SCHEME.format(name="acme", url="http://169.254.169.254/jwks"))
    installation.write()

    done = installation.run("config", "check")

    assert done.returncode == 78
    assert "sources.acme.keys_url" in done.stderr
