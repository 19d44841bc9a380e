"""No space: 503 with Retry-After, never a false 2xx, and recovery by itself when space returns.

Two ways to run out: a limit on the size of files (the write fails with EFBIG), and a small file
system of its own, where the machine lets a test mount one (ENOSPC).
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.installation import Installation
from tests.support.job_api import JobApi
from tests.support.signing import Sender
from tests.support.waiting import until
from tests.support.wire import Answer, exchange, request

pytestmark = pytest.mark.e2e

PAD = "x" * 15_000


def _send(gateway: Installation, sender: Sender, event_id: str) -> Answer:
    signed = sender.sign(f'{{"type": "big", "pad": "{PAD}"}}'.encode(), event_id=event_id)
    return gateway.post(signed.raw())


def _ready(gateway: Installation) -> Answer:
    return exchange(gateway.internal, request("GET", "/readyz"))


def _ids(gateway: Installation) -> set[str]:
    return {event["provider_event_id"] for event in gateway.events("hooks")}


def test_a_failing_write_is_503_and_heals(install: Callable[[], Installation]) -> None:
    """While no byte can be written everything is 503; afterwards everything works again at once."""
    gateway = install()
    hooks = gateway.source("hooks")
    gateway.start()
    assert _send(gateway, hooks, "before").status == 200
    gateway.limit_file_size(1_000)
    begun = time.monotonic()
    refused = [_send(gateway, hooks, f"during_{number}") for number in range(5)]
    took_s = time.monotonic() - begun
    duplicate = _send(gateway, hooks, "before")
    forged = gateway.post(Sender("hooks").sign(b"{}").raw())
    unready = _ready(gateway)
    alive = exchange(gateway.internal, request("GET", "/livez"))
    token = gateway.api("POST", "/v1/tokens", {"role": "viewer"})
    readable = _ids(gateway)
    gateway.limit_file_size(None)
    until(lambda: _ready(gateway).status == 200, "it is ready again")
    healed = [_send(gateway, hooks, f"during_{number}").status for number in range(5)]
    assert [(a.status, a.header("retry-after")) for a in refused] == [(503, "5")] * 5
    assert took_s < 2 * 5
    # A duplicate's success, too, would be a claim that something is on disk.
    assert (duplicate.status, forged.status) == (503, 401)
    assert (unready.status, unready.json()["reasons"]) == (503, ["storage"])
    assert alive.status == 200
    assert (token.status, token.header("retry-after")) == (503, "5")
    assert readable == {"before"}
    assert healed == [200] * 5
    assert _ids(gateway) == {"before", *(f"during_{number}" for number in range(5))}
    assert gateway.stop() == 0


def test_operations_go_on_when_space_returns(
    install: Callable[[], Installation], jobs: JobApi
) -> None:
    """Reads whose commit failed are made again; the operation ends as the provider says."""
    gateway = install()
    gateway.profile("jobs")
    gateway.start()
    jobs.job("job_1", "running")
    operation_id = gateway.register("jobs", remote_job_id="job_1")["operation_id"]
    until(lambda: gateway.observations(operation_id), "the first read")
    gateway.limit_file_size(1_000)
    until(lambda: _ready(gateway).status == 503, "the store is down")
    jobs.job("job_1", "succeeded")
    gateway.limit_file_size(None)
    assert gateway.ends(operation_id)["state"] == "succeeded"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 3 MiB, where that is allowed."""
    place = tmp_path / "small"
    place.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or mount is None or umount is None:
        pytest.skip("mounting a small file system needs root")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)],
        check=False,
        capture_output=True,
    )
    if made.returncode != 0:
        pytest.skip("this machine does not let us mount a small file system")
    try:
        yield place
    finally:
        subprocess.run([umount, str(place)], check=True)


def test_a_full_disk_keeps_what_was_acknowledged(
    small_disk: Path, install: Callable[[], Installation]
) -> None:
    """Filled to the last block: 503 from then on; with space again, nothing acknowledged is gone.

    The reserve that is deleted stands for the operator who makes room.
    """
    reserve = small_disk / "reserve"
    reserve.write_bytes(b"x" * 2_200_000)
    gateway = install()
    hooks = gateway.source("hooks")
    gateway.replace("sqlite:data/", f"sqlite:{small_disk}/")
    gateway.token_folder = small_disk
    gateway.start()
    answers: dict[str, int] = {}
    for number in range(200):
        answers[f"e{number}"] = _send(gateway, hooks, f"e{number}").status
        if list(answers.values())[-5:] == [503] * 5:
            break
    acknowledged = {event_id for event_id, status in answers.items() if status == 200}
    assert set(answers.values()) == {200, 503}
    assert len(acknowledged) >= 5
    assert acknowledged <= _ids(gateway)
    reserve.unlink()
    until(lambda: _send(gateway, hooks, "e0").status == 200, "it works again")
    again = {event_id: _send(gateway, hooks, event_id).status for event_id in answers}
    assert set(again.values()) == {200}
    assert _ids(gateway) == set(answers)
    assert gateway.stop() == 0
    gateway.start()
    assert _ids(gateway) == set(answers)
    gateway.close()


def test_a_log_that_cannot_be_written_does_not_stop_the_intake(
    install: Callable[[], Installation],
) -> None:
    """With its stderr gone, the server goes on accepting, refusing and recording."""
    gateway = install()
    hooks = gateway.source("hooks")
    gateway.start()
    gateway.cut_log()
    first = hooks.sign(b'{"n": 1}')
    other = hooks.sign(b'{"n": 2}', event_id=first.event_id)  # a conflict is logged
    statuses = [gateway.post(signed.raw()).status for signed in (first, other, first)]
    reloaded = gateway.api("POST", "/v1/config/reload").status
    assert statuses == [200] * 3
    assert reloaded == 200
    assert gateway.stop() == 0
