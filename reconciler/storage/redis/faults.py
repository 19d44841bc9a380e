"""What a server's errors mean: the world's failures become the one exception that callers meet."""

from redis.exceptions import RedisError, ResponseError

from reconciler.storage.errors import StorageUnavailableError

#: The server does not know the script: it did nothing, so it may be told the whole text.
NOSCRIPT = "NOSCRIPT"

#: The first words of errors that come from the world: no memory, no disk, no primary, no right.
#: Those for which the library ends the connection (LOADING, NOAUTH, WRONGPASS) are no answers.
_UNAVAILABLE = frozenset({
    *("ASK", "BUSY", "CLUSTERDOWN", "MASTERDOWN", "MISCONF", "MOVED", "NOPERM", "NOREPLICAS"),
    *("NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED"),
})  # fmt: skip
#: This server is not, or not yet, the one to ask: another connection may reach the right one.
_ELSEWHERE = frozenset({"ASK", "CLUSTERDOWN", "MASTERDOWN", "MOVED", "READONLY", "UNBLOCKED"})


def text(error: BaseException | str) -> str:
    """Return an error as the server said it; the library takes off the first words it knows."""
    word = error.status_code if isinstance(error, RedisError) else None
    return f"{word} {error}" if word else str(error)


def code(error: ResponseError) -> str:
    """Return the first word of an error."""
    return text(error).partition(" ")[0]


def is_elsewhere(error: ResponseError) -> bool:
    """Tell whether a new connection may help."""
    return code(error) in _ELSEWHERE


def exception(error: ResponseError) -> Exception:
    """Return what a caller meets; an error that only a bug of ours can cause stays one."""
    if code(error) in _UNAVAILABLE:
        return unavailable(error)
    bug = RuntimeError(f"the server refused a step: {text(error)}")
    bug.__cause__ = error
    return bug


def unavailable(error: BaseException | str) -> StorageUnavailableError:
    """Return the exception, with the driver's as its cause."""
    wrapped = StorageUnavailableError(f"the ledger cannot be used: {text(error)}")
    if isinstance(error, BaseException):
        wrapped.__cause__ = error
    return wrapped
