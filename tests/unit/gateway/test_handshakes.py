"""The intake answers handshakes: exactly, without an event, and only where a provider has one."""

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.handshakes import Tally
from gateway.published_keys import KeyView
from gateway.source import build_sources
from reconciler.config import ConfigError
from reconciler.domain.event import Refusal
from reconciler.storage.contract import EventQuery, RefusalQuery
from tests.support.edge import Edge, configured, opened

pytestmark = pytest.mark.anyio

KEY = '[[sources.{0}.keys]]\nid = "k1"\nsecret = "file:{0}.key"\n'
NAMES = ("dropbox", "xero", "asana", "slack", "meta", "trello", "github")
CONFIG = "".join(f'[sources.{n}]\npreset = "{n}"\n' + KEY.format(n) for n in NAMES) + (
    '[sources.meta.handshake]\nverify_token = "file:acme.key"\n'
)


def secret_of(name: str) -> str:
    """Return the secret of a source."""
    return f"the-secret-of-{name}-is-long-enough"


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    """Give an edge with sources that have handshakes, and one (GitHub) that has none."""
    for name in NAMES:
        (tmp_path / f"{name}.key").write_text(secret_of(name))
    async with opened(tmp_path, CONFIG) as made:
        yield made


async def nothing_recorded(edge: Edge) -> bool:
    """Tell whether there is no event."""
    return await edge.store.events.page(EventQuery()) == []


async def refusals(edge: Edge) -> list[Refusal]:
    """Return what was refused."""
    await edge.refusals.flush()
    return await edge.store.events.refusals(RefusalQuery())


async def test_a_challenge_is_echoed_and_no_event(edge: Edge) -> None:
    """Dropbox's GET is answered with its length, as text that nothing sniffs, and not recorded."""
    told = await edge.post(
        b"", [], path=b"/in/dropbox", method="GET", query_string=b"challenge=abc"
    )

    assert (told.status, told.body) == (200, b"abc")
    assert told.headers == {
        b"content-type": b"text/plain",
        b"x-content-type-options": b"nosniff",
        b"content-length": b"3",
    }
    assert await nothing_recorded(edge)
    assert await refusals(edge) == []


async def test_a_source_without_a_handshake_takes_posts_only(edge: Edge) -> None:
    """405 names what is allowed: for GitHub POST, for Dropbox GET too, and not DELETE."""
    github = await edge.post(b"", [], path=b"/in/github", method="GET")
    dropbox = await edge.post(b"", [], path=b"/in/dropbox", method="DELETE")

    assert (github.status, github.headers[b"allow"]) == (405, b"POST")
    assert (dropbox.status, dropbox.headers[b"allow"]) == (405, b"POST, GET")


async def test_a_get_that_asks_nothing_is_refused(edge: Edge) -> None:
    """A GET without a challenge is not verified as an event: it is refused."""
    told = await edge.post(b"", [], path=b"/in/dropbox", method="GET")
    (refusal,) = await refusals(edge)

    assert (told.status, refusal.reason) == (401, "handshake_unreadable")


async def test_a_wrong_verify_token_gets_the_status_its_provider_wants(edge: Edge) -> None:
    """Meta is told 403, nothing is echoed, and the token of the query is not kept."""
    query = b"hub.mode=subscribe&hub.challenge=42&hub.verify_token=guess"
    told = await edge.post(b"", [], path=b"/in/meta", method="GET", query_string=query)
    (refusal,) = await refusals(edge)

    assert (told.status, refusal.reason) == (403, "handshake_refused")
    assert b"42" not in told.body
    assert "guess" not in refusal.headers


async def test_a_head_is_answered_without_a_body(edge: Edge) -> None:
    """Trello only wants to know that somebody is there."""
    told = await edge.post(b"", [], path=b"/in/trello", method="HEAD")

    assert (told.status, told.body) == (200, b"")


@pytest.mark.parametrize(("right", "status"), [(True, 200), (False, 401)])
async def test_an_intent_to_receive_is_answered_with_an_empty_body(
    edge: Edge, right: bool, status: int
) -> None:
    """Xero probes with right and wrong signatures: 200 and 401, and never a body."""
    body = b'{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3"}'
    key = secret_of("xero" if right else "slack")
    mac = base64.b64encode(hmac.new(key.encode(), body, hashlib.sha256).digest())
    told = await edge.post(body, [(b"x-xero-signature", mac)], path=b"/in/xero")

    assert (told.status, told.body, told.headers[b"content-length"]) == (status, b"", b"0")
    assert await nothing_recorded(edge)


async def test_every_refusal_of_such_a_source_is_bare(edge: Edge) -> None:
    """Xero reads the answer to ordinary events, too."""
    told = await edge.post(b'{"events":[{}]}', [(b"x-xero-signature", b"AAAA")], path=b"/in/xero")

    assert (told.status, told.body) == (401, b"")


async def test_an_unsigned_challenge_is_refused_where_it_must_be_signed(edge: Edge) -> None:
    """Slack signs its url_verification; an unsigned one gets the one 401 and no echo (F28)."""
    body = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    told = await edge.post(body, [], path=b"/in/slack")
    (refusal,) = await refusals(edge)

    assert (told.status, refusal.reason) == (401, "signature_missing")
    assert b"abc" not in told.body


async def test_a_secret_from_a_stranger_is_not_taken(edge: Edge) -> None:
    """Asana's X-Hook-Secret is neither echoed nor kept, not even in the refusal; a log says so."""
    with capture_logs() as logs:
        told = await edge.post(b"{}", [(b"x-hook-secret", b"planted-secret")], path=b"/in/asana")
    (refusal,) = await refusals(edge)

    assert (told.status, refusal.reason) == (401, "handshake_not_open")
    assert b"x-hook-secret" not in told.headers
    assert "planted-secret" not in refusal.headers + str(logs)
    assert [line["event"] for line in logs] == ["handshake_not_open"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "sources.meta.handshake.verify_token: is required: meta asks for it"),
        ('verify_token = "env:NOBODY_SET_THIS"', "sources.meta.handshake.verify_token: "),
        ('verify_token = "file:acme.key"\ntopics = ["t"]', "handshake.topics: meta asks for no"),
    ],
)
def test_a_setting_is_checked_at_the_start(tmp_path: Path, text: str, told: str) -> None:
    """What a handshake needs and lacks, and what it does not know, is named before we listen."""
    (tmp_path / "meta.key").write_text(secret_of("meta"))
    config = '[sources.meta]\npreset = "meta"\n' + KEY.format("meta")
    made = configured(tmp_path, f"{config}[sources.meta.handshake]\n{text}\n")

    with pytest.raises(ConfigError) as caught:
        build_sources(made)
    assert told in str(caught.value)


def test_a_flood_of_challenges_fills_no_log() -> None:
    """Answers are counted, and a source has at most one line a minute."""
    now = [0]
    tally = Tally(lambda: now[0])
    with capture_logs() as logs:
        for at in (0, 1, 59_999, 60_000):
            now[0] = at
            tally.note("acme", "GET")

    assert tally.counts == {"acme": 4}
    assert [line["count"] for line in logs] == [1, 3]


async def test_a_signed_handshake_asks_for_its_key_like_an_event(tmp_path: Path) -> None:
    """SNS's first message is its confirmation: its unknown key must be heard of (F33)."""
    host = "https://sns.eu-west-1.amazonaws.com"
    document = {
        **dict.fromkeys(("Message", "MessageId", "Token", "TopicArn"), "x"),
        "Type": "SubscriptionConfirmation",
        "SubscribeURL": f"{host}/?Action=ConfirmSubscription&Token=x",
        "Timestamp": "2026-05-28T20:26:40.000Z",
        "SignatureVersion": "2",
        "Signature": base64.b64encode(bytes(256)).decode(),
        "SigningCertURL": f"{host}/SimpleNotificationService-0.pem",
    }
    async with opened(tmp_path, '[sources.sns]\npreset = "aws-sns"\n') as edge:
        published = edge.store.published_keys
        view = KeyView(edge.sources, published, lambda: edge.now, lambda: edge.now)
        intake = edge.intake()
        intake.keys = view
        edge.intake = lambda: intake  # type: ignore[method-assign]
        told = await edge.post(json.dumps(document).encode(), [], path=b"/in/sns")
        (refusal,) = await refusals(edge)
        await view.tick()
        wanted = [each.url for each in await published.after(0)]

    assert (told.status, refusal.reason) == (401, "key_unknown")
    assert wanted == [document["SigningCertURL"]]
