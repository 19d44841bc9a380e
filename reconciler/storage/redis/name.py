"""What keys and members are called that hold a text of somebody else's: one text, one name."""

import hashlib

from reconciler.domain.event import Event, NewEvent, Scope
from reconciler.domain.operation import Operation
from reconciler.storage.redis.row import array, text

#: Bytes of a digest that stands for a text. Nobody finds two texts with one digest.
_DIGEST_BYTES = 16


def of_key(event: NewEvent | Event) -> bytes:
    """Return what names an event's key: short, for there is one an event, kept for long."""
    key = array(event.scope.project, event.scope.mode, event.source, event.key)
    return hashlib.sha256(key).digest()[:_DIGEST_BYTES]


def of_event(event_id: str) -> bytes:
    """Return what an event's number is found by."""
    return hashlib.sha256(text(event_id)).digest()[:_DIGEST_BYTES]


def by_job(named: NewEvent | Event | Operation) -> bytes:
    """Return what names an operation by the provider's job id; empty without one."""
    return _name(named, "job", named.remote_job_id)


def by_reference(named: NewEvent | Event | Operation) -> bytes:
    """Return what names an operation by our reference; empty without one."""
    return _name(named, "reference", named.client_reference)


def _name(named: NewEvent | Event | Operation, kind: str, name: str | None) -> bytes:
    if named.profile is None or name is None:
        return b""
    return array(named.scope.project, named.scope.mode, named.profile, kind, name)


def prefix(name: str | None) -> bytes:
    """Return what begins the members of one name in a list of many; empty without one."""
    return b"" if name is None else array(name)


def of_scope(scope: Scope) -> bytes:
    """Return the list of a scope's events."""
    return b"scope:" + array(scope.project, scope.mode)


def of_source(source: str) -> bytes:
    """Return the list of a source's events."""
    return b"source:" + text(source)


def of_type(event_type: str | None) -> bytes:
    """Return the list of a type's events; empty without one."""
    return b"" if event_type is None else b"type:" + text(event_type)
