"""Bodies of a running installation move to files, and what is lost is said to be."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.engines import on_both_engines
from tests.support.installation import Installation
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, on_both_engines]

#: Two rounds of upkeep.
ROUNDS_S = 40.0


def test_bodies_move_to_files(install: Callable[[], Installation], tmp_path: Path) -> None:
    """API and command line give the moved bytes back; of a damaged file they give an error and none."""
    folder = tmp_path / "blobs"
    folder.mkdir(mode=0o700)
    gateway = install()
    sender = gateway.source("acme")
    gateway.section(f'[retention]\noffload_bytes = 100\noffload_after_s = 0\nfolder = "{folder}"\n')
    gateway.start()
    body = b'{"text": "%s"}' % (b"x" * 100)
    assert gateway.post(sender.sign(body).raw()).status == 200
    (event,) = gateway.events("acme")
    event_id = str(event["event_id"])

    name = sha256(body).hexdigest()
    (file,) = until(lambda: list(folder.glob(f"*/{name}")), "the body moves", ROUNDS_S)
    assert gateway.body(event_id) == body

    def damage() -> bool:
        file.write_bytes(body[::-1])
        return gateway.api("GET", f"/v1/events/{event_id}/body").status == 500

    until(damage, "the ledger lets go of the body")
    answer = gateway.api("GET", f"/v1/events/{event_id}/body")
    url = f"http://127.0.0.1:{gateway.internal}"
    told = gateway.run("events", "raw", event_id, "--url", url)

    assert answer.json()["type"] == "/problems/body-lost"
    assert (told.returncode, told.stdout) == (69, "")
    assert "missing or damaged" in told.stderr


def test_a_folder_that_is_not_there(install: Callable[[], Installation], tmp_path: Path) -> None:
    """A start without the shared folder ends with the way out and no folder of its own."""
    gateway = install()
    gateway.section(f'[retention]\nfolder = "{tmp_path / "share" / "blobs"}"\n')
    gateway.write()

    ended = gateway.run("serve")

    assert ended.returncode == 78
    assert "Mount the share" in ended.stderr
    assert not (tmp_path / "share").exists()
