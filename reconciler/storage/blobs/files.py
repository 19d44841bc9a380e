"""Bodies in files of one folder, each named by its SHA-256 digest; on several nodes a shared one.

A file is complete and on the disk before its name appears, and what is read is checked against its
name: the bytes are the ones that were put, or there is an error. Nothing of a provider's is in a
name. Files are for their owner only.

A body belongs to the event that refers to it. A file that no event has needed for `GRACE_MS` is
first put aside, and after as long again deleted: whoever put it meanwhile, or was about to refer to
it, finds it. So a copy of the ledger must be followed by its copy of the folder within a day.
"""

import asyncio
import os
import tempfile
from hashlib import sha256
from pathlib import Path

from reconciler.storage.contract import Upkeep
from reconciler.storage.errors import BodyLostError, LedgerError, StorageUnavailableError

GRACE_MS = 86_400_000
OTHERS = 0o077
_ASIDE = ".aside"
#: Files stand in folders named by the first byte of their digest; a sweep does one of them.
_FOLDERS = 256


class BlobFiles:
    """`contract.Blobs` in a folder that exists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._swept = 0

    async def put(self, body: bytes) -> bytes:
        """See the contract."""
        digest = sha256(body).digest()
        await asyncio.to_thread(self._put, digest, body)
        return digest

    async def get(self, digest: bytes) -> bytes:
        """See the contract."""
        return await asyncio.to_thread(self._get, digest)

    async def sweep(self, upkeep: Upkeep, now: int) -> int:
        """See the contract. Each call looks at one of 256 folders."""
        folder = self._folder / f"{self._swept:02x}"
        self._swept = (self._swept + 1) % _FOLDERS
        names = await asyncio.to_thread(_older_than, folder, now - GRACE_MS)
        found = {name: digest for name in names if (digest := _digest(name))}
        used = await upkeep.blobs_in_use(sorted(set(found.values()))) if found else set()
        went = 0
        for name in names:
            is_used = found.get(name) in used
            went += await asyncio.to_thread(_settle, folder / name, is_used=is_used)
        return went

    def _put(self, digest: bytes, body: bytes) -> None:
        path = self._path(digest)
        try:
            # Only folders of digests are made: a share that is not mounted is no new place.
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if _read(path) == body:
                os.utime(path)  # young again: no sweep takes it before it is referred to
            else:
                _write(path, body)
            _sync(path.parent)
            _sync(self._folder)
        except OSError as error:
            raise _away(path, error) from error

    def _get(self, digest: bytes) -> bytes:
        path = self._path(digest)
        try:
            body = _read(path)
            if body is None:
                body = _read(path.with_name(path.name + _ASIDE))
            if body is None:
                self._folder.stat()  # is it this file that is missing, or all of them?
        except OSError as error:
            raise _away(path, error) from error
        if body is None:
            raise BodyLostError(f"{path} is missing")
        if sha256(body).digest() != digest:
            raise BodyLostError(f"{path} is damaged: its content is not what its name says")
        return body

    def _path(self, digest: bytes) -> Path:
        name = digest.hex()
        return self._folder / name[:2] / name


def open_folder(folder: Path, *, is_ours: bool) -> BlobFiles:
    """Return the store in `folder`, which is made if it is ours; `LedgerError` says the way out."""
    try:
        if is_ours:
            folder.mkdir(mode=0o700, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        raise LedgerError(
            f"retention.folder: {folder}: {error.strerror}. Mount the share, or create the folder:"
            f" mkdir -m 700 {folder}"
        ) from error
    if mode & OTHERS:
        raise LedgerError(
            f"retention.folder: {folder} can be read or written by others. Run: chmod 700 {folder}"
        )
    return BlobFiles(folder)


# ---------------------------------------------------------------- one file


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(path: Path, body: bytes) -> None:
    """Write a file that is whole, and on the disk, before it has its name."""
    # For its owner only; the name is one that no other node uses.
    file, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(file, "wb") as out:
            out.write(body)
            out.flush()
            os.fsync(out.fileno())
        Path(name).rename(path)
    except BaseException:
        Path(name).unlink()
        raise


def _sync(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _away(path: Path, error: OSError) -> StorageUnavailableError:
    return StorageUnavailableError(f"{path} cannot be used: {error.strerror}")


# ---------------------------------------------------------------- sweeping


def _older_than(folder: Path, before_at: int) -> list[str]:
    """Return the names of the folder's files that nobody wrote or touched since."""
    try:
        entries = list(os.scandir(folder))
        return sorted(each.name for each in entries if _age(each) < before_at)
    except FileNotFoundError:  # nothing was put there yet, or another node's sweep was faster
        return []
    except OSError as error:
        raise _away(folder, error) from error


def _age(entry: "os.DirEntry[str]") -> int:
    return entry.stat().st_mtime_ns // 1_000_000


def _digest(name: str) -> bytes | None:
    """Return the digest that a file is named by; `None` for what a killed process left."""
    try:
        return bytes.fromhex(name.removesuffix(_ASIDE))
    except ValueError:
        return None


def _settle(path: Path, *, is_used: bool) -> int:
    """Take an old file one step towards its end, or back; return 1 if it went."""
    is_aside = path.name.endswith(_ASIDE)
    try:
        if is_used and is_aside:
            path.rename(path.with_name(path.name.removesuffix(_ASIDE)))
        elif is_aside or path.name.startswith("."):
            path.unlink()
            return 1
        elif not is_used:
            os.utime(path)
            path.rename(path.with_name(path.name + _ASIDE))
    except FileNotFoundError:  # another node's sweep was faster
        return 0
    except OSError as error:
        raise _away(path, error) from error
    return 0
