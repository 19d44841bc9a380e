"""Values as bytes."""

import pytest

from reconciler.domain.event import Refusal, Scope
from reconciler.domain.operation import Operation, State
from reconciler.storage.redis.row import Row, array, as_number, as_text, number, text
from tests.support.builders import operation, refusal

TEXTS = ["", "a", "\0", "a\nb", '"', "é", "\ud800", "\ufffd", "\U0001f600", "\ud83d\ude00"]


@pytest.mark.parametrize("value", TEXTS)
def test_text(value: str) -> None:
    """Any text comes back as it was."""
    assert value == as_text(text(value))


def test_texts_differ() -> None:
    """Different texts are different bytes, alone and in arrays."""
    assert len({text(value) for value in TEXTS}) == len(TEXTS)
    assert len({array(value) for value in TEXTS if value != TEXTS[-1]}) == len(TEXTS) - 1
    assert array("a", "b") != array('a","b')


@pytest.mark.parametrize("value", [None, 0, -1, 1_767_225_600_000, 1 << 62])
def test_number(value: int | None) -> None:
    """A number, or none, comes back as it was."""
    assert value == as_number(number(value))


def test_row_of_a_refusal() -> None:
    """Scope, texts and bytes come back as they were."""
    value = refusal(headers='[["x","\ud800\\u0000"]]', scope=Scope("a,b", '"'))
    row = Row(Refusal)

    assert value == row.value(row.pack(value))
    assert row.pack(value).isascii()


def test_row_with_columns_apart() -> None:
    """What stands apart is no part of the row and is given back by whoever has it."""
    value = operation(state=State.OBSERVING, remote_state="\ud800", next_at=5, not_before_at=7)
    row = Row(Operation, apart=("next_at", "not_before_at"))

    found = row.value(row.pack(value), next_at=5, not_before_at=7)

    assert value == found
    assert found.state is State.OBSERVING
