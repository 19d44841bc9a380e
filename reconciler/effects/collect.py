"""Collect the result of a finished job: an own, recorded step that every operation passes."""

from reconciler.domain.decide import Cause, Decision, decide_trigger
from reconciler.domain.lease import Claimed
from reconciler.domain.operation import Trigger
from reconciler.effects.means import Means


async def collect(claimed: Claimed, means: Means) -> Decision:
    """Decide that there is nothing to collect, as profiles say (`[result] kind = "none"`)."""
    cause = Cause(means.actor, "profile", "the profile says that there is nothing to collect")
    return decide_trigger(claimed.operation, Trigger.NOTHING_TO_COLLECT, cause, means.clock())
