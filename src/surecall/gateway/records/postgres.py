"""Requests in PostgreSQL, for several gateways that share one store.

Whatever gathers while one batch is on its way goes with the next: one statement and one round
trip for each batch. What a record survives is what the server promises for a commit.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

from surecall.base.errors import Code, RowRefusedError, StoreError
from surecall.base.limits import MIB
from surecall.base.postgres_server import PostgresServer, damaged_tables, migrate_tables
from surecall.gateway.supervision import Supervised

from .batches import Waiting, WaitingRows, settle
from .record import COLUMNS, RequestRecord, StoredRow, decode_row, encode_row
from .selections import POSTGRES, render_selection
from .store import (
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
_READ_CONNECTIONS: Final = 3
_MAX_BATCH: Final = 1000
_MAX_BATCH_BYTES: Final = 4 * MIB
"""More in one statement could take longer than a server has for it."""
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
        # Writing has a connection of its own, so that it never waits for those who read.
        self._writer = PostgresServer(url, self._prepare, max_size=1)
        self._reader = PostgresServer(url, self._prepare, max_size=_READ_CONNECTIONS)
        self._place = self._writer.place
        self._waiting = WaitingRows(self._begin_writing)
        self._writing = Supervised("writing records", self._write_waiting, self.counts.note_restart)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"PostgresRecords({self._place!r})"

    async def _prepare(self, connection: Any) -> None:
        await prepare_tables(connection, self._place)

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
        self._writing.start()

    async def _write_waiting(self) -> None:
        while taken := self._waiting.take():
            parts = list(_split(taken))
            try:
                while parts:
                    await self._write_part(parts)
            except BaseException as died:  # nobody waits for a task that is no more
                _fail(parts, StoreError(Code.STORE_WRITE_FAILED, f"writing ended by {died!r}."))
                raise

    async def _write_part(self, parts: "list[Sequence[Waiting]]") -> None:
        """Write the last part; a row that the server refuses is found by halves, to fail alone."""
        part = parts[-1]
        try:
            await self._insert([row for row, _ in part])
        except RowRefusedError as error:
            if len(part) > 1:
                middle = len(part) // 2
                parts[-1:] = [part[middle:], part[:middle]]
                return
            settle(part, [error])
        except StoreError as error:
            self.counts.reopened = self._writer.reconnects
            _fail(parts, error)
            return
        else:
            self.counts.stored += len(part)
            self.counts.batches += 1
            settle(part)
        parts.pop()

    async def _insert(self, rows: Sequence[StoredRow]) -> None:
        arrays = [list(column) for column in zip(*(row.columns for row in rows), strict=True)]
        bodies = [row.bodies for row in rows if row.bodies is not None]
        async with self._writer.connect() as connection:
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
        found = await self._reader.fetch(query, *values)
        records = tuple(self._decode(row) for row in found[:limit])
        return RecordPage(records=records, next=records[-1].id if len(found) > limit else None)

    async def get(self, record_id: str) -> RequestRecord | None:
        """Return one record with its bodies."""
        if "\0" in record_id:
            return None
        found = await self._reader.fetch(f"{_SELECT} WHERE r.id = $1", record_id)
        return self._decode(found[0]) if found else None

    async def export(
        self,
        wanted: RecordFilter = RecordFilter(),  # noqa: B008 - frozen
    ) -> AsyncIterator[RequestRecord]:
        """Yield all records that are wanted, the earliest first, with their bodies."""
        after = ""
        while True:
            where, values = render_filter(wanted, "$", "strpos", after=after)
            found = await self._reader.fetch(
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
        return [tuple(row) for row in await self._reader.fetch(query, *values)]

    def _decode(self, row: Any) -> RequestRecord:
        try:
            values = tuple(row)
            return decode_row(values[:-2], *values[-2:])
        except (ValueError, TypeError) as error:
            raise damaged_tables(self._place, str(error)) from error

    # keeping it small

    async def prune(self, retention: Retention) -> int:
        """Remove what need not be kept; several gateways may do so at once."""
        found: Sequence[Any] = ()
        if retention.max_records is not None:
            query = "SELECT id FROM surecall_requests ORDER BY id DESC LIMIT 1 OFFSET $1"
            found = await self._reader.fetch(query, max(retention.max_records, 0))
        last = first_kept(retention, found[0][0] if found else None)
        removed = 0
        while last:
            found = await self._reader.fetch(
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
        while len(self._waiting) or self._writing.is_running:
            self._writing.start()
            await self._writing.wait()
        self._is_closed = True
        await self._writer.close()
        await self._reader.close()


def _split(taken: Sequence[Waiting]) -> Iterator[Sequence[Waiting]]:
    """Yield what is waiting in parts that a server takes in time, the last first."""
    end, size = len(taken), 0
    for start in range(len(taken) - 1, -1, -1):
        size += taken[start][0].size
        if start == 0 or end - start == _MAX_BATCH or size > _MAX_BATCH_BYTES:
            yield taken[start:end]
            end, size = start, 0


def _fail(parts: "list[Sequence[Waiting]]", error: StoreError) -> None:
    """Tell everybody in some parts why nothing of them is stored."""
    for part in parts:
        settle(part, [error] * len(part))
    parts.clear()


async def prepare_tables(connection: Any, place: str) -> None:
    """Bring the tables to the present layout, one gateway at a time."""
    await migrate_tables(connection, place, MIGRATIONS, table="surecall_layout", lock=_LOCK)
