"""Published keys as a process uses them: current values, and what requests missed, told cheaply."""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.config import load_config
from gateway.published_keys import DOCUMENTS_MAX, KeyView
from gateway.source import Source, Sources, build_sources
from reconciler.config import ConfigError
from reconciler.domain.published import Fetched
from reconciler.storage.contract import Store
from reconciler.storage.sqlite.store import open_store
from tests.support.builders import NOW
from tests.support.key_server import SCHEME, SigningKey, jwks
from verifiers.request import RawRequest
from verifiers.verdict import Reason, Rejected, Verified
from verifiers.verify import verify

pytestmark = pytest.mark.anyio

URL = "https://keys.acme.test/tenant/jwks"
CONFIG = SCHEME.format(name="acme", url=URL) + '[sources.sns]\npreset = "aws-sns"\n'
SNS_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-{}.pem"
VALID_MS = 600_000


class Bench:
    """A ledger, the sources of a configuration, and a view between them."""

    def __init__(self, folder: Path, store: Store) -> None:
        file = folder / "vouchback.toml"
        file.write_text(CONFIG)
        self.config = load_config(file)
        self.store = store
        self.now = NOW
        self.key = SigningKey("k1")
        self.sources, self.view = self.process()

    def process(self) -> tuple[Sources, KeyView]:
        """Return what another process has of the same ledger."""
        sources = Sources(build_sources(self.config))
        return sources, KeyView(sources, self.store.published_keys, self.clock, self.clock)

    def clock(self) -> int:
        """Return the time."""
        return self.now

    def source(self, name: str = "acme") -> Source:
        """Return a source as requests find it now."""
        found = self.sources.named(name)
        assert found is not None
        return found

    def judge(self, key: SigningKey | None = None) -> Verified | Rejected:
        """Judge a signed request and let the view hear of it."""
        pairs = (key or self.key).headers(b"{}", "evt_1")
        headers = tuple((name.lower().encode(), value.encode()) for name, value in pairs)
        request = RawRequest("POST", "https://a.test/in/acme", headers, b"{}")
        return self.heard(self.source(), request)

    def heard(self, source: Source, request: RawRequest) -> Verified | Rejected:
        """Judge a request and let the view hear of it."""
        verdict = verify(request, source.preset, source.keys, self.now // 1000)
        self.view.heed(source, request, verdict)
        return verdict

    async def fetch(self, content: bytes) -> list[str]:
        """Fetch all that is due, as the reconciler would, and return the addresses."""
        keys = self.store.published_keys
        due = await keys.claim(["acme", "sns"], 99, 30_000, self.now)
        for each in due:
            fetched = Fetched(content, None, VALID_MS, 300_000, 60_000)
            await keys.commit(each, fetched, self.now)
        return [each.url for each in due]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """Give a bench over an empty ledger."""
    store = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    yield Bench(tmp_path, store)
    await store.close()


def messages(count: int) -> Iterator[RawRequest]:
    """Yield messages that each name another address for their certificate, all allowed."""
    for number in range(count):
        body = {
            "Type": "Notification", "Message": "m", "MessageId": "i", "TopicArn": "t",
            "Timestamp": "2026-01-01T00:00:00.000Z", "SignatureVersion": "2",
            "Signature": "AAAA", "SigningCertURL": SNS_URL.format(number),
        }  # fmt: skip
        yield RawRequest("POST", "https://a.test/in/sns", (), json.dumps(body).encode())


async def test_no_keys_yet(bench: Bench) -> None:
    """A source that has no keys yet refuses, and its own address is wanted without any request."""
    assert bench.judge() == Rejected(Reason.KEY_UNKNOWN)
    await bench.view.tick()

    assert await bench.fetch(jwks(bench.key)) == [URL]
    await bench.view.tick()

    assert isinstance(bench.judge(), Verified)


async def test_every_process_sees_a_rotation(bench: Bench) -> None:
    """Keys that were fetched by anybody serve in every process, and those that are gone do not."""
    sources, view = bench.process()
    await bench.view.tick()
    await bench.fetch(jwks(bench.key))
    for each in (bench.view, view):
        await each.tick()
    bench.now += 60_000
    new = SigningKey("k2")

    assert bench.judge(new) == Rejected(Reason.KEY_UNKNOWN)
    await bench.view.tick()
    assert await bench.fetch(jwks(new)) == [URL]
    for each in (bench.view, view):
        await each.tick()

    assert isinstance(bench.judge(new), Verified)
    assert bench.judge() == Rejected(Reason.KEY_UNKNOWN)
    other = sources.named("acme")
    assert other is not None
    assert [key.id for key in other.keys.keys] == ["k2"]


async def test_keys_outlive_a_reload(bench: Bench) -> None:
    """A configuration that is read again finds the keys in place with its first request."""
    await bench.view.tick()
    await bench.fetch(jwks(bench.key))
    await bench.view.tick()

    bench.sources.replace(build_sources(bench.config))

    assert isinstance(bench.judge(), Verified)


async def test_keys_of_another_address_are_not_used(bench: Bench) -> None:
    """Keys that were fetched from an address that the configuration gave up serve no more."""
    await bench.view.tick()
    await bench.fetch(jwks(bench.key))
    await bench.view.tick()
    source = bench.source()
    assert source.preset.published is not None
    published = replace(source.preset.published, url=URL + "/moved")

    moved = replace(source, preset=replace(source.preset, published=published))
    bench.sources.replace({"acme": moved})

    assert bench.judge() == Rejected(Reason.KEY_UNKNOWN)


async def test_keys_end(bench: Bench) -> None:
    """Keys that could not be fetched anew serve until their time is over, and no longer."""
    await bench.view.tick()
    await bench.fetch(jwks(bench.key))
    bench.now += VALID_MS - 1
    await bench.view.tick()
    assert isinstance(bench.judge(), Verified)

    bench.now += 1
    await bench.view.tick()

    assert bench.judge() == Rejected(Reason.KEY_UNKNOWN)


async def test_a_flood_of_unknown_keys_writes_nothing(bench: Bench) -> None:
    """Of a flood of unknown key ids the ledger hears once; what is scheduled is not said again."""
    await bench.view.tick()
    await bench.fetch(jwks(bench.key))
    await bench.view.tick()
    revision = (await bench.store.published_keys.after(0))[-1].revision

    for number in range(500):
        assert bench.judge(SigningKey(f"none-{number}")) == Rejected(Reason.KEY_UNKNOWN)
        assert number == 0 or not bench.view._wanted["acme"]
        if number == 0:
            await bench.view.tick()
            await bench.view.tick()

    assert [d.revision for d in await bench.store.published_keys.after(0)] == [revision + 1]


async def test_a_wrong_signature_of_a_named_key(bench: Bench) -> None:
    """A forgery under a known name makes a fetch due, too: the provider may have reused the name."""
    await bench.view.tick()
    await bench.fetch(jwks(bench.key))
    await bench.view.tick()
    bench.now += 60_000

    assert bench.judge(SigningKey("k1")) == Rejected(Reason.SIGNATURE_MISMATCH)
    await bench.view.tick()

    assert await bench.fetch(jwks(bench.key)) == [URL]


async def test_a_flood_of_addresses_is_bounded(bench: Bench) -> None:
    """However many allowed addresses requests name, a source has few, and asks few a minute."""
    asked: list[str] = []
    for second in range(120):
        for message in messages(500):
            source = bench.source("sns")
            verdict = Rejected(Reason.KEY_UNKNOWN)
            bench.view.heed(source, replace_url(message, second), verdict)
        assert len(bench.view._wanted["sns"]) <= DOCUMENTS_MAX
        await bench.view.tick()
        asked += [url for url in await bench.fetch(b"x") if url != URL]
        bench.now += 1_000

    documents = await bench.store.published_keys.after(0)
    assert len([d for d in documents if d.source == "sns"]) == DOCUMENTS_MAX
    assert len(bench.view._documents) <= DOCUMENTS_MAX + 1
    assert len(asked) <= 2 * DOCUMENTS_MAX


def replace_url(message: RawRequest, second: int) -> RawRequest:
    """Return the message with an address that no second before had."""
    body = message.body.replace(b".pem", b"x%d.pem" % second)
    return RawRequest(message.method, message.url, (), body)


async def test_a_document_that_verified_keeps_its_place(bench: Bench) -> None:
    """A certificate that has verified a message is not driven out by made-up ones."""
    [message] = messages(1)
    url = SNS_URL.format(0)
    assert bench.heard(bench.source("sns"), message) == Rejected(Reason.KEY_UNKNOWN)
    await bench.view.tick()
    await bench.fetch(b"a certificate")
    await bench.view.tick()
    bench.view._prove(bench.source("sns"), url)
    await bench.view.tick()

    for second in range(100, 300):
        for other in messages(20):
            bench.view.heed(
                bench.source("sns"), replace_url(other, second), Rejected(Reason.KEY_UNKNOWN)
            )
        await bench.view.tick()
        bench.now += 1_000

    found = {d.url: d.proven_at for d in await bench.store.published_keys.after(0)}
    assert found[url] == NOW


@pytest.mark.parametrize("url", ["https://evil.test/x.pem", "http://sns.eu-west-1.amazonaws.com/"])
async def test_an_address_that_is_not_sure_is_not_wanted(bench: Bench, url: str) -> None:
    """A message with its key elsewhere is refused for that, and nobody is asked (F18, SC-16)."""
    [message] = messages(1)
    body = message.body.replace(SNS_URL.format(0).encode(), url.encode())

    verdict = bench.heard(bench.source("sns"), RawRequest("POST", message.url, (), body))
    await bench.view.tick()

    assert verdict == Rejected(Reason.KEY_URL_UNTRUSTED)
    assert await bench.fetch(b"") == [URL]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ('[sources.a]\npreset = "aws-sns"\nkeys_url = "https://a.test/"', "names the address"),
        ('[sources.a]\npreset = "stripe"\nkeys_url = "https://a.test/"', "has no published keys"),
    ],
)
async def test_an_address_that_a_preset_does_not_take(
    tmp_path: Path, sources: str, message: str
) -> None:
    """An address of keys that would never be asked is an error at the start."""
    file = tmp_path / "vouchback.toml"
    file.write_text(sources)

    with pytest.raises(ConfigError, match=f"sources.a.keys_url: .*{message}"):
        build_sources(load_config(file))
