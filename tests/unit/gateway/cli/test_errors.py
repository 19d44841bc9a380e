"""How errors of other layers end a command."""

from importlib import import_module

import pytest

from gateway.cli.errors import _FOREIGN, Exit, translate


@pytest.mark.parametrize(("module", "name", "code"), _FOREIGN)
def test_every_foreign_error_is_known_where_it_is_declared(
    module: str, name: str, code: Exit
) -> None:
    """An error that an operator can mend never ends as a bug because its class has moved."""
    kind = getattr(import_module(module), name)

    told = translate(kind.__new__(kind))

    assert told is not None
    assert code is told.code
