"""Values of the domain as JSON documents; the names are a contract (mission.md)."""

import datetime as dt
from collections.abc import Iterable
from typing import Any

from gateway.source import Source
from reconciler.domain.decide import Read
from reconciler.domain.event import ConflictEvidence, Event, Refusal
from reconciler.domain.operation import Operation, Transition
from reconciler.domain.published import KeyDocument
from reconciler.domain.token import Token

Document = dict[str, Any]


def instant(at: int | None) -> str | None:
    """Return an instant as RFC 3339 in UTC with milliseconds."""
    if at is None:
        return None
    moment = dt.datetime.fromtimestamp(at / 1000, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def header_pairs(lines: str) -> list[list[str]]:
    """Return stored header lines as pairs."""
    pairs = (line.partition(": ") for line in lines.split("\n") if line)
    return [[name, value] for name, _, value in pairs]


def event(item: Event) -> Document:
    """Return an event without its body."""
    return {
        "event_id": item.event_id,
        "project": item.scope.project,
        "mode": item.scope.mode,
        "source": item.source,
        "key": item.key,
        "provider_event_id": item.provider_event_id,
        "event_type": item.event_type,
        "key_id": item.key_id,
        "signed_at": instant(item.signed_at),
        "received_at": instant(item.received_at),
        "flags": list(item.flags),
        "url": item.url,
        "headers": header_pairs(item.headers),
        "body_bytes": item.body_bytes,
        "content_digest": item.content_digest.hex(),
        "profile": item.profile,
        "remote_job_id": item.remote_job_id,
        "client_reference": item.client_reference,
        "operation_id": item.operation_id,
        "seen": item.seen,
    }


def conflict(item: ConflictEvidence) -> Document:
    """Return the evidence of a conflict without its body."""
    return {
        "conflict_id": item.conflict_id,
        "event_id": item.event_id,
        "at": instant(item.at),
        "key_id": item.key_id,
        "content_digest": item.content_digest.hex(),
        "headers": header_pairs(item.headers),
        "body_bytes": len(item.body),
    }


def refusal(item: Refusal) -> Document:
    """Return a refused request."""
    return {
        "refusal_id": item.refusal_id,
        "project": item.scope.project,
        "mode": item.scope.mode,
        "source": item.source,
        "reason": item.reason,
        "at": instant(item.at),
        "peer": item.peer,
        "method": item.method,
        "body_bytes": item.body_bytes,
        "body_digest": item.body_digest.hex(),
        "headers": header_pairs(item.headers),
    }


def operation(item: Operation) -> Document:
    """Return an operation."""
    return {
        "operation_id": item.operation_id,
        "project": item.scope.project,
        "mode": item.scope.mode,
        "profile": item.profile,
        "state": item.state,
        "attention": item.attention,
        "remote_state": item.remote_state,
        "remote_updated_at": instant(item.remote_updated_at),
        "remote_job_id": item.remote_job_id,
        "client_reference": item.client_reference,
        "request_fingerprint": item.request_fingerprint,
        "idempotency_token": item.idempotency_token,
        "caller": item.caller,
        "trace_id": item.trace_id,
        "created_at": instant(item.created_at),
        "updated_at": instant(item.updated_at),
        "create_deadline": instant(item.create_deadline_at),
        "result_deadline": instant(item.result_deadline_at),
        "next_at": instant(item.next_at),
        "last_read_at": instant(item.last_read_at),
        "unreadable_reads": item.unreadable_reads,
        "version": item.version,
    }


def transition(item: Transition) -> Document:
    """Return a line of history."""
    return {
        "at": instant(item.at),
        "actor": item.actor,
        "from": item.from_state,
        "to": item.to_state,
        "cause": item.cause,
        "reason": item.reason,
        "remote_job_id": item.remote_job_id,
    }


def read(item: Read) -> Document:
    """Return a status read."""
    seen = item.observation
    return {
        "observation_id": item.observation_id,
        "prompted_by": item.prompted_by,
        "meaning": seen.meaning,
        "fetched_at": instant(seen.fetched_at),
        "remote_state": seen.remote_state,
        "remote_job_id": seen.remote_job_id,
        "provider_at": instant(seen.provider_at),
        "http_status": seen.http_status,
        "body_digest": seen.body_digest,
        "not_before": instant(seen.not_before_at),
        "detail": seen.detail,
        "request_id": seen.request_id,
        "address": seen.address,
    }


def token(item: Token) -> Document:
    """Return a token; its secret is not known to us."""
    return {
        "token_id": item.token_id,
        "project": item.scope.project,
        "mode": item.scope.mode,
        "role": item.role,
        "label": item.label,
        "created_by": item.created_by,
        "created_at": instant(item.created_at),
        "expires_at": instant(item.expires_at),
        "revoked_at": instant(item.revoked_at),
    }


def source(item: Source) -> Document:
    """Return a source; keys by id and validity, never by value."""
    return {
        "name": item.name,
        "project": item.scope.project,
        "mode": item.scope.mode,
        "preset": item.preset.name,
        "endpoint": item.url,
        "profile": item.profile,
        "job_id": item.job_id and item.job_id.text,
        "client_reference": item.client_reference and item.client_reference.text,
        "body_bytes_max": item.body_bytes_max,
        "memory_days": item.memory_ms / 86_400_000,
        # Until there is a key, every request is refused as key_unknown.
        "ready": bool(item.keys.keys) or item.preset.unsigned,
        "keys": [
            {
                "id": key.id,
                "not_before": instant(key.not_before and key.not_before * 1000),
                "not_after": instant(key.not_after and key.not_after * 1000),
            }
            for key in item.keys.keys
            if not key.published
        ],
    }


def key_document(item: KeyDocument, ids: Iterable[str]) -> Document:
    """Return a document of published keys and the ids of its keys."""
    return {
        "url": item.url,
        "ids": list(ids),
        "fetched_at": instant(item.fetched_at),
        "valid_until": instant(item.valid_until_at),
        "next_fetch_at": instant(item.next_at),
        "failures": item.failures,
        "failure": item.failure,
    }
