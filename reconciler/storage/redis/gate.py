"""The acknowledgement gate: no answer before the server says that the write is on disk.

A batch that wrote ends with a mark and with WAITAOF on the same connection. What counts is the
reply: how many disks hold everything up to the mark, the server's own and its replicas'. The mark
is the batch's own write, whatever else was in it: without one WAITAOF answers at once, for data of
somebody else that is not safe yet.

The settings that a promise rests on are looked at on every new connection and every few seconds,
in the same batch, so nothing is acknowledged by a server that was set to forget.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from redis.exceptions import ResponseError

from reconciler.storage.errors import StorageUnavailableError
from reconciler.storage.redis import check
from reconciler.storage.redis.address import Address
from reconciler.storage.redis.connection import LOST, Command, Link, Reply
from reconciler.storage.redis.faults import unavailable

#: Between two looks at the server's settings.
CHECK_EVERY_S = 5.0
#: A write that is done also when memory is full: trimming passes the gate, too.
_MARK = b"#!lua flags=allow-oom\nreturn redis.call('INCR', KEYS[1])"
#: Between two nudges, and how long one waits. It must not wait for the replica: an answer of the
#: replica's may be held back (RFC 896) until the server sends it something more.
NUDGE_EVERY_S = 0.0015
_NUDGE_MS = 1


class Gate:
    """What an acknowledgement must have reached: this server's disk, and so many replicas'."""

    def __init__(self, address: Address) -> None:
        self._replicas = address.replicas
        self._timeout_ms = address.ack_timeout_ms
        self._closing: tuple[Command, ...] = (
            (b"EVAL", _MARK, 1, address.base + b":mark"),
            (b"WAITAOF", 1, address.replicas, address.ack_timeout_ms),
        )
        self._nudge = Nudge(address)
        self._check_at = 0.0
        #: What a person should mend, as of the last look; it does not make an answer untrue.
        self.unready: Sequence[str] = ()

    @property
    def timeout_s(self) -> float:
        """How long the gate may wait."""
        return self._timeout_ms / 1000

    def look_now(self) -> None:
        """Look at the settings with the next batch."""
        self._check_at = 0.0

    def opening(self, is_new: bool) -> tuple[Command, ...]:
        """Return what begins a batch; `is_new` where the connection is."""
        if not is_new and asyncio.get_running_loop().time() < self._check_at:
            return ()
        return check.QUESTIONS

    def closing(self) -> tuple[Command, ...]:
        """Return what ends a batch."""
        return self._closing

    def judge(
        self, opening: Sequence[Reply], closing: Sequence[Reply]
    ) -> StorageUnavailableError | None:
        """Return why nothing of the batch may be acknowledged; `None`: all of it may."""
        if opening:
            findings = check.judge(opening, self._replicas)
            self.unready = findings.unready
            if findings.refused:
                self.look_now()
                return unavailable("; ".join(findings.refused))
            self._check_at = asyncio.get_running_loop().time() + CHECK_EVERY_S
        for reply in closing:
            if isinstance(reply, ResponseError):
                return unavailable(reply)
        own, replicas = closing[-1]
        if own >= 1 and replicas >= self._replicas:
            return None
        return unavailable(
            f"within {self._timeout_ms} ms the write was on {own} of 1 own disks"
            f" and on {replicas} of {self._replicas} replicas"
        )

    @contextlib.contextmanager
    def nudged(self) -> Iterator[None]:
        """Nudge replicas while the body waits; without any there is nothing to do."""
        if not self._replicas:
            yield
            return
        nudging = asyncio.create_task(self._nudge.run())
        try:
            yield
        finally:
            nudging.cancel()

    async def close(self) -> None:
        """End what belongs to the gate."""
        await self._nudge.close()


class Nudge:
    """Makes replicas say again what they have on disk, on a connection of its own.

    WAITAOF alone answers a lone write after about a second: a replica that is asked tells what it
    had on disk before that write, and tells again only with its next heartbeat. Another little
    write, and somebody who waits for it, makes the server ask again.
    """

    def __init__(self, address: Address) -> None:
        self._link = Link(address)
        self._commands: tuple[Command, ...] = (
            (b"INCR", address.base + b":nudge"),
            (b"WAIT", address.replicas, _NUDGE_MS),
        )
        #: The exchange under way, if one is.
        self._nudge: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Nudge until cancelled."""
        while True:
            await asyncio.sleep(NUDGE_EVERY_S)
            if self._nudge is None or self._nudge.done():
                self._nudge = asyncio.create_task(self._once())
            # Not cancelled with the waiting: an exchange that is cancelled costs its connection.
            await asyncio.wait([self._nudge])

    async def close(self) -> None:
        """End the connection."""
        if self._nudge is not None:
            await asyncio.wait([self._nudge])
        await self._link.close()

    async def _once(self) -> None:
        # One that fails costs time, never an acknowledgement.
        with contextlib.suppress(*LOST):
            await self._link.open()
            await self._link.exchange(self._commands, _NUDGE_MS / 1000 + 1)
