"""Is the server set to keep what it acknowledges? Each finding says what to change.

The same questions are asked at start, where a wrong setting stops the process, and while it runs.
Conditions that pass (a replica that is away, memory that fills) stop no start: a node must come
back by itself; they make it unready.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redis.exceptions import AuthenticationError, RedisError, ResponseError

from reconciler.storage.errors import LedgerError
from reconciler.storage.redis.address import Address
from reconciler.storage.redis.connection import Command, Reply, blocking
from reconciler.storage.redis.faults import text

QUESTIONS: tuple[Command, ...] = (
    (b"COMMAND", b"INFO", b"waitaof"),
    (
        *(b"CONFIG", b"GET", b"appendonly", b"appendfsync", b"no-appendfsync-on-rewrite"),
        *(b"maxmemory", b"maxmemory-policy"),
    ),
    (b"INFO", b"server", b"memory", b"persistence", b"replication"),
)
#: The settings that a promise rests on, and the only value of each that keeps it.
WANTED = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",
    "maxmemory-policy": "noeviction",
}
#: The part of `maxmemory` from which on a person should act.
MEMORY_NEAR = 0.9
#: How keys are laid out; a ledger of a later format is refused.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong, a readable sentence each: promises broken, and conditions to mend."""

    refused: Sequence[str] = ()
    unready: Sequence[str] = ()


def judge(answers: Sequence[Reply], replicas: int) -> Findings:
    """Judge a server by its answers to `QUESTIONS`."""
    waitaof, config, info = answers
    if isinstance(waitaof, ResponseError) or waitaof == [None]:
        return Findings(["the server has no WAITAOF; use Valkey, or Redis 7.2 or newer"])
    if isinstance(config, ResponseError) or isinstance(info, ResponseError):
        error = config if isinstance(config, ResponseError) else info
        return Findings(
            [f"its settings cannot be read ({text(error)}); allow +config|get and +info"]
        )
    settings = dict(zip(map(_text, config[::2]), map(_text, config[1::2]), strict=True))
    facts = _facts(info)
    return Findings(_refused(settings, facts), _unready(settings, facts, replicas))


def _refused(settings: Mapping[str, str], facts: Mapping[str, str]) -> list[str]:
    refused = [
        f"{name} is {settings.get(name, 'unknown')}; set: CONFIG SET {name} {wanted}"
        " (and in the server's configuration file)"
        for name, wanted in WANTED.items()
        if settings.get(name) != wanted
    ]
    if facts.get("role") != "master":
        refused.append("the server is a replica; name the primary in storage.url")
    return refused


def _unready(settings: Mapping[str, str], facts: Mapping[str, str], replicas: int) -> list[str]:
    unready = []
    online = sum("state=online" in value for name, value in facts.items() if _is_replica(name))
    if online < replicas:
        unready.append(f"{online} of {replicas} replicas are connected; start the others")
    limit, used = int(settings.get("maxmemory", 0)), int(facts.get("used_memory", 0))
    if limit and used >= limit * MEMORY_NEAR:
        unready.append(f"{used} of {limit} bytes of memory are used; raise maxmemory or keep less")
    if facts.get("aof_last_write_status", "ok") != "ok":
        unready.append("the server cannot write its append-only file; look at its disk")
    return unready


def _facts(info: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in _text(info).splitlines())
    return {name: value for name, colon, value in lines if colon}


def _is_replica(name: str) -> bool:
    return name.startswith("slave") and name[5:].isdigit()


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


# ---------------------------------------------------------------- at start


def start(address: Address) -> None:
    """Ask the server, before anything is served; `LedgerError` says what to change."""
    answers = ask(address, QUESTIONS)
    findings = judge(answers, address.replicas)
    if findings.refused:
        raise LedgerError("\n".join(f"{address}: {finding}" for finding in findings.refused))
    key = address.base + b":ledger"
    ledger: tuple[Command, ...] = (
        (b"HSETNX", key, b"format", FORMAT),
        (b"HGET", key, b"format"),
    )
    _, stored = ask(address, ledger)
    if isinstance(stored, ResponseError):
        raise LedgerError(f"{address}: {text(stored)}")
    if int(stored) > FORMAT:
        raise LedgerError(
            f"ledger {address.ledger} on {address} was written by a newer version"
            f" (format {_text(stored)}, this program knows {FORMAT}); start that version again"
        )


def ask(address: Address, commands: Sequence[Command]) -> list[Reply]:
    """Ask over a connection of its own, blocking; `LedgerError` says what to change."""
    connection = blocking(address)
    try:
        connection.connect()
        connection.send_packed_command(connection.pack_commands(commands), check_health=False)
        return [_answer(connection) for _ in commands]
    except (AuthenticationError, ResponseError) as error:
        raise LedgerError(
            f"{address}: {text(error)}; check storage.url and storage.password"
        ) from error
    except (OSError, RedisError) as error:
        raise LedgerError(
            f"{address} cannot be reached: {text(error)}; check storage.url"
        ) from error
    finally:
        connection.disconnect()


def _answer(connection: Any) -> Reply:
    try:
        return connection.read_response()
    except ResponseError as error:
        return error
