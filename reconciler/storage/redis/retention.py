"""What a ledger forgets, in small steps, while events go on arriving.

An event goes when it is old enough, its key need no longer be remembered, and its operation, if it
has one, has ended. The journal goes on telling that it came.
"""

from reconciler.domain.event import Event
from reconciler.domain.operation import RULES
from reconciler.storage.redis import name
from reconciler.storage.redis.events import event_of, remember_until_at
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import text
from reconciler.storage.redis.script import load

#: Events that one step looks at: the server does nothing else meanwhile.
LOOK = 200
#: Steps of one call that find nothing to delete; the next call goes on from there.
LOOKS_MAX = 50

_OLDEST, _FORGET = load("event_oldest"), load("event_forget")
_FINAL = frozenset(state.encode() for state, rule in RULES.items() if rule.final)


class Retention:
    """Walks from the oldest event to the newest that may go, again and again."""

    def __init__(self, reads: Pipeline, writes: Pipeline) -> None:
        self._reads, self._writes = reads, writes
        #: The last event that was looked at; those that must stay hold nobody up.
        self._after = 0

    async def trim_events(self, before_at: int, now: int) -> int:
        """Delete events received before `before_at`, some at a time; return how many went.

        After 0 there is nothing to do for a while; a later call goes on with the walk.
        """
        for _ in range(LOOKS_MAX):
            found = await self._reads.run(_OLDEST, self._after, LOOK)
            events = [(event_of(stored), stored, state) for stored, state in found]
            old = [each for each in events if each[0].received_at < before_at]
            going = [
                event
                for event, stored, state in old
                if remember_until_at(stored) <= now and (state is None or state in _FINAL)
            ]
            self._after = old[-1][0].seq if len(old) == LOOK else 0
            if going:
                went: int = await self._writes.run(_FORGET, *_leads(going))
                return went
            if not self._after:
                break
        return 0


def _leads(events: list[Event]) -> list[bytes | int]:
    """Return, for each event, everything that leads to it."""
    leads: list[bytes | int] = []
    for event in events:
        leads += [event.seq, name.of_event(event.event_id), name.of_key(event)]
        leads += [name.by_job(event), name.by_reference(event), text(event.operation_id)]
        leads += [name.of_scope(event.scope), name.of_source(event.source)]
        leads += [name.of_type(event.event_type)]
    return leads
