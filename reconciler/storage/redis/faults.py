"""What a server's errors mean: the world's failures become the one exception that callers meet."""

from hiredis import ReplyError

from reconciler.storage.errors import StorageUnavailableError

#: The server does not know the script: it did nothing, so it may be told the whole text.
NOSCRIPT = "NOSCRIPT"

#: The first words of errors that come from the world: no memory, no disk, no primary, no right.
_UNAVAILABLE = frozenset({
    *("ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "MOVED", "NOAUTH"),
    *("NOPERM", "NOREPLICAS", "NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED", "WRONGPASS"),
})  # fmt: skip
#: This server is not, or not yet, the one to ask: another connection may reach the right one.
_ELSEWHERE = frozenset(
    {"ASK", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "READONLY", "UNBLOCKED"}
)


def code(error: ReplyError) -> str:
    """Return the first word of an error."""
    return str(error).partition(" ")[0]


def is_elsewhere(error: ReplyError) -> bool:
    """Tell whether a new connection may help."""
    return code(error) in _ELSEWHERE


def exception(error: ReplyError) -> Exception:
    """Return what a caller meets; an error that only a bug of ours can cause stays one."""
    if code(error) in _UNAVAILABLE:
        return unavailable(error)
    bug = RuntimeError(f"the server refused a step: {error}")
    bug.__cause__ = error
    return bug


def unavailable(error: BaseException | str) -> StorageUnavailableError:
    """Return the exception, with the driver's as its cause."""
    wrapped = StorageUnavailableError(f"the ledger cannot be used: {error}")
    if isinstance(error, BaseException):
        wrapped.__cause__ = error
    return wrapped
