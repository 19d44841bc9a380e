"""The record of each operation: its row, its history, its observations.

When work is due stands in the `work` table alone; reading an operation joins it, so there is one
truth about its next read.
"""

from functools import partial

from reconciler.domain.decide import Read, transition_entry
from reconciler.domain.observation import Observation
from reconciler.domain.operation import Operation, Transition
from reconciler.storage.contract import AlreadyRegistered, OperationQuery, Registered
from reconciler.storage.sqlite import due, journal, naming
from reconciler.storage.sqlite.connection import Ledger, text
from reconciler.storage.sqlite.query import Where
from reconciler.storage.sqlite.table import Table, insert, names
from reconciler.storage.sqlite.writer import Executor

_OPERATIONS, _LINES, _SEEN = Table(Operation), Table(Transition), Table(Observation)
#: Stand in `work`.
_SCHEDULE = ("next_at", "not_before_at")
_STORED = tuple(name for name in _OPERATIONS.columns if name not in _SCHEDULE)
_SCHEDULED = {"next_at": "work.due_at", "not_before_at": "work.not_before_at"}
_SELECT = f"""
    SELECT {", ".join(_SCHEDULED.get(name, f"operation.{name}") for name in _OPERATIONS.columns)}
    FROM operation JOIN work ON work.operation_id = operation.operation_id
"""  # noqa: S608  our own names
_GET = f"{_SELECT} WHERE operation.operation_id = ?"
_INSERT = insert("operation", _STORED)
# What an operation is never changes; setting its key would have SQLite look for all that name it.
_IDENTITY = frozenset({"operation_id", "project", "mode", "profile", "created_at"})
_CHANGING = tuple(name for name in _STORED if name not in _IDENTITY)
_UPDATE = f"""
    UPDATE operation SET {", ".join(f"{name} = ?" for name in _CHANGING)} WHERE operation_id = ?
"""  # noqa: S608  our own names
_WRITE_LINE = insert("transition", ("operation_id", *_LINES.columns))
_WRITE_READ = insert(
    "observation", ("operation_id", "observation_id", "prompted_by", *_SEEN.columns)
)
_HISTORY = f"SELECT {names(_LINES.columns)} FROM transition WHERE operation_id = ? ORDER BY seq"  # noqa: S608
_READS = f"""
    SELECT observation_id, prompted_by, {names(_SEEN.columns)} FROM observation
    WHERE operation_id = ? ORDER BY seq
"""  # noqa: S608  our own names


# ---------------------------------------------------------------- steps


def register(
    ledger: Ledger, operation: Operation, cause: Transition, now: int
) -> Registered | AlreadyRegistered:
    """Store the operation, its names, its first line and its first work; attach parked events."""
    owner_id = naming.find_for(ledger, operation) or operation.operation_id
    known = get(ledger, owner_id)
    if known is not None:
        return AlreadyRegistered(known)
    cells = _OPERATIONS.row(operation)
    ledger.run(_INSERT, [cells[name] for name in _STORED])
    works = operation.rule.effect is not None and not operation.rule.waits_for_person
    due.start(ledger, operation, due_at=now if works else None)
    write_line(ledger, operation.operation_id, cause)
    journal.append(ledger, transition_entry(operation, cause), now)
    parked = naming.claim(ledger, operation)
    stored = get(ledger, operation.operation_id)
    assert stored is not None
    return Registered(stored, parked)


def get(ledger: Ledger, operation_id: str) -> Operation | None:
    """Return the operation."""
    row = ledger.one(_GET, (operation_id,))
    return None if row is None else _OPERATIONS.value(row)


def update(ledger: Ledger, operation: Operation) -> None:
    """Write the operation's new value."""
    cells = _OPERATIONS.row(operation)
    ledger.run(_UPDATE, (*(cells[name] for name in _CHANGING), operation.operation_id))


def write_line(ledger: Ledger, operation_id: str, line: Transition) -> None:
    """Append a line of history."""
    ledger.run(_WRITE_LINE, (operation_id, *_LINES.row(line).values()))


def write_read(ledger: Ledger, operation_id: str, read: Read) -> None:
    """Append an observation."""
    seen = _SEEN.row(read.observation).values()
    ledger.run(_WRITE_READ, (operation_id, read.observation_id, read.prompted_by, *seen))


def page(ledger: Ledger, query: OperationQuery) -> list[Operation]:
    """Return a page, newest first."""
    where = Where()
    if query.scope:
        where.within(query.scope, "operation.project", "operation.mode")
    where.equal("operation.profile", query.profile)
    where.one_of("operation.state", query.states)
    where.equal("operation.remote_job_id", query.remote_job_id)
    where.equal("operation.client_reference", query.client_reference)
    where.below("operation.operation_id", query.before)
    order = "ORDER BY operation.operation_id DESC LIMIT ?"
    rows = ledger.run(f"{_SELECT} {where} {order}", (*where.values, query.limit))
    return [_OPERATIONS.value(row) for row in rows]


def _history(ledger: Ledger, operation_id: str) -> list[Transition]:
    return [_LINES.value(row) for row in ledger.run(_HISTORY, (operation_id,))]


def _observations(ledger: Ledger, operation_id: str) -> list[Read]:
    return [
        Read(text(row[0]), text(row[1]), _SEEN.value(row[2:]))
        for row in ledger.run(_READS, (operation_id,))
    ]


# ---------------------------------------------------------------- the role


class Operations:
    """`contract.Operations` on SQLite."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def register(
        self, operation: Operation, cause: Transition, now: int
    ) -> Registered | AlreadyRegistered:
        """See the contract."""
        step = partial(register, operation=operation, cause=cause, now=now)
        return await self._executor.write(step)

    async def get(self, operation_id: str) -> Operation | None:
        """See the contract."""
        return await self._executor.read(partial(get, operation_id=operation_id))

    async def page(self, query: OperationQuery) -> list[Operation]:
        """See the contract."""
        return await self._executor.read(partial(page, query=query))

    async def history(self, operation_id: str) -> list[Transition]:
        """See the contract."""
        return await self._executor.read(partial(_history, operation_id=operation_id))

    async def observations(self, operation_id: str) -> list[Read]:
        """See the contract."""
        return await self._executor.read(partial(_observations, operation_id=operation_id))
