"""How events find their operation: by the provider's job id, else by our reference.

A name has one owner within scope and profile. Events that came before their operation are parked:
they are stored without one, and attached in the step that makes the name known.
"""

from reconciler.domain.event import NewEvent
from reconciler.domain.operation import Operation
from reconciler.storage.sqlite.connection import Ledger

_OWNER = """
    SELECT coalesce(
        (SELECT operation_id FROM operation_name
            WHERE project = ?1 AND mode = ?2 AND profile = ?3 AND kind = 'job' AND name = ?4),
        (SELECT operation_id FROM operation_name
            WHERE project = ?1 AND mode = ?2 AND profile = ?3 AND kind = 'reference' AND name = ?5)
    )
"""
_CLAIM = """
    INSERT INTO operation_name (project, mode, profile, kind, name, operation_id)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_ATTACH = {
    "job": """
        UPDATE event SET operation_id = ?1
        WHERE operation_id IS NULL AND profile = ?2 AND remote_job_id = ?3
            AND project = ?4 AND mode = ?5
    """,
    "reference": """
        UPDATE event SET operation_id = ?1
        WHERE operation_id IS NULL AND profile = ?2 AND client_reference = ?3
            AND project = ?4 AND mode = ?5
    """,
}


def find_for(ledger: Ledger, named: NewEvent | Operation) -> str | None:
    """Return the id of the operation that owns the job id, else the reference, or `None`."""
    if named.profile is None or (named.remote_job_id is None and named.client_reference is None):
        return None
    scope = named.scope
    row = ledger.one(
        _OWNER,
        (scope.project, scope.mode, named.profile, named.remote_job_id, named.client_reference),
    )
    owner: str | None = None if row is None else row[0]
    return owner


def claim(ledger: Ledger, operation: Operation) -> int:
    """Give the operation its names, attach parked events; return how many there were.

    A name that another operation owns stays that one's: the provider named one job twice, and
    events go on to reach whom they reached before.
    """
    parked = 0
    scope = operation.scope
    named = {"job": operation.remote_job_id, "reference": operation.client_reference}
    for kind, name in named.items():
        if name is None:
            continue
        key = (scope.project, scope.mode, operation.profile, kind, name)
        ledger.run(_CLAIM, (*key, operation.operation_id))
        if ledger.changes():
            where = (operation.profile, name, scope.project, scope.mode)
            ledger.run(_ATTACH[kind], (operation.operation_id, *where))
            parked += ledger.changes()
    return parked
