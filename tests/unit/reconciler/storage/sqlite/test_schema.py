"""What happened stays as it was written, even for who has a connection."""

# ruff: noqa: S608  tables and columns named by this file

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from reconciler.domain.operation import State
from reconciler.storage.contract import EventQuery, OperationQuery
from reconciler.storage.sqlite import connection, events, operations, tokens, work
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.file import prepare
from reconciler.storage.sqlite.inbox import record
from reconciler.storage.sqlite.operations import register
from reconciler.storage.sqlite.work import claim, commit
from tests.support.builders import NOW, SCOPE, first_line, new_event, operation, read_decision


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """Give a ledger with a row in every table that only grows."""
    prepare(path, NOW)
    ledger = connection.writing(path)
    register(ledger, operation(), first_line(operation()), NOW)
    record(ledger, new_event(), "cfl_1", NOW)
    record(ledger, new_event(body=b"other"), "cfl_2", NOW)
    (claimed,) = claim(ledger, "w", ["a"], 1_000, NOW)
    commit(ledger, claimed.lease, read_decision(claimed), NOW)
    yield ledger
    ledger.close()


@pytest.mark.parametrize("table", ["conflict", "transition", "observation", "journal"])
def test_append_only(ledger: Ledger, table: str) -> None:
    """Evidence, history, observations and journal are neither changed nor deleted nor replaced."""
    columns = [row[1] for row in ledger.execute(f"PRAGMA table_info({table})")]
    before = ledger.run(f"SELECT * FROM {table}")
    assert before

    wrong = [f"DELETE FROM {table}", f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}"]
    wrong += [f'UPDATE {table} SET "{column}" = "{column}"' for column in columns]
    for statement in wrong:
        with pytest.raises(apsw.ConstraintError, match=r"is never|are never"):
            ledger.execute(statement)

    assert before == ledger.run(f"SELECT * FROM {table}")


def test_event_stands(ledger: Ledger) -> None:
    """Of an event nothing changes but how often it was seen and whose it is."""
    columns = [row[1] for row in ledger.execute("PRAGMA table_info(event)")]

    for column in set(columns) - {"operation_id", "seen"}:
        with pytest.raises(apsw.ConstraintError, match="an event is never changed"):
            ledger.execute(f'UPDATE event SET "{column}" = "{column}"')
    ledger.execute("UPDATE event SET operation_id = operation_id, seen = seen + 1")


def test_evidence_goes_only_with_its_event(ledger: Ledger) -> None:
    """An event takes its conflicts and bodies along; none of them goes alone."""
    with pytest.raises(apsw.ConstraintError, match="evidence is never deleted"):
        ledger.execute("DELETE FROM conflict")

    ledger.execute("DELETE FROM event")

    for table in ("event", "event_body", "moved_body", "conflict"):
        assert ledger.run(f"SELECT * FROM {table}") == []


def test_a_body_goes_only_to_a_file(ledger: Ledger) -> None:
    """A body is let go of where a file of its own stands for it, and is never another one."""
    for value in ("NULL", "x'00'"):
        with pytest.raises(apsw.ConstraintError, match="an event is never changed"):
            ledger.execute(f"UPDATE event SET body = {value}")
    ledger.execute("INSERT INTO moved_body SELECT event_id, x'11' FROM event")
    with pytest.raises(apsw.ConstraintError, match="an event is never changed"):
        ledger.execute("UPDATE event SET body = x'00'")
    ledger.execute("UPDATE event SET body = NULL")


QUERIES: dict[str, Callable[[Ledger], object]] = {
    "newest of a scope": lambda ledger: events._page(ledger, EventQuery(scope=SCOPE)),
    "newest of a source": lambda ledger: events._page(
        ledger, EventQuery(scope=SCOPE, source="acme", before=9)
    ),
    "newest of a type": lambda ledger: events._page(
        ledger, EventQuery(scope=SCOPE, event_type="job.done")
    ),
    "an operation's events": lambda ledger: events._page(
        ledger, EventQuery(scope=SCOPE, operation_id="op_1")
    ),
    "parked events": lambda ledger: events._page(ledger, EventQuery(scope=SCOPE, parked=True)),
    "operations in a state": lambda ledger: operations.page(
        ledger, OperationQuery(states=(State.FAILED,))
    ),
    "record": lambda ledger: record(ledger, new_event(3), "cfl", NOW),
    "register": lambda ledger: register(ledger, operation(2), first_line(operation(2)), NOW),
    "history": lambda ledger: operations._history(ledger, "op_1"),
    "token": lambda ledger: tokens._find(ledger, b""),
}


@pytest.mark.parametrize("query", QUERIES)
def test_indexes_are_used(ledger: Ledger, query: str) -> None:
    """What runs often searches an index, scans no table and sorts nothing."""
    ran: list[tuple[str, Any]] = []
    ledger.set_exec_trace(lambda _, sql, values: ran.append((sql, values)) or True)
    QUERIES[query](ledger)
    ledger.set_exec_trace(None)

    plan = [
        row[3] for sql, values in ran for row in ledger.execute(f"EXPLAIN QUERY PLAN {sql}", values)
    ]
    tables = {row[0] for row in ledger.execute("SELECT name FROM sqlite_schema")}

    assert plan
    assert {f"SCAN {table}" for table in tables} & set(plan) == set()
    assert [line for line in plan if "TEMP B-TREE FOR ORDER BY" in line] == []


def test_claim_uses_the_narrow_indexes(ledger: Ledger) -> None:
    """Claiming searches the two partial indexes of the work table, nothing wider."""
    plan = ledger.run(f"EXPLAIN QUERY PLAN {work._CLAIMABLE}", (NOW, 100))
    touched = {row[3] for row in plan if " work " in f"{row[3]} "}

    assert touched == {
        "SEARCH work USING INDEX work_free (due_at<?)",
        "SEARCH work USING INDEX work_held (until_at>? AND until_at<?)",
    }
