"""What makes work due: an operation's start, and a hint that something happened to it."""

from reconciler.domain.operation import Operation
from reconciler.storage.sqlite.connection import Ledger

_START = """
    INSERT INTO work (operation_id, due_at, not_before_at, has_effect) VALUES (?, ?, ?, ?)
"""
_HINT = """
    UPDATE work SET
        hints = hints + 1, prompted_by = ?2,
        due_at = min(coalesce(due_at, 9e18), max(?3, coalesce(not_before_at, ?3)))
    WHERE operation_id = ?1 AND has_effect
"""


def start(ledger: Ledger, operation: Operation, due_at: int | None) -> None:
    """Write an operation's row."""
    has_effect = operation.rule.effect is not None
    values = (operation.operation_id, due_at, operation.not_before_at, has_effect)
    ledger.execute(_START, values)
    ledger.work_changed = True


def hint(ledger: Ledger, operation_id: str | None, event_id: str, now: int) -> None:
    """Make work due as soon as the provider allows, where the state has any."""
    if operation_id is not None:
        ledger.execute(_HINT, (operation_id, event_id, now))
        ledger.work_changed = True
