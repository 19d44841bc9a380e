"""All mistakes of a preset's file at once, for a person who writes one.

The grammar stops at the first mistake, as a start must. Here what is wrong is taken out, or
replaced by something that is right, and the rest is read again. Signature, secret and what is
signed depend on each other: of mistakes that are no misspelt keys, the first one among these three
is named.
"""

import re
from collections.abc import Mapping
from typing import Any

from verifiers.preset import parse_preset
from verifiers.table import PresetError

_MISTAKES_MAX = 20
_OPTIONAL = ("timestamp", "event", "required", "match", "ack", "handshake", "keys", "docs", "proof")
#: What every scheme needs, as it could be.
_RIGHT: dict[str, Any] = {
    "name": "own",
    "signed": "{body}",
    "retry_horizon_s": 0,
    "signature": {"from": "header:x-own-signature", "layout": "pairs", "encoding": "hex"},
    "secret": {"version": "v1", "algorithm": "hmac-sha256", "form": "utf8"},
}


def mistakes(table: Mapping[str, Any], where: str, text: str) -> list[str]:
    """Return what is wrong with a preset, a line a mistake; empty when it is right."""
    found: list[str] = []
    left = dict(table)
    while len(found) < _MISTAKES_MAX:
        try:
            parse_preset(left, where, text)
        except PresetError as error:
            message = str(error)
            if message in found:
                break
            found.append(message)
            smaller = _without(left, message, where)
            if smaller is None:
                break
            left = smaller
        else:
            break
    return found


def _without(table: Mapping[str, Any], message: str, where: str) -> dict[str, Any] | None:
    """Return the table without the mistake that a message names; None where it is all one."""
    named = re.match(rf"{re.escape(where)}(?::\d+)?: ([a-z_]+)(\S*): ", message)
    if named is None:
        return None
    top, rest = named[1], named[2]
    if "unknown key" in message:
        return _pruned(table, [top, *rest.split(".")[1:]])
    if top in _OPTIONAL:
        return {key: value for key, value in table.items() if key != top}
    if "scheme" in table or "like" in table or all(table.get(k) == v for k, v in _RIGHT.items()):
        return None
    return {**table, **_RIGHT}


def _pruned(table: Mapping[str, Any], path: list[str]) -> dict[str, Any] | None:
    """Return a copy without the value at `path`; in an array of tables, without it in each."""
    first, *rest = path
    if first not in table:
        return None
    copy = dict(table)
    value = copy.pop(first)
    if not rest:
        return copy
    if isinstance(value, Mapping):
        copy[first] = _pruned(value, rest)
    elif isinstance(value, list):
        copy[first] = [_pruned(item, rest) or item for item in value]
    return None if copy.get(first) is None else copy
