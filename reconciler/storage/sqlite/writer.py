"""One writer a ledger: whatever waits in the queue becomes one transaction.

A step is a synchronous function of a connection. `commit_batch` runs steps in one transaction, each
in a savepoint of its own, so that one that fails harms no other; results are handed out only after
the COMMIT, so nothing is acknowledged that is not on disk. A failed COMMIT fails the whole batch as
"may or may not have happened". After a failed fsync nobody knows what is on disk: `on_fatal` is
called (in production the process ends and the next start reads what is really there).
"""

import asyncio
import logging
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.sqlite import connection
from reconciler.storage.sqlite.checkpoint import Checkpointer
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.faults import UNAVAILABLE, is_fatal, unavailable
from reconciler.storage.sqlite.reader import Readers

T = TypeVar("T")
Step = Callable[[Ledger], T]
OnFatal = Callable[[BaseException], None]

#: Steps that may wait. At 64 connections a few dozen do; thousands mean that the disk stands still.
QUEUE_MAX = 4_096
#: Steps in one transaction: a bound on how long the first of them waits for the last.
BATCH_MAX = 512


class Executor(Protocol):
    """Runs steps: each write durably before its result is seen, reads beside the writes."""

    def write(self, step: Step[T]) -> Awaitable[T]:
        """Run the step in a transaction; cancelling the awaiting caller does not cancel it."""

    def read(self, step: Step[T]) -> Awaitable[T]:
        """Run a step that only reads."""

    async def close(self) -> None:
        """Finish what was accepted, then close."""


def end_process(error: BaseException) -> NoReturn:
    """Log and end the process at once: what an fsync that failed left on disk is unknown."""
    logging.getLogger("reconciler.storage").critical("fsync of the ledger failed: %s", error)
    os._exit(os.EX_IOERR)


# ---------------------------------------------------------------- one transaction


@dataclass(frozen=True, slots=True)
class _Failure:
    error: BaseException


def commit_batch(ledger: Ledger, steps: Sequence[Step[Any]], on_fatal: OnFatal) -> list[Any]:
    """Run the steps as one transaction; return a result or a `_Failure` for each."""
    try:
        ledger.execute("BEGIN IMMEDIATE")
        results = [_run_step(ledger, step) for step in steps]
        ledger.execute("COMMIT")
        return results
    except UNAVAILABLE as error:
        if is_fatal(error):
            on_fatal(error)
        _roll_back(ledger)
        return [_Failure(unavailable(error)) for _ in steps]
    except Exception as error:  # noqa: BLE001  a bug of ours must not end the writer's thread
        _roll_back(ledger)
        return [_Failure(error) for _ in steps]


def _run_step(ledger: Ledger, step: Step[Any]) -> Any:
    ledger.execute("SAVEPOINT step")
    try:
        result = step(ledger)
    except UNAVAILABLE:
        # SQLite may have rolled the whole transaction back by itself: the batch is lost.
        raise
    except Exception as error:  # noqa: BLE001  a bug of ours fails its own caller, nobody else
        ledger.execute("ROLLBACK TO step")
        result = _Failure(error)
    ledger.execute("RELEASE step")
    return result


def _roll_back(ledger: Ledger) -> None:
    ledger.work_changed = False
    if ledger.in_transaction:
        try:
            ledger.execute("ROLLBACK")
        except UNAVAILABLE:
            assert not ledger.in_transaction


# ---------------------------------------------------------------- production

_Job = tuple[Step[Any], "asyncio.Future[Any]"]


class WriterThread:
    """One thread and one connection for all writes, a few threads for reads."""

    def __init__(
        self,
        path: Path,
        on_due: Callable[[], None],
        on_fatal: OnFatal,
        queue_max: int = QUEUE_MAX,
    ) -> None:
        self._on_due, self._on_fatal, self._queue_max = on_due, on_fatal, queue_max
        self._ledger = connection.writing(path)
        self._checkpointer = Checkpointer(path, self._fatal)
        self._readers = Readers(path)
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._refuses: str | None = None
        self._thread = threading.Thread(target=self._work, name="ledger-writer", daemon=True)
        self._thread.start()

    def write(self, step: Step[T]) -> "asyncio.Future[T]":
        """Queue the step; `StorageUnavailableError` at once if too many wait."""
        if self._refuses:
            raise StorageUnavailableError(self._refuses)
        if self._queue.qsize() >= self._queue_max:
            raise StorageUnavailableError("too many writes wait for the disk")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.put((step, future))
        return future

    def read(self, step: Step[T]) -> Awaitable[T]:
        """Run the step on a reader's connection."""
        return self._readers.read(step)

    async def close(self) -> None:
        """Finish what was accepted, then close."""
        if self._refuses is None:
            self._refuses = "the ledger is closing"
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        await self._readers.close()
        await asyncio.to_thread(self._checkpointer.close)
        self._ledger.close()

    def _work(self) -> None:
        while batch := self._take():
            results = commit_batch(self._ledger, [step for step, _ in batch], self._fatal)
            due, self._ledger.work_changed = self._ledger.work_changed, False
            loop = batch[0][1].get_loop()
            try:
                loop.call_soon_threadsafe(self._resolve, batch, results, due)
            except RuntimeError:  # the loop was closed: nobody waits any more
                continue
            self._checkpointer.committed(self._ledger)

    def _take(self) -> list[_Job]:
        """Wait for a job and return it with all that wait behind it; empty means stop."""
        job = self._queue.get()
        batch: list[_Job] = []
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH_MAX:
                return batch
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                return batch
        if batch:
            self._queue.put(None)
        return batch

    def _resolve(self, batch: list[_Job], results: list[Any], due: bool) -> None:
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():  # its caller was cancelled; the step stands
                continue
            if isinstance(result, _Failure):
                future.set_exception(result.error)
            else:
                future.set_result(result)
        if due:
            self._on_due()

    def _fatal(self, error: BaseException) -> None:
        self._refuses = "an fsync failed: the ledger must be opened anew"
        self._on_fatal(error)


# ---------------------------------------------------------------- simulation


class Inline:
    """Runs each step at once, alone, on the caller's thread: the order is the caller's."""

    def __init__(
        self,
        path: Path,
        on_due: Callable[[], None],
        on_fatal: OnFatal,
        queue_max: int = QUEUE_MAX,
    ) -> None:
        self._on_due, self._on_fatal, self._queue_max = on_due, on_fatal, queue_max
        self._ledger = connection.writing(path)

    async def write(self, step: Step[T]) -> T:
        """Run the step in a transaction of its own."""
        result: T | _Failure = commit_batch(self._ledger, [step], self._on_fatal)[0]
        due, self._ledger.work_changed = self._ledger.work_changed, False
        if isinstance(result, _Failure):
            raise result.error
        if due:
            self._on_due()
        return result

    async def read(self, step: Step[T]) -> T:
        """Run the step."""
        try:
            return step(self._ledger)
        except UNAVAILABLE as error:
            raise unavailable(error) from error

    async def close(self) -> None:
        """Close the connection."""
        self._ledger.close()
