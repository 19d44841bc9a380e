"""Files named by their content: durable before they have a name, checked when read, swept late."""

import asyncio
import errno
import os
import time
from hashlib import sha256
from pathlib import Path

import pytest

from reconciler.storage.blobs.files import GRACE_MS, BlobFiles, open_folder
from reconciler.storage.errors import BodyLostError, LedgerError, StorageUnavailableError
from reconciler.storage.sqlite.store import SQLiteStore, open_store
from tests.support.builders import NOW, new_event

pytestmark = pytest.mark.anyio

BODY = b"what a provider said"
DIGEST = sha256(BODY).digest()
NAME = DIGEST.hex()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Name a folder that is not there yet."""
    return tmp_path / "blobs"


@pytest.fixture
def blobs(folder: Path) -> BlobFiles:
    """Give an empty store."""
    return open_folder(folder, is_ours=True)


def files(folder: Path) -> list[str]:
    """Return the names of all files."""
    return sorted(each.name for each in folder.rglob("*") if each.is_file())


def modes(folder: Path) -> set[int]:
    """Return the modes of the folder and of all in it."""
    return {each.stat().st_mode & 0o777 for each in (folder, *folder.rglob("*"))}


def unmount(folder: Path) -> None:
    """Let the folder be away."""
    folder.rename(folder.with_name("unmounted"))


async def test_put_and_get(blobs: BlobFiles, folder: Path) -> None:
    """What was put comes back; the name is the digest, and one content is one file."""
    assert await blobs.put(BODY) == DIGEST
    assert await blobs.put(BODY) == DIGEST
    await blobs.put(b"")

    assert await blobs.get(DIGEST) == BODY
    assert await blobs.get(sha256(b"").digest()) == b""
    assert files(folder) == sorted([NAME, sha256(b"").hexdigest()])


async def test_private(blobs: BlobFiles, folder: Path) -> None:
    """Nobody but the owner reads files and folders, whatever the umask."""
    before = os.umask(0)
    try:
        await blobs.put(BODY)
    finally:
        os.umask(before)

    assert modes(folder) == {0o700, 0o600}


async def test_durable_before_it_has_its_name(
    blobs: BlobFiles, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content is synced before the name appears, and the folders after it."""
    steps: list[tuple[str, bool]] = []
    fsync = os.fsync

    def sync(file: int) -> None:
        steps.append((Path(f"/proc/self/fd/{file}").readlink().name[:1], NAME in files(folder)))
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync)
    await blobs.put(BODY)

    assert steps == [(".", False), (NAME[0], True), ("b", True)]


async def test_an_unsynced_file_has_no_name(
    blobs: BlobFiles, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk fails, the body is not there and nothing is left over."""

    def fail(_file: int) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageUnavailableError, match="broken"):
        await blobs.put(BODY)

    assert files(folder) == []


async def test_a_damaged_file_is_mended_by_putting_again(blobs: BlobFiles, folder: Path) -> None:
    """A file of that name is not believed to hold the content."""
    await blobs.put(BODY)
    (folder / NAME[:2] / NAME).write_bytes(b"else")

    await blobs.put(BODY)

    assert await blobs.get(DIGEST) == BODY


async def test_lost_or_away(blobs: BlobFiles, folder: Path) -> None:
    """A missing or cut file is lost; a folder that is not there may come back, and is not made."""
    with pytest.raises(BodyLostError, match=f"{NAME} is missing"):
        await blobs.get(DIGEST)
    await blobs.put(BODY)
    (folder / NAME[:2] / NAME).write_bytes(BODY[:-1])
    with pytest.raises(BodyLostError, match=f"{NAME} is damaged"):
        await blobs.get(DIGEST)

    unmount(folder)
    for step in (blobs.get(DIGEST), blobs.put(BODY)):
        with pytest.raises(StorageUnavailableError, match="No such file"):
            await step
    assert files(folder) == []


def test_a_folder_that_was_named_must_be_there(folder: Path) -> None:
    """A share that is not mounted is an error with the way out, never a new folder."""
    with pytest.raises(LedgerError, match="Mount the share"):
        open_folder(folder, is_ours=False)
    assert not folder.exists()


def test_a_folder_that_others_read(folder: Path) -> None:
    """Bodies are private: a folder that is open to others is refused with the way out."""
    folder.mkdir()
    folder.chmod(0o750)
    with pytest.raises(LedgerError, match="chmod 700"):
        open_folder(folder, is_ours=False)


# ---------------------------------------------------------------- sweeping


def aged(folder: Path, name: str) -> None:
    """Make a file older than any grace."""
    for each in folder.rglob(f"{name}*"):
        os.utime(each, (0, 0))


async def sweep(blobs: BlobFiles, store: SQLiteStore) -> int:
    """Look at all folders once; return how many files went."""
    now = time.time_ns() // 1_000_000
    return sum([await blobs.sweep(store.upkeep, now) for _ in range(256)])


async def referred(tmp_path: Path, *, is_referred: bool = True) -> SQLiteStore:
    """Return a ledger with an event whose body is the file."""
    store = open_store(tmp_path / "ledger.db", now=lambda: NOW)
    await store.inbox.record(new_event(1, body=BODY), "cfl", NOW)
    if is_referred:
        await store.upkeep.body_moved(new_event(1).event_id, DIGEST, NOW)
    return store


async def test_files_that_are_referred_to_stay(
    blobs: BlobFiles, folder: Path, tmp_path: Path
) -> None:
    """However old a file is, it stays while an event needs it."""
    await blobs.put(BODY)
    store = await referred(tmp_path)
    for _ in range(3):
        aged(folder, NAME)
        assert await sweep(blobs, store) == 0
    assert files(folder) == [NAME]
    await store.close()


async def test_orphans_go_late(blobs: BlobFiles, folder: Path, tmp_path: Path) -> None:
    """What nobody refers to is put aside after a day, still found, and deleted after another."""
    await blobs.put(BODY)
    store = await referred(tmp_path, is_referred=False)
    assert await sweep(blobs, store) == 0
    assert files(folder) == [NAME]

    aged(folder, NAME)
    assert await sweep(blobs, store) == 0
    assert files(folder) == [f"{NAME}.aside"]
    assert await blobs.get(DIGEST) == BODY
    assert await sweep(blobs, store) == 0

    aged(folder, NAME)
    assert await sweep(blobs, store) == 1
    assert files(folder) == []
    await store.close()


async def test_a_file_that_is_needed_again(blobs: BlobFiles, folder: Path, tmp_path: Path) -> None:
    """A mover that refers to a file while it is put aside loses nothing."""
    await blobs.put(BODY)
    store = await referred(tmp_path, is_referred=False)
    aged(folder, NAME)
    await sweep(blobs, store)
    await store.upkeep.body_moved(new_event(1).event_id, DIGEST, NOW)

    aged(folder, NAME)
    assert await sweep(blobs, store) == 0
    assert files(folder) == [NAME]
    assert await blobs.get(DIGEST) == BODY
    await store.close()


async def test_putting_again_makes_a_file_young(
    blobs: BlobFiles, folder: Path, tmp_path: Path
) -> None:
    """A sweep does not take a file that somebody is about to refer to."""
    await blobs.put(BODY)
    store = await referred(tmp_path, is_referred=False)
    aged(folder, NAME)
    await blobs.put(BODY)

    await sweep(blobs, store)

    assert files(folder) == [NAME]
    await store.close()


async def test_what_a_killed_process_left_goes(
    blobs: BlobFiles, folder: Path, tmp_path: Path
) -> None:
    """A file that never got its name is deleted when it is old, not while it may be written."""
    await blobs.put(BODY)
    (folder / NAME[:2] / ".tmpx").write_bytes(b"half")
    store = await referred(tmp_path)
    assert await sweep(blobs, store) == 0

    aged(folder, ".tmpx")
    assert await sweep(blobs, store) == 1

    assert files(folder) == [NAME]
    assert GRACE_MS == 86_400_000
    await store.close()


async def test_two_nodes(blobs: BlobFiles, folder: Path, tmp_path: Path) -> None:
    """Nodes that put the same content at once, and sweep at once, disturb each other in nothing."""
    other = open_folder(folder, is_ours=False)
    await asyncio.gather(*(each.put(BODY) for each in [blobs, other] * 5))
    assert files(folder) == [NAME]
    store = await referred(tmp_path, is_referred=False)
    for _ in range(2):
        aged(folder, NAME)
        await asyncio.gather(sweep(blobs, store), sweep(other, store))
    assert files(folder) == []
    await store.close()
