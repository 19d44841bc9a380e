"""Collecting, where there is nothing to collect."""

import pytest

from reconciler.domain.lease import Claimed, Lease
from reconciler.domain.operation import State
from reconciler.effects.collect import collect
from tests.support.builders import NOW, operation
from tests.support.scripted import ScriptedClient, means, says


@pytest.mark.anyio
async def test_nothing_to_collect_is_a_step_of_its_own() -> None:
    """An operation passes `result_collecting` and says why it needed nothing."""
    value = operation(state=State.RESULT_COLLECTING)
    claimed = Claimed(Lease(value.operation_id, "lse_1", 1, NOW + 9, 0), value, "schedule")
    client = ScriptedClient(lambda _: says("never"))
    decision = await collect(claimed, means(client, lambda: NOW))
    (line,) = decision.transitions
    assert (line.from_state, line.to_state) == (State.RESULT_COLLECTING, State.SUCCEEDED)
    assert (line.cause, decision.due_at, client.requests) == ("profile", None, [])
