"""What the parts of a `dev` run share, and the part of the user: jobs made, operations registered.

A user's program would do what stands here: create a job at the provider, then register it through
the API.
"""

import asyncio
import json
from dataclasses import dataclass
from random import Random
from typing import Protocol

from gateway.cli.client import Api, exchange
from gateway.cli.dev.folder import PROFILE
from gateway.cli.dev.watch import Line, Watch
from gateway.cli.runtime import Running
from gateway.config import Config
from gateway.demo.provider import DemoProvider
from reconciler.config import resolve_secret
from reconciler.domain.operation import Operation

_BETWEEN_JOBS_S = 0.35
#: Every so many jobs one is registered late, so that its events arrive before its operation.
_LATE_EVERY = 8
_LATE_S = 1.5


@dataclass(frozen=True, slots=True)
class Script:
    """What a run is to do."""

    operations: int
    once: bool
    seed: int
    random: Random


@dataclass(slots=True)
class Stage:
    """What the parts of a run share."""

    config: Config
    script: Script
    provider: DemoProvider
    running: Running
    watch: Watch
    operations: list[str]
    stop: asyncio.Event

    async def records(self) -> list[Operation]:
        """Return the operations of this run as they stand."""
        found = [await self.running.store.operations.get(name) for name in self.operations]
        return [operation for operation in found if operation is not None]

    async def over(self) -> bool:
        """Whether every operation has ended and the provider has nothing left to tell."""
        records = await self.records()
        complete = len(records) == self.script.operations and self.provider.quiet
        return complete and all(operation.rule.final for operation in records)

    def api(self) -> Api:
        """Return the API with the first token."""
        token = self.running.token_file.read_text("ascii").strip()
        return Api(f"http://{self.config.settings.internal.listen}", token)


class Voice(Protocol):
    """Who tells people what happens."""

    def started(self, config: Config) -> None:
        """Everything listens."""

    def step(self, line: Line) -> None:
        """Something happened."""

    def ended(self, stage: Stage) -> None:
        """All operations have ended, and the run goes on."""


def api_secret(config: Config) -> str:
    """Return what callers of the demo provider must send."""
    reference = config.settings.profiles[PROFILE].secret
    assert reference is not None  # `folder.load` has looked
    return resolve_secret(reference, config.folder)


async def act(stage: Stage) -> None:
    """Create jobs at the provider and register each as an operation."""
    async with asyncio.TaskGroup() as registering:
        for number in range(1, stage.script.operations + 1):
            job_id = await asyncio.to_thread(_create, stage, number)
            late_s = _LATE_S if number % _LATE_EVERY == 0 else 0
            registering.create_task(_register(stage, job_id, late_s))
            await asyncio.sleep(_BETWEEN_JOBS_S)


def _create(stage: Stage, number: int) -> str:
    url = stage.config.settings.profiles[PROFILE].base_url or ""
    headers = [("Authorization", f"Bearer {api_secret(stage.config)}")]
    body = json.dumps({"reference": f"order-{number}"}).encode()
    answer = exchange(url, "POST", "/jobs", headers=headers, body=body)
    job_id: str = json.loads(answer.body)["id"]
    return job_id


async def _register(stage: Stage, job_id: str, late_s: float) -> None:
    await asyncio.sleep(late_s)
    document = {"profile": PROFILE, "remote_job_id": job_id}
    _, operation = await asyncio.to_thread(stage.api().post, "/v1/operations", document)
    stage.operations.append(operation["operation_id"])
