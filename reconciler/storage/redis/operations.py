"""The record of each operation: its row, its history, its observations.

When work is due stands beside the row, not in it, so there is one truth about the next read.
"""

import json

from reconciler.domain.decide import Read, transition_entry
from reconciler.domain.observation import Observation
from reconciler.domain.operation import Operation, Transition
from reconciler.storage.contract import AlreadyRegistered, OperationQuery, Registered
from reconciler.storage.redis import name
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import Row, array, as_number, number
from reconciler.storage.redis.script import load

#: Operations that one script call looks at.
_LOOK = 200
_REGISTER, _PAGE = load("register"), load("operation_page")
_LINE, _SEEN = Row(Transition), Row(Observation)
#: All but the schedule.
_OPERATION = Row(Operation, apart=("next_at", "not_before_at"))


class Operations:
    """`contract.Operations` on Redis."""

    def __init__(self, reads: Pipeline, writes: Pipeline) -> None:
        self._reads, self._writes = reads, writes

    async def register(
        self, operation: Operation, cause: Transition, now: int
    ) -> Registered | AlreadyRegistered:
        """See the contract."""
        works = operation.rule.effect is not None and not operation.rule.waits_for_person
        kind, stored, *parked = await self._writes.run(
            _REGISTER,
            *(now, operation.operation_id.encode(), *stands(operation), int(works)),
            number(operation.not_before_at),
            *names(operation),
            *(pack_line(cause), transition_entry(operation, cause)),
        )
        if kind == b"known":
            return AlreadyRegistered(shown(stored))
        return Registered(shown(stored), parked[0])

    async def get(self, operation_id: str) -> Operation | None:
        """See the contract."""
        key = b"operation:" + operation_id.encode()
        stored = await self._reads.call(b"HMGET", key, b"row", b"due", b"not_before")
        return None if stored[0] is None else shown(stored)

    async def page(self, query: OperationQuery) -> list[Operation]:
        """See the contract."""
        page: list[Operation] = []
        before = (query.before or "").encode()
        lists = _lists(query)
        while len(page) < query.limit:
            found = await self._reads.run(_PAGE, before, _LOOK, *lists)
            listed = [shown(stored) for _, stored in found]
            page += [operation for operation in listed if _fits(operation, query)]
            if len(found) < _LOOK:
                break
            before = found[-1][0]
        return page[: query.limit]

    async def history(self, operation_id: str) -> list[Transition]:
        """See the contract."""
        key = b"operation:%s:history" % operation_id.encode()
        return [_LINE.value(line) for line in await self._reads.call(b"LRANGE", key, 0, -1)]

    async def observations(self, operation_id: str) -> list[Read]:
        """See the contract."""
        key = b"operation:%s:reads" % operation_id.encode()
        return [_read(stored) for stored in await self._reads.call(b"LRANGE", key, 0, -1)]


def _lists(query: OperationQuery) -> list[bytes]:
    """Return the lists that hold the fewest of what is asked for, each with its prefix."""
    if query.remote_job_id is not None:
        return [b"operations:job", name.prefix(query.remote_job_id)]
    if query.client_reference is not None:
        return [b"operations:reference", name.prefix(query.client_reference)]
    if query.states:
        return [part for state in set(query.states) for part in (_of_state(state), b"")]
    return [b"operations", b""]


def _of_state(state: str) -> bytes:
    return b"operations:state:" + state.encode()


def _fits(operation: Operation, query: OperationQuery) -> bool:
    return (
        (query.scope is None or query.scope.covers(operation.scope))
        and query.profile in (None, operation.profile)
        and (not query.states or operation.state in query.states)
        and query.remote_job_id in (None, operation.remote_job_id)
        and query.client_reference in (None, operation.client_reference)
    )


# ---------------------------------------------------------------- rows


def stands(operation: Operation) -> tuple[bytes | int, ...]:
    """Return an operation's row, version, state, and whether the state has an effect."""
    has_effect = operation.rule.effect is not None
    state = operation.state.encode()
    return (_OPERATION.pack(operation), operation.version, state, int(has_effect))


def names(operation: Operation) -> tuple[bytes, ...]:
    """Return what an operation is found by: by events, and in lists."""
    return (
        *(name.by_job(operation), name.by_reference(operation)),
        *(name.prefix(operation.remote_job_id), name.prefix(operation.client_reference)),
    )


def shown(stored: Reply) -> Operation:
    """Return the operation of a script's answer (`shown` in the prelude)."""
    row, due_at, not_before_at = stored
    return _OPERATION.value(row, next_at=as_number(due_at), not_before_at=as_number(not_before_at))


def pack_line(line: Transition) -> bytes:
    """Return a line of history as it is stored."""
    return _LINE.pack(line)


def pack_read(read: Read | None) -> bytes:
    """Return an observation as it is stored: two lines; empty without one."""
    if read is None:
        return b""
    told = array(read.observation_id, read.prompted_by)
    return told + b"\n" + _SEEN.pack(read.observation)


def _read(stored: bytes) -> Read:
    told, _, seen = stored.partition(b"\n")
    observation_id, prompted_by = json.loads(told)
    return Read(observation_id, prompted_by, _SEEN.value(seen))
