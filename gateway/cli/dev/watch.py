"""What happened, as lines: the journal entry by entry, and beside it duplicates and refusals.

It reads the ledger through its roles, like anybody could, and asks no part of the process. `look`
returns what is new since the last look.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.cli.output import inert
from reconciler.domain import journal
from reconciler.domain.event import Event
from reconciler.storage.contract import EventQuery, Store
from verifiers.verdict import Reason

_ENTRIES = 500
_RECENT = 50
_COUNTED_MS = 120_000
_WHY: Mapping[str, str] = {
    Reason.SIGNATURE_MISMATCH: "not signed by whoever has the key, or changed on the way",
    Reason.TIMESTAMP_TOO_OLD: "signed too long ago, so it may be a replay",
    Reason.TIMESTAMP_IN_FUTURE: "signed for a time that has not come",
    Reason.SIGNATURE_MISSING: "nobody signed it",
}


class Line(NamedTuple):
    """One step: when (milliseconds), what in a word, about which job, and told in a sentence."""

    at: int
    what: str
    job: str
    told: str


@dataclass(slots=True)
class Tally:
    """What was seen since the start."""

    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class Watch:
    """Turns a ledger's news into lines."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self._clock = store, clock
        self._after = -1
        self._seen: dict[str, int] = {}
        self._refusals: dict[tuple[str, str, int], int] = {}
        self._jobs: dict[str, str] = {}
        self._said: dict[str, str] = {}
        #: Operations for which an event arrived since the last read.
        self._hinted: set[str] = set()
        self.tally = Tally()

    async def skip(self) -> None:
        """Take everything that is there already as known."""
        self._after = await self._store.journal.size() - 1
        await self._duplicates()
        await self._refused()
        self.tally = Tally()

    async def look(self) -> list[Line]:
        """Return what is new, in order."""
        lines: list[Line] = []
        for entry in await self._store.journal.page(self._after, _ENTRIES):
            self._after = entry.index
            kind, fields = journal.decode(entry.entry)
            line = await self._line(kind, fields, entry.at)
            if line is not None:
                lines.append(line)
        lines += await self._duplicates()
        lines += await self._refused()
        return sorted(lines, key=lambda line: line.at)

    async def _line(self, kind: str, fields: dict[str, journal.Value], at: int) -> Line | None:
        if kind == "event.accepted":
            event = await self._store.events.get(str(fields["event_id"]))
            return None if event is None else await self._accepted(event)
        if kind == "event.conflict":
            return self._conflict(fields, at)
        if kind == "operation.observed":
            return await self._asked(fields, at)
        if kind == "operation.moved":
            return await self._moved(fields, at)
        return None

    async def _accepted(self, event: Event) -> Line:
        self.tally.accepted += 1
        self._seen.setdefault(event.event_id, 1)
        told = f"{_kind(event)}: genuine and new{await self._then(event)}"
        return Line(event.received_at, "accepted", _job(event), told)

    async def _then(self, event: Event) -> str:
        """Say what follows from a new event."""
        if event.operation_id is None:
            if event.remote_job_id is None:
                return "; it names no job"
            return "; no operation knows this job yet, so it waits for one"
        operation = await self._store.operations.get(event.operation_id)
        if (
            operation is not None
            and operation.rule.final
            and event.received_at > operation.updated_at
        ):
            return f"; the operation has ended and stays {operation.state}"
        self._hinted.add(event.operation_id)
        return "; the provider will be asked"

    def _conflict(self, fields: dict[str, journal.Value], at: int) -> Line:
        self.tally.conflicts += 1
        _, _, named = str(fields["key"]).partition(":")
        told = f"{inert(named)} is known with other content; the first one stands, this is evidence"
        return Line(at, "conflict", "", told)

    async def _asked(self, fields: dict[str, journal.Value], at: int) -> Line | None:
        """Return a read that says something new, or that an event has asked for."""
        operation_id = str(fields["operation_id"])
        job, earlier = await self._job_of(operation_id)
        said = fields["remote_state"]
        says = f'the provider says "{inert(str(said))}"'
        if said is None:
            says = f"the answer tells nothing ({inert(str(fields['detail'] or fields['meaning']))})"
        news = self._said.get(operation_id) != says
        hinted = operation_id in self._hinted
        self._said[operation_id] = says
        self._hinted.discard(operation_id)
        if not news and not hinted:
            return None
        told = says if news else f"{says}, still: an event alone moves nothing"
        return Line(at, "asked", inert(job), told + earlier)

    async def _moved(self, fields: dict[str, journal.Value], at: int) -> Line:
        operation_id = str(fields["operation_id"])
        if fields["from"] is None:
            job = self._jobs[operation_id] = str(fields["remote_job_id"] or operation_id)
            return Line(at, "registered", inert(job), await self._registered(operation_id))
        job, earlier = await self._job_of(operation_id)
        before, after, reason = (inert(str(fields[name])) for name in ("from", "to", "reason"))
        return Line(at, "moved", inert(job), f"{before} -> {after} ({reason}){earlier}")

    async def _job_of(self, operation_id: str) -> tuple[str, str]:
        """Return an operation's job, and a remark where it was registered before this run."""
        if operation_id in self._jobs:
            return self._jobs[operation_id], ""
        operation = await self._store.operations.get(operation_id)
        job = operation_id if operation is None else operation.remote_job_id or operation_id
        return job, "; registered in an earlier run"

    async def _registered(self, operation_id: str) -> str:
        waited = await self._store.events.page(EventQuery(operation_id=operation_id))
        early = f"; {len(waited)} of its events came first and waited" if waited else ""
        return f"as {inert(operation_id)}{early}"

    async def _duplicates(self) -> list[Line]:
        lines = []
        for event in await self._store.events.page(EventQuery(limit=_RECENT)):
            more = event.seen - self._seen.get(event.event_id, 1)
            self._seen[event.event_id] = event.seen
            if more > 0:
                self.tally.duplicates += more
                told = f"{_kind(event)}: seen {event.seen} times, still one event"
                lines.append(Line(self._clock(), "duplicate", _job(event), told))
        return lines

    async def _refused(self) -> list[Line]:
        """Tell refusals by their counts: of many in a minute only the first few are kept whole."""
        lines, counts, now = [], {}, self._clock()
        for counted in await self._store.events.refusal_counts(now - _COUNTED_MS):
            which = (counted.source, counted.reason, counted.minute_at)
            more = counted.count - self._refusals.get(which, 0)
            counts[which] = counted.count
            if more > 0:
                self.tally.refused[counted.reason] += more
                why = _WHY.get(counted.reason, "the record has the details")
                often = f", {more} times" if more > 1 else ""
                told = f"{counted.reason} at /in/{counted.source}{often}: {why}"
                lines.append(Line(now, "refused", "", inert(told)))
        self._refusals = counts
        return lines


def _job(event: Event) -> str:
    return inert(event.remote_job_id or event.client_reference or "")


def _kind(event: Event) -> str:
    return inert(event.event_type or "event")
