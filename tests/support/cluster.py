"""Two gateways and two reconcilers on a primary with one replica, all on loopback.

The nodes reach the primary through a forwarder, so that a promotion is one switch and no restart;
the replica reaches it through another one, so that the link between the two can be lost.
"""

import contextlib
import itertools
from pathlib import Path
from typing import Self

from tests.support.forwarder import Forwarder
from tests.support.installation import Installation
from tests.support.job_api import JobApi, timeline
from tests.support.load import Load
from tests.support.signing import Signed
from tests.support.valkey import Server, wait_online
from tests.support.waiting import until
from tests.support.wire import exchange, request

#: A provider's job ends one way or another, some time after it was made.
ENDS = ("succeeded", "failed", "cancelled")


class Cluster:
    """A context manager; `replicas` is what an acknowledgement must have reached."""

    def __init__(self, folder: Path, jobs: JobApi, replicas: int = 1) -> None:
        self._stack = contextlib.ExitStack()
        self._jobs = jobs
        self._numbers = itertools.count()
        self._primary_server = Server(folder / "primary")
        self.nodes_link = Forwarder(self._primary_server.port)
        self.replication_link = Forwarder(self._primary_server.port)
        of = f"127.0.0.1 {self.replication_link.port}"
        self.primary, self.replica = self._primary_server, Server(folder / "replica", replicaof=of)
        storage = f"redis://127.0.0.1:{self.nodes_link.port}/?ledger=test&replicas={replicas}"
        first = Installation(folder / "nodes", provider_port=jobs.port, storage=storage)
        first.profile("jobs")
        first.source("jobs", "jobs")
        first.role = "gateway"
        self.gateways = [first, first.node("gateway")]
        self.reconcilers = [first.node("reconciler"), first.node("reconciler")]
        #: What the provider will say of each job in the end.
        self.wanted: dict[str, str] = {}
        #: Requests that were acknowledged, and those that were sent without an answer.
        self.acknowledged: dict[str, Signed] = {}
        self.unanswered: dict[str, Signed] = {}

    def __enter__(self) -> Self:
        with self._stack as stack:
            stack.enter_context(self.nodes_link)
            stack.enter_context(self.replication_link)
            for server in (self.primary, self.replica):
                stack.callback(server.stop)
                server.start()
            wait_online(self.primary)
            for node in self.nodes:
                stack.callback(node.close)
                node.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def nodes(self) -> list[Installation]:
        """All four processes."""
        return [*self.gateways, *self.reconcilers]

    # What happens to it

    def promote(self) -> None:
        """End the primary for good, as a failed machine does, and go on with the replica."""
        self.primary.kill()
        self.replica.ask("REPLICAOF", "NO", "ONE")
        self.primary, self.replica = self.replica, self.primary
        self.nodes_link.switch(self.primary.port)

    def rejoin(self) -> None:
        """Let the machine that failed come back, as the replica of the new primary."""
        self.replication_link.heal()
        self.replication_link.switch(self.primary.port)
        self.replica.settings["replicaof"] = f"127.0.0.1 {self.replication_link.port}"
        self.replica.start()
        wait_online(self.primary)

    # What it is asked

    def register(self, count: int, length_s: float = 2.0) -> None:
        """Register jobs that end one way or another within `length_s`."""
        for number in range(count):
            job_id = f"job_{len(self.wanted)}"
            end = self.wanted[job_id] = ENDS[number % len(ENDS)]
            at_s = length_s * (number + 1) / count
            self._jobs.job(job_id, timeline((0, "queued"), (at_s / 2, "running"), (at_s, end)))
            self.gateways[0].register("jobs", remote_job_id=job_id)

    def load(self, gateway: Installation, connections: int = 2) -> Load:
        """Return a load of events about the jobs."""
        return Load(gateway.public, self._event, connections)

    def _event(self) -> Signed:
        number = next(self._numbers)
        job_id = f"job_{number % max(1, len(self.wanted))}"
        return self.gateways[0].senders["jobs"].about(job_id, f"step{number}")

    def note(self, load: Load) -> None:
        """Remember what a load that has ended was told."""
        self.acknowledged |= {signed.event_id: signed for signed in load.acknowledged}
        self.unanswered |= {signed.event_id: signed for signed in load.unanswered}

    def ready(self, node: Installation) -> tuple[int, list[str]]:
        """Return the status of a node's `/readyz`, and its reasons."""
        answer = exchange(node.internal, request("GET", "/readyz"))
        return answer.status, answer.json().get("reasons", [])

    def all_ready(self) -> None:
        """Wait until every node says that it is ready."""
        for node in self.nodes:
            until(lambda node=node: self.ready(node)[0] == 200, "a node is ready")  # type: ignore[misc]

    # What must be true in the end

    def lost(self) -> set[str]:
        """Return which acknowledged events the ledger does not have."""
        return set(self.acknowledged) - self.stored()

    def stored(self) -> set[str]:
        """Return the ids that providers gave to the events of the ledger."""
        events = self.gateways[0].events("jobs")
        ids = {str(event["provider_event_id"]) for event in events}
        assert len(ids) == len(events), "an event stands twice"
        return ids

    def ended(self) -> dict[str, str]:
        """Wait for the end of every operation and return how each job ended."""
        gateway = self.gateways[0]
        operations = gateway.get("/v1/operations?limit=200")["items"]
        ended = {o["remote_job_id"]: gateway.ends(o["operation_id"], 30) for o in operations}
        return {job_id: operation["state"] for job_id, operation in ended.items()}

    def claims_and_commits(self) -> list[tuple[int, int, list[tuple[str | None, str]]]]:
        """Return of each operation its last fence, its status reads, and its history's steps.

        Each claim has a fence of its own, so whatever was committed under two leases at once
        would show as more commits than fences, or as steps that do not follow on each other.
        """
        found = []
        for operation in self.gateways[0].get("/v1/operations?limit=200")["items"]:
            operation_id = operation["operation_id"]
            history = self.gateways[0].history(operation_id)
            reads = self.gateways[0].observations(operation_id)
            assert len({read["observation_id"] for read in reads}) == len(reads)
            fence = int(self.primary.ask("HGET", _record(operation_id), "fence"))
            steps = [(line["from"], line["to"]) for line in history]
            found.append((fence, len(reads), steps))
        return found


def _record(operation_id: str) -> str:
    return f"{{vouchback:test}}:operation:{operation_id}"
