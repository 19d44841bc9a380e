"""Bodies that move to files: no instant at which one is lost, no wrong bytes."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from reconciler import upkeep
from reconciler.domain.event import MovedBody
from reconciler.storage.blobs.files import BlobFiles, open_folder
from reconciler.storage.bodies import Bodies
from reconciler.storage.contract import Conflict, Duplicate, Store
from reconciler.storage.errors import BodyLostError
from tests.support.builders import NOW, new_event

pytestmark = pytest.mark.anyio

#: Larger than what SQLite keeps in an event's row, and smaller.
LARGE, MIDDLE = b"x" * 300_000, b"y" * 3_000
HOUR_MS = 3_600_000
BOUNDS = upkeep.Bounds(
    refusals_kept=100, events_ms=HOUR_MS * 48, offload_bytes=3_000, offload_after_ms=HOUR_MS
)


@pytest.fixture
def blobs(tmp_path: Path) -> BlobFiles:
    """Give an empty folder of files."""
    return open_folder(tmp_path / "blobs", is_ours=True)


def files(folder: Path) -> list[Path]:
    """Return all files of the folder."""
    return sorted(each for each in (folder / "blobs").rglob("*") if each.is_file())


async def arrive(store: Store, number: int, body: bytes, at: int = NOW) -> str:
    """Record an event and return its id."""
    event = new_event(number, body=body)
    await store.inbox.record(event, "cfl", at)
    return event.event_id


async def test_which_bodies_move(store: Store) -> None:
    """Bodies of at least the size, of events before the instant, the oldest first, a few at a time."""
    ids = [await arrive(store, n, body) for n, body in enumerate([LARGE, b"small", MIDDLE, LARGE])]
    await arrive(store, 9, LARGE, NOW + 1)

    found = await store.upkeep.bodies_to_move(3_000, NOW + 1, 2)

    assert found == [(ids[0], LARGE), (ids[2], MIDDLE)]
    assert await store.upkeep.bodies_to_move(3_000, NOW + 1, 2) == found
    assert await store.upkeep.bodies_to_move(3_000, NOW, 9) == []
    assert await store.upkeep.bodies_to_move(3_001, NOW + 1, 9) == [
        (ids[0], LARGE),
        (ids[3], LARGE),
    ]


async def test_walks_past_small_ones(store: Store) -> None:
    """However many small bodies stand before a large one, it is found; what is young waits."""
    for number in range(1_200):
        await arrive(store, number, b"small")
    large = await arrive(store, 2_000, LARGE)
    young = await arrive(store, 2_001, MIDDLE, NOW + 1)

    assert await store.upkeep.bodies_to_move(3_000, NOW + 1, 9) == [(large, LARGE)]
    await store.upkeep.body_moved(large, sha256(LARGE).digest(), NOW)
    assert await store.upkeep.bodies_to_move(3_000, NOW + 1, 9) == []
    assert await store.upkeep.bodies_to_move(3_000, NOW + 2, 9) == [(young, MIDDLE)]


async def test_a_moved_body_is_a_reference(store: Store) -> None:
    """The record says where the body is, once; the event is otherwise as it was."""
    for number, body in ((1, LARGE), (2, MIDDLE)):
        event_id = await arrive(store, number, body)
        before = await store.events.get(event_id)
        digest = sha256(body).digest()

        await store.upkeep.body_moved(event_id, digest, NOW)
        await store.upkeep.body_moved(event_id, b"\1" * 32, NOW)

        assert await store.events.body(event_id) == MovedBody(digest)
        assert await store.events.get(event_id) == before
        assert await store.upkeep.blobs_in_use([b"\1" * 32, digest]) == {digest}
    assert await store.upkeep.blobs_in_use([]) == set()


async def test_no_event_to_move(store: Store) -> None:
    """Where the event went meanwhile nothing happens, and the file is not in use."""
    await store.upkeep.body_moved("evt_none", b"\1" * 32, NOW)

    assert await store.events.body("evt_none") is None
    assert await store.upkeep.blobs_in_use([b"\1" * 32]) == set()


async def test_dedup_does_not_need_the_body(store: Store) -> None:
    """Duplicates and conflicts are told apart after the body moved."""
    event_id = await arrive(store, 1, LARGE)
    await store.upkeep.body_moved(event_id, sha256(LARGE).digest(), NOW)

    assert await store.inbox.record(new_event(1, body=LARGE), "c", NOW) == Duplicate(event_id, 2)
    other = await store.inbox.record(new_event(1, body=MIDDLE), "cfl_1", NOW)
    assert other == Conflict(event_id, "cfl_1")


async def test_upkeep_moves(store: Store, blobs: BlobFiles, tmp_path: Path) -> None:
    """One round moves all that is large and old enough; readers get the same bytes as before."""
    bodies = {await arrive(store, n, LARGE + b"%d" % n): LARGE + b"%d" % n for n in range(10)}
    small = await arrive(store, 20, b"small")
    young = await arrive(store, 21, MIDDLE, NOW + 1)

    await upkeep.tick(store.upkeep, blobs, NOW + HOUR_MS + 1, BOUNDS)

    assert [each.name for each in files(tmp_path)] == sorted(
        sha256(body).hexdigest() for body in bodies.values()
    )
    reader = Bodies(store.events, blobs)
    assert {event_id: await reader.read(event_id) for event_id in bodies} == bodies
    assert await reader.read(small) == b"small"
    assert await store.events.body(young) == MIDDLE
    assert await reader.read("evt_none") is None


async def test_a_crash_between_file_and_record(
    open_ledger: Callable[[], Store], blobs: BlobFiles, tmp_path: Path
) -> None:
    """A process that dies with the file written and the record not loses nothing; the next one goes on."""
    store = open_ledger()
    event_id = await arrive(store, 1, LARGE)
    ((_, body),) = await store.upkeep.bodies_to_move(3_000, NOW + 1, 9)
    await blobs.put(body)
    assert await Bodies(store.events, blobs).read(event_id) == LARGE
    await store.close()

    again = open_ledger()
    try:
        await upkeep.tick(again.upkeep, blobs, NOW + HOUR_MS + 1, BOUNDS)
        assert await again.events.body(event_id) == MovedBody(sha256(LARGE).digest())
        assert await Bodies(again.events, blobs).read(event_id) == LARGE
        assert len(files(tmp_path)) == 1
    finally:
        await again.close()


async def test_a_lost_file(store: Store, blobs: BlobFiles, tmp_path: Path) -> None:
    """A missing or damaged file, or no folder at all, is an error that names it, never other bytes."""
    event_id = await arrive(store, 1, LARGE)
    await upkeep.tick(store.upkeep, blobs, NOW + HOUR_MS + 1, BOUNDS)
    reader = Bodies(store.events, blobs)
    (file,) = files(tmp_path)

    file.write_bytes(LARGE[:-1] + b"y")
    with pytest.raises(BodyLostError, match=rf"{file.name} is damaged"):
        await reader.read(event_id)
    file.unlink()
    with pytest.raises(BodyLostError, match=rf"{file.name} is missing"):
        await reader.read(event_id)
    with pytest.raises(BodyLostError, match=r"retention\.folder is not set"):
        await Bodies(store.events, None).read(event_id)
