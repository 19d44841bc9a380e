"""Refusals: counted by group, a few kept whole.

The digest of a group chains what was refused (SHA-256, which a script cannot compute), so the
counts are read, extended here and written only if they still stand; else it is done once more.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.domain.event import REFUSALS_KEPT_A_MINUTE, Refusal, RefusalCount, Scope
from reconciler.storage.redis.connection import Reply
from reconciler.storage.redis.pipeline import Pipeline
from reconciler.storage.redis.row import Row
from reconciler.storage.redis.script import load

_MINUTE_MS = 60_000
_REFUSE, _COUNTS = load("refuse"), load("refusal_counts")

ROW = Row(Refusal)


@dataclass(frozen=True, slots=True)
class _Group:
    """The columns that a count is named by."""

    scope: Scope
    source: str
    reason: str
    minute_at: int


_GROUP = Row(_Group)


async def refuse(writes: Pipeline, refusals: Sequence[Refusal]) -> None:
    """Count each refusal; keep the first few of a group whole."""
    groups: dict[bytes, list[Refusal]] = {}
    for each in refusals:
        groups.setdefault(_GROUP.pack(_group(each)), []).append(each)
    stands: list[bytes | None] = [None] * len(groups)
    while stands:
        arguments: list[bytes | int] = [len(groups)]
        kept: list[bytes] = []
        for (group, members), stored in zip(groups.items(), stands, strict=True):
            count, digest = _counted(stored)
            for each in members[: max(0, REFUSALS_KEPT_A_MINUTE - count)]:
                kept += [each.refusal_id.encode(), ROW.pack(each)]
            for each in members:
                digest = chain(digest, each)
            told = b"%d %s" % (count + len(members), digest.hex().encode())
            arguments += [group, _group(members[0]).minute_at, stored or b"", told]
        stands = await writes.run(_REFUSE, *arguments, *kept)


def chain(digest: bytes, refusal: Refusal) -> bytes:
    """Return the digest of all refusals so far and this one; `digest` is empty for the first."""
    return hashlib.sha256(digest + refusal.refusal_id.encode() + refusal.body_digest).digest()


async def counts(reads: Pipeline, which: bytes, least: bytes, most: bytes) -> list[Reply]:
    """Return pairs of a group and its count, as they are stored, of minutes within bounds."""
    found: list[Reply] = await reads.run(_COUNTS, which, least, most)
    return found


def count(group: bytes, stored: bytes) -> RefusalCount:
    """Return a count as it is shown."""
    named = _GROUP.value(group)
    told, digest = _counted(stored)
    return RefusalCount(named.scope, named.source, named.reason, named.minute_at, told, digest)


def order(shown: RefusalCount) -> tuple[int, str, str, str, str]:
    """Return what counts are listed by."""
    scope = shown.scope
    return (shown.minute_at, scope.project, scope.mode, shown.source, shown.reason)


def _group(refusal: Refusal) -> _Group:
    minute_at = refusal.at - refusal.at % _MINUTE_MS
    return _Group(refusal.scope, refusal.source, refusal.reason, minute_at)


def _counted(stored: bytes | None) -> tuple[int, bytes]:
    if stored is None:
        return 0, b""
    count, _, digest = stored.partition(b" ")
    return int(count), bytes.fromhex(digest.decode())
