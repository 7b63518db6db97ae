"""What every request leaves behind, kept durably in SQLite or PostgreSQL."""

from pathlib import Path
from typing import Final

from surecall.base.errors import Code, StoreError

from .postgres import PostgresRecords, is_postgres
from .spool import Spool, SpooledRecords
from .sqlite import Durability, SqliteRecords, store_files
from .store import DEFAULT_SPOOL_BYTES, RecordStore

__all__ = ["STORE_FILE", "open_for_reading", "open_records"]

STORE_FILE: Final = ".surecall/requests.db"
"""Where requests are kept when nobody says otherwise."""


def open_records(
    place: str | Path,
    *,
    worker: int = 0,
    durable: Durability = "process",
    spool: str | Path | None = None,
    spool_bytes: int = DEFAULT_SPOOL_BYTES,
) -> SpooledRecords:
    """Open a store for a gateway, with a spool for when it is away.

    Args:
        place: A file, or the address of a PostgreSQL server.
        worker: Number of this worker; each has a file and a spool of its own.
        durable: What a record in a file survives once it was added.
        spool: Where records wait; by default next to the file, or in `.surecall`.
        spool_bytes: How large the spool may be.
    """
    text = str(place)
    if is_postgres(text):
        store: RecordStore = PostgresRecords(text)
        beside = Path(STORE_FILE)
    else:
        store, beside = SqliteRecords(text, worker=worker, durable=durable), Path(text)
    path = Path(spool) if spool is not None else beside.with_suffix(".spool")
    if worker:
        path = path.with_name(f"{path.stem}.w{worker}{path.suffix}")
    return SpooledRecords(store, Spool(path, max_bytes=spool_bytes))


def open_for_reading(place: str | Path) -> RecordStore:
    """Open a store that must be there, to look at what is in it.

    Raises:
        StoreError: `RECORD_NOT_FOUND` when there is no such file.
    """
    text = str(place)
    if is_postgres(text):
        return PostgresRecords(text)
    if not store_files(text):
        raise StoreError(
            Code.RECORD_NOT_FOUND,
            f"there are no requests: {text} does not exist.",
            hint="Run surecall serve first, or name the store with --store.",
        )
    return SqliteRecords(text)
