"""Several nodes on one ledger, with parts that die, part, and come back.

Each test prints how many events were acknowledged and how many of those are lost; `-s` shows it.
"""

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import Cluster
from tests.support.installation import Installation
from tests.support.job_api import JobApi, silence
from tests.support.load import Load
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

#: limits.acknowledge_s, and the way there and back.
ANSWERED_S = 5.5


@pytest.fixture
def cluster(tmp_path: Path, jobs: JobApi) -> Iterator[Cluster]:
    """Run two gateways, two reconcilers, a primary and a replica that is waited for."""
    with Cluster(tmp_path, jobs) as running:
        yield running


def _runs(*loads: Load, more: int = 40) -> None:
    """Wait until each load has had so many further acknowledgements."""
    for load in loads:
        wanted = len(load.acknowledged) + more
        until(lambda load=load, n=wanted: len(load.acknowledged) >= n, "the load runs")  # type: ignore[misc]


def _report(what: str, cluster: Cluster, lost: int) -> None:
    sys.stdout.write(f"\n{what}: acknowledged {len(cluster.acknowledged)}, lost {lost}\n")


def _check(cluster: Cluster, what: str) -> None:
    """Check what must hold whatever happened."""
    lost = cluster.lost()
    _report(what, cluster, len(lost))
    assert lost == set()
    for signed in cluster.unanswered.values():
        assert [gateway.post(signed.raw()).status for gateway in cluster.gateways] == [200, 200]
    assert cluster.stored() >= set(cluster.acknowledged) | set(cluster.unanswered)
    assert cluster.ended() == cluster.wanted
    for fence, reads, steps in cluster.claims_and_commits():
        assert reads <= fence
        assert [before for before, _ in steps] == [None, *(after for _, after in steps[:-1])]


def test_each_process_in_turn_is_killed_under_load(cluster: Cluster) -> None:
    """Gateway, reconciler, primary, replica: nothing acknowledged is lost, all operations end."""
    cluster.register(9, length_s=8)
    survivor, victim = cluster.gateways
    with cluster.load(survivor) as load:
        with cluster.load(victim) as other:
            _runs(load, other)
            victim.kill()
        cluster.note(other)
        _runs(load)
        victim.start()
        cluster.reconcilers[0].kill()
        _runs(load)
        cluster.reconcilers[0].start()
        with cluster.load(victim) as other:
            for server in (cluster.primary, cluster.replica):
                _runs(load, other)
                server.kill()
                server.start()
                _runs(load, other)
        cluster.note(other)
    cluster.note(load)
    _check(cluster, "each killed in turn")


def test_without_its_replica_nothing_is_acknowledged(cluster: Cluster) -> None:
    """The replica is away: 503 with Retry-After in time, both gateways unready; then it goes on."""
    cluster.replica.kill()
    for gateway in cluster.gateways:
        begun = time.monotonic()
        answer = gateway.post(gateway.senders["jobs"].sign(b"{}").raw())
        assert (answer.status, answer.header("retry-after")) == (503, "5")
        assert time.monotonic() - begun < ANSWERED_S
        assert cluster.ready(gateway) == (503, ["storage"])
    cluster.replica.start()
    cluster.all_ready()
    for gateway in cluster.gateways:
        assert gateway.post(gateway.senders["jobs"].sign(b"{}").raw()).status == 200


def test_nodes_that_are_cut_off_answer_in_time(cluster: Cluster) -> None:
    """Every byte between nodes and primary is lost: 503 in time, then all goes on by itself."""
    cluster.register(3, length_s=3)
    with cluster.load(cluster.gateways[0]) as load:
        _runs(load)
        cluster.nodes_link.cut()
        begun = time.monotonic()
        signed = cluster.gateways[1].senders["jobs"].sign(b"{}")
        assert cluster.gateways[1].post(signed.raw()).status == 503
        assert time.monotonic() - begun < ANSWERED_S
        for node in cluster.nodes:
            assert cluster.ready(node) == (503, ["storage"])
        cluster.nodes_link.heal()
        _runs(load)
    cluster.note(load)
    cluster.all_ready()
    assert {status for _, status in load.answered} == {200, 503}
    _check(cluster, "nodes cut off from the primary")


def test_a_promotion_loses_nothing_that_was_acknowledged(cluster: Cluster) -> None:
    """The primary dies under load and its replica takes over: every acknowledged event is there."""
    cluster.register(6, length_s=6)
    with cluster.load(cluster.gateways[0]) as load, cluster.load(cluster.gateways[1]) as other:
        _runs(load, other, more=100)
        cluster.promote()
        cluster.rejoin()
        _runs(load, other)
    cluster.note(load)
    cluster.note(other)
    cluster.all_ready()
    _check(cluster, "promotion under load")


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_replica_that_was_cut_off_is_promoted(
    tmp_path: Path, jobs: JobApi, replicas: int
) -> None:
    """Waiting for the replica nothing is acknowledged and nothing lost; not waiting loses events."""
    with Cluster(tmp_path, jobs, replicas) as cluster:
        with cluster.load(cluster.gateways[0]) as load:
            _runs(load)
            # Whoever does not wait for the replica lets it catch up first: the loss is the cut's.
            time.sleep(0.1)
            before = len(load.acknowledged)
            cluster.replication_link.cut()
            until(lambda: len(load.answered) >= before + 5, "answers during the cut", 30)
        cluster.note(load)
        cluster.promote()
        cluster.rejoin()
        cluster.all_ready()
        lost = cluster.lost()
        _report(f"a cut-off replica is promoted, replicas={replicas}", cluster, len(lost))
        assert bool(lost) == (replicas == 0)
        assert {status for _, status in load.answered} == ({200} if replicas == 0 else {200, 503})


def test_fifty_at_once_at_both_gateways_are_one_event(cluster: Cluster, tmp_path: Path) -> None:
    """The same request, 25 times at each of two gateways: 50 successes and one event, seen 50."""
    signed = cluster.gateways[0].senders["jobs"].sign(b'{"type": "once"}')
    (tmp_path / "request").write_bytes(signed.raw())
    clients = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.volley", str(gateway.public), "25", "request"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=gateway.environment,
        )
        for gateway in cluster.gateways
    ]
    for client in clients:
        assert client.stdout is not None
        assert client.stdout.readline() == "ready\n"
    for client in clients:
        assert client.stdin is not None
        client.stdin.write("go\n")
        client.stdin.flush()
    answers = [json.loads(client.communicate(timeout=30)[0]) for client in clients]
    assert list(itertools.chain(*answers)) == [200] * 50
    assert [event["seen"] for event in cluster.gateways[1].events("jobs")] == [50]


def test_a_reconciler_that_was_frozen_past_its_lease_commits_nothing(
    cluster: Cluster, jobs: JobApi
) -> None:
    """Another one takes over and ends the operation; who wakes up has lost the lease and says so."""
    cluster.reconcilers[1].stop()
    frozen = cluster.reconcilers[0]
    jobs.job("job_frozen", silence(), "succeeded")
    operation = cluster.gateways[0].register("jobs", remote_job_id="job_frozen")
    until(lambda: jobs.reads("job_frozen"), "the read is under way")
    frozen.signal(signal.SIGSTOP)
    cluster.reconcilers[1].start()
    ended = cluster.gateways[1].ends(operation["operation_id"])
    before = _told(cluster.gateways[0], operation["operation_id"])
    frozen.signal(signal.SIGCONT)
    until(lambda: '"event": "lease_lost"' in frozen.log, "the lease is lost")
    assert ended["state"] == "succeeded"
    assert _told(cluster.gateways[0], operation["operation_id"]) == before


def _told(gateway: Installation, operation_id: str) -> tuple[object, ...]:
    return gateway.history(operation_id), gateway.observations(operation_id)
