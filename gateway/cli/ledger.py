"""Opens the ledger that is configured: an operator changes `storage.url`, nothing else."""

from collections.abc import Callable
from functools import partial

from gateway.config import Config
from reconciler.config import resolve_secret
from reconciler.storage.blobs.files import BlobFiles, open_folder
from reconciler.storage.contract import Store
from reconciler.upkeep import Bounds


def open_ledger(config: Config, now: Callable[[], int]) -> Store:
    """Return the open ledger; `LedgerError` and `ConfigError` say the way out.

    An engine is imported when it is used: nobody waits for the other one.
    """
    section = config.settings.storage
    if section.is_shared:
        from reconciler.storage.redis.store import open_store as open_redis

        password = section.password and resolve_secret(section.password, config.folder)
        return open_redis(section.url, password=password, queue_max=section.queue_max)
    from reconciler.storage.sqlite.store import open_store as open_sqlite
    from reconciler.storage.sqlite.writer import WriterThread

    writer = partial(WriterThread, queue_max=section.queue_max)
    return open_sqlite(config.ledger(), now=now, executor=writer)


def open_blobs(config: Config) -> BlobFiles | None:
    """Return where bodies move to; `None`: the ledger is shared and no shared folder is named.

    The data folder exists. `LedgerError` says the way out.
    """
    named = config.settings.retention.folder
    if named is not None:
        return open_folder(config.folder / named, is_ours=False)
    if config.settings.storage.is_shared:
        return None
    return open_folder(config.data_folder() / "blobs", is_ours=True)


def bounds(config: Config) -> Bounds:
    """Return what is kept, and for how long."""
    section = config.settings.retention
    return Bounds(
        refusals_kept=config.settings.limits.refusals_kept,
        events_ms=section.events_days * 86_400_000,
        offload_bytes=section.offload_bytes,
        offload_after_ms=section.offload_after_s * 1000,
    )


def lease_clock(config: Config, now: Callable[[], int]) -> Callable[[], int]:
    """Return what says the time of leases: on a shared ledger the server (0), else this process."""
    return (lambda: 0) if config.settings.storage.is_shared else now
