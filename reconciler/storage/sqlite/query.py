"""The conditions of a page: what is asked for, nothing else."""

from collections.abc import Sequence

from reconciler.domain.event import ANY, Scope
from reconciler.storage.sqlite.connection import Value


class Where:
    """Conditions joined by AND; `str()` is the SQL, `values` what it binds."""

    def __init__(self) -> None:
        self._terms: list[str] = []
        self.values: list[Value] = []

    def equal(self, column: str, value: Value) -> None:
        """Want the value, if one is asked for."""
        if value is not None:
            self.that(f"{column} = ?", value)

    def within(self, scope: Scope, project: str, mode: str) -> None:
        """Want what a scope covers; the columns that hold project and mode are named."""
        for column, name in ((project, scope.project), (mode, scope.mode)):
            self.equal(column, None if name == ANY else name)

    def below(self, column: str, value: Value) -> None:
        """Want smaller values, if one is asked for."""
        if value is not None:
            self.that(f"{column} < ?", value)

    def one_of(self, column: str, values: Sequence[Value]) -> None:
        """Want one of the values, if any are asked for."""
        if values:
            self.that(f"{column} IN ({', '.join('?' * len(values))})", *values)

    def that(self, term: str, *values: Value) -> None:
        """Want a condition."""
        self._terms.append(term)
        self.values += values

    def __str__(self) -> str:
        return f"WHERE {' AND '.join(self._terms)}" if self._terms else ""
