"""What callers of the storage meet; a step raises `StorageUnavailableError` alone."""


class StorageUnavailableError(Exception):
    """The step may or may not have happened; nothing was acknowledged.

    Raised when the store is full, busy, unreachable or stopping. Every step is idempotent, so the
    caller (or the provider that retries) may simply do it again. The driver's error is the
    `__cause__`.
    """


class LedgerError(Exception):
    """The ledger cannot be opened: in use elsewhere, newer than this program, not ours, damaged.

    Raised at start only. The message is for the operator and says the way out.
    """


class BodyLostError(Exception):
    """A body that was moved to a file cannot be given back: the file is missing or damaged.

    The message names the file, for the operator. The event and its digest still stand.
    """
