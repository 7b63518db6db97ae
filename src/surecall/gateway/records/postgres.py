"""Requests in PostgreSQL, for several gateways that share one store.

Whatever gathers while one batch is on its way goes with the next: one statement and one round
trip for each batch. What a record survives is what the server promises for a commit.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from surecall.errors import SurecallError
from surecall.postgres import (
    CONNECT_S,
    close_pool,
    damaged_tables,
    explain_postgres_errors,
    migrate_tables,
    open_pool,
    place_of,
)

from .base import (
    MAX_PAGE,
    Figures,
    RecordFilter,
    RecordPage,
    Retention,
    Selection,
    StoreCounts,
    closed_store,
    first_kept,
    render_filter,
)
from .batches import Waiting, WaitingRows, settle
from .record import COLUMNS, RequestRecord, StoredRow, decode_row, encode_row
from .selections import POSTGRES, render_selection

_OF_PRIMARY_KEY: Final = ' COLLATE "C" PRIMARY KEY'
_NULLABLE: Final = frozenset({"first_byte_ms", "findings", "details"})


def _declare(name: str, kind: str) -> str:
    if name == "id":
        return f"{name} {kind}{_OF_PRIMARY_KEY}"
    return f"{name} {kind}" if name in _NULLABLE else f"{name} {kind} NOT NULL"


MIGRATIONS: Final[tuple[str, ...]] = (
    f"""
    CREATE TABLE surecall_requests (
        {", ".join(_declare(name, types[1]) for name, types in COLUMNS.items())}
    );
    CREATE INDEX surecall_requests_with_findings
        ON surecall_requests (id) WHERE findings IS NOT NULL;
    CREATE INDEX surecall_requests_not_clean
        ON surecall_requests (id) WHERE outcome <> 'clean';
    CREATE TABLE surecall_bodies (
        id TEXT COLLATE "C" PRIMARY KEY,
        request BYTEA,
        reply BYTEA
    );
    """,
    """
    CREATE TABLE surecall_budgets (
        key TEXT NOT NULL,
        resource TEXT NOT NULL,
        length BIGINT NOT NULL,
        number BIGINT NOT NULL,
        used BIGINT NOT NULL,
        PRIMARY KEY (key, resource, length, number)
    );
    """,
)
"""What leads from each layout of the tables to the next."""

_LOCK: Final = 0x53_43_52_51
"""Number of the lock under which one gateway at a time looks after the layout."""
_NAMES: Final = ", ".join(f"r.{name}" for name in COLUMNS)
_ARRAYS: Final = ", ".join(f"${at}::{types[1]}[]" for at, types in enumerate(COLUMNS.values(), 1))
_INSERT: Final = (
    f"INSERT INTO surecall_requests ({', '.join(COLUMNS)}) "  # noqa: S608 - names of our own
    f"SELECT * FROM unnest({_ARRAYS}) ON CONFLICT DO NOTHING"
)
_INSERT_BODIES: Final = (
    "INSERT INTO surecall_bodies SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[]) "
    "ON CONFLICT DO NOTHING"
)
_SELECT: Final = (
    f"SELECT {_NAMES}, b.request, b.reply FROM surecall_requests r "  # noqa: S608
    "LEFT JOIN surecall_bodies b ON b.id = r.id"
)
_SELECT_ROWS: Final = f"SELECT {_NAMES}, NULL, NULL FROM surecall_requests r"  # noqa: S608
_MAX_CONNECTIONS: Final = 4
_MAX_BATCH: Final = 1000
_PRUNE_ROWS: Final = 5000


def is_postgres(place: str) -> bool:
    """Tell whether a place is the address of a server, and not a file."""
    return place.startswith(("postgresql://", "postgres://"))


class PostgresRecords:
    """The requests of all gateways that share a server.

    Args:
        url: Such as `postgresql://user@host/database`; a password may be in `PGPASSWORD` or in
            the password file, where the driver looks by itself.
    """

    def __init__(self, url: str) -> None:
        self.counts = StoreCounts()
        self._url = url
        self._place = place_of(url)
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._waiting = WaitingRows(self._begin_writing)
        self._writing: asyncio.Task[None] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"PostgresRecords({self._place!r})"

    # writing

    async def add(self, record: RequestRecord) -> None:
        """Keep a record; when this returns it is durable."""
        if self._is_closed:
            raise closed_store()
        future = self._waiting.put(encode_row(record))
        assert future is not None
        await future

    def add_soon(self, record: RequestRecord) -> None:
        """Keep a record without waiting for it."""
        if self._is_closed:
            raise closed_store()
        self._waiting.put(encode_row(record), waits=False)

    def _begin_writing(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.get_running_loop().create_task(self._write_waiting())

    async def _write_waiting(self) -> None:
        while taken := self._waiting.take():
            for start in range(0, len(taken), _MAX_BATCH):
                await self._write_batch(taken[start : start + _MAX_BATCH])

    async def _write_batch(self, taken: Sequence[Waiting]) -> None:
        try:
            await self._insert([row for row, _ in taken])
        except SurecallError as error:
            settle(taken, error)
        except BaseException:  # whatever it is, nobody may wait for ever
            settle(taken, closed_store())
            raise
        else:
            self.counts.stored += len(taken)
            self.counts.batches += 1
            settle(taken)

    async def _insert(self, rows: Sequence[StoredRow]) -> None:
        arrays = [list(column) for column in zip(*(row.columns for row in rows), strict=True)]
        bodies = [row.bodies for row in rows if row.bodies is not None]
        pool = await self._open()
        with explain_postgres_errors(self._place):
            async with pool.acquire(timeout=CONNECT_S) as connection:
                if not bodies:  # one statement is a transaction of its own
                    await connection.execute(_INSERT, *arrays)
                    return
                async with connection.transaction():
                    await connection.execute(_INSERT, *arrays)
                    await connection.execute(_INSERT_BODIES, *zip(*bodies, strict=True))

    # reading

    async def list(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
        *,
        before: str | None = None,
        limit: int = 50,
    ) -> RecordPage:
        """Return a page of records, the latest first."""
        limit = max(1, min(limit, MAX_PAGE))
        where, values = render_filter(wanted, "$", "strpos", before=before)
        query = f"{_SELECT_ROWS} WHERE {where} ORDER BY r.id DESC LIMIT {limit + 1}"
        found = await self._fetch(query, *values)
        records = tuple(self._decode(row) for row in found[:limit])
        return RecordPage(records=records, next=records[-1].id if len(found) > limit else None)

    async def get(self, record_id: str) -> RequestRecord | None:
        """Return one record with its bodies."""
        if "\0" in record_id:
            return None
        found = await self._fetch(f"{_SELECT} WHERE r.id = $1", record_id)
        return self._decode(found[0]) if found else None

    async def export(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> AsyncIterator[RequestRecord]:
        """Yield all records that are wanted, the earliest first, with their bodies."""
        after = ""
        while True:
            where, values = render_filter(wanted, "$", "strpos", after=after)
            found = await self._fetch(
                f"{_SELECT} WHERE {where} ORDER BY r.id LIMIT {MAX_PAGE}", *values
            )
            for row in found:
                yield self._decode(row)
            if len(found) < MAX_PAGE:
                return
            after = found[-1][0]

    async def select(
        self,
        selection: Selection,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> Figures:
        """Return figures of the records that are wanted."""
        query, values = render_selection(selection, wanted, POSTGRES)
        return [tuple(row) for row in await self._fetch(query, *values)]

    def _decode(self, row: Any) -> RequestRecord:
        try:
            values = tuple(row)
            return decode_row(values[:-2], *values[-2:])
        except (ValueError, TypeError) as error:
            raise damaged_tables(self._place, str(error)) from error

    async def _fetch(self, query: str, *values: Any) -> Sequence[Any]:
        pool = await self._open()
        with explain_postgres_errors(self._place):
            async with pool.acquire(timeout=CONNECT_S) as connection:
                return await connection.fetch(query, *values)

    # keeping it small

    async def prune(self, retention: Retention) -> int:
        """Remove what need not be kept; several gateways may do so at once."""
        found: Sequence[Any] = ()
        if retention.max_records is not None:
            query = "SELECT id FROM surecall_requests ORDER BY id DESC LIMIT 1 OFFSET $1"
            found = await self._fetch(query, max(retention.max_records, 0))
        last = first_kept(retention, found[0][0] if found else None)
        removed = 0
        while last:
            found = await self._fetch(
                "WITH old AS (SELECT id FROM surecall_requests WHERE id < $1 ORDER BY id "
                "LIMIT $2 FOR UPDATE SKIP LOCKED), "
                "gone AS (DELETE FROM surecall_bodies b USING old WHERE b.id = old.id) "
                "DELETE FROM surecall_requests r USING old WHERE r.id = old.id RETURNING r.id",
                last,
                _PRUNE_ROWS,
            )
            removed += len(found)
            if len(found) < _PRUNE_ROWS:
                break
        return removed

    async def close(self) -> None:
        """Write what is waiting, and let go of the connections."""
        while len(self._waiting) or (self._writing is not None and not self._writing.done()):
            self._begin_writing()
            assert self._writing is not None
            await self._writing
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await close_pool(pool)

    async def _open(self) -> Any:
        if self._pool is not None:
            return self._pool
        async with self._opening:
            if self._is_closed:
                raise closed_store()
            if self._pool is None:
                self._pool = await self._connect()
            return self._pool

    async def _connect(self) -> Any:
        async def prepare(connection: Any) -> None:
            await prepare_tables(connection, self._place)

        return await open_pool(self._url, prepare, max_size=_MAX_CONNECTIONS)


async def prepare_tables(connection: Any, place: str) -> None:
    """Bring the tables to the present layout, one gateway at a time."""
    await migrate_tables(connection, place, MIGRATIONS, table="surecall_layout", lock=_LOCK)
