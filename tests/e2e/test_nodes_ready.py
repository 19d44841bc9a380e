"""What a node says of itself: `/readyz` is true, and whoever must act reads what to do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import valkey
from tests.support.cluster import Cluster
from tests.support.installation import Installation
from tests.support.job_api import JobApi
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: A setting, its wrong value, and the right one.
SETTINGS = [
    ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ("appendfsync", "everysec", "always"),
    ("appendonly", "no", "yes"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, jobs: JobApi) -> Iterator[Cluster]:
    """Run two gateways, two reconcilers, a primary and a replica; each test mends what it broke."""
    with Cluster(tmp_path_factory.mktemp("ready"), jobs) as running:
        yield running


def _all_unready(cluster: Cluster, sentence: str) -> None:
    """Every node says `storage` to whoever asks, and the sentence in its own log."""
    for node in cluster.nodes:
        assert cluster.ready(node) == (503, ["storage"])
        until(lambda node=node: sentence in node.log, f"the log says: {sentence}")  # type: ignore[misc]


@pytest.mark.parametrize(("name", "wrong", "right"), SETTINGS)
def test_a_setting_that_is_weakened_makes_every_node_unready(
    cluster: Cluster, name: str, wrong: str, right: str
) -> None:
    """Set wrong at run time: 503 with a slug, no acknowledgement, the very command in the log."""
    cluster.all_ready()
    cluster.primary.ask("CONFIG", "SET", name, wrong)
    gateway = cluster.gateways[0]
    said = gateway.log.count('"event": "storage_unready"')
    for _ in range(3):
        _all_unready(cluster, f"{name} is {wrong}; set: CONFIG SET {name} {right}")
    assert gateway.log.count('"event": "storage_unready"') == said + 1
    answer = gateway.post(gateway.senders["jobs"].sign(b"{}").raw())
    assert (answer.status, answer.header("retry-after")) == (503, "5")
    cluster.primary.ask("CONFIG", "SET", name, right)
    cluster.all_ready()


def test_without_the_primary_every_node_is_unready(cluster: Cluster) -> None:
    """The primary is gone: 503 with a slug at every node, and ready again when it is back."""
    cluster.all_ready()
    cluster.primary.kill()
    _all_unready(cluster, "the ledger cannot be used")
    cluster.primary.start()
    cluster.all_ready()


def test_without_the_replica_every_node_is_unready(cluster: Cluster) -> None:
    """The replica is gone: 503 with a slug, the log says how many answered of how many."""
    cluster.all_ready()
    cluster.replica.kill()
    _all_unready(cluster, "on 0 of 1 replicas")
    cluster.replica.start()
    cluster.all_ready()


@pytest.mark.parametrize(("name", "wrong", "right"), SETTINGS)
def test_a_server_that_is_set_wrong_is_refused_at_the_start(
    tmp_path: Path, name: str, wrong: str, right: str
) -> None:
    """Exit code 78 with the command that mends it; no traceback, and nothing was written."""
    with valkey.running(tmp_path / "server", **{name: wrong}) as server:
        node = Installation(tmp_path / "node", storage=server.url())
        node.write()
        ended = node.run("serve", "--role", "gateway")
        assert (ended.returncode, "Traceback" in ended.stderr) == (78, False)
        assert f"{name} is {wrong}; set: CONFIG SET {name} {right}" in ended.stderr
        assert server.ask("DBSIZE") == 0


def test_a_replica_and_nobody_are_refused_at_the_start(tmp_path: Path) -> None:
    """A URL that names a replica, or no server at all: exit code 78 and what to look at."""
    with valkey.running(tmp_path / "primary") as primary:
        of = f"127.0.0.1 {primary.port}"
        with valkey.running(tmp_path / "replica", replicaof=of) as replica:
            node = Installation(tmp_path / "node", storage=replica.url())
            node.write()
            of_a_replica = node.run("serve")
        of_nobody = node.run("serve")
    assert (of_a_replica.returncode, of_nobody.returncode) == (78, 78)
    assert "the server is a replica; name the primary in storage.url" in of_a_replica.stderr
    assert "cannot be reached" in of_nobody.stderr
    assert "check storage.url" in of_nobody.stderr
