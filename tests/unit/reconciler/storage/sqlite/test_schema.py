"""What happened stays as it was written, even for who has a connection."""

# ruff: noqa: S608  tables and columns named by this file

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from reconciler.storage.sqlite import connection
from reconciler.storage.sqlite.connection import Ledger
from reconciler.storage.sqlite.file import prepare
from reconciler.storage.sqlite.inbox import record
from reconciler.storage.sqlite.operations import register
from reconciler.storage.sqlite.work import claim, commit
from tests.support.builders import NOW, first_line, new_event, operation, read_decision


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


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM work WHERE until_at IS NULL AND due_at <= 5 ORDER BY due_at LIMIT 5",
        "SELECT * FROM work WHERE until_at IS NOT NULL AND until_at <= 5",
        "SELECT * FROM event WHERE source = 'a' ORDER BY seq DESC LIMIT 50",
        "SELECT * FROM event WHERE event_type = 'a' ORDER BY seq DESC LIMIT 50",
        "SELECT * FROM event WHERE operation_id = 'a' ORDER BY seq DESC LIMIT 50",
        "SELECT * FROM event WHERE operation_id IS NULL AND profile = 'a' AND remote_job_id = 'b'",
        "SELECT * FROM operation WHERE state = 'a' ORDER BY operation_id DESC LIMIT 50",
        "SELECT * FROM transition WHERE operation_id = 'a' ORDER BY seq",
        "SELECT * FROM token WHERE digest = x'00'",
    ],
)
def test_indexes_are_used(ledger: Ledger, query: str) -> None:
    """The queries that run often search an index and sort nothing."""
    plan = " ".join(row[3] for row in ledger.execute(f"EXPLAIN QUERY PLAN {query}"))

    assert "SEARCH" in plan
    assert "INDEX" in plan
    assert "TEMP B-TREE" not in plan
