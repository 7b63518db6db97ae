"""Requests in PostgreSQL, for several gateways that share one store.

Whatever gathers while one batch is on its way goes with the next: one statement and one round
trip for each batch. What a record survives is what the server promises for a commit.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from surecall.base.background import Supervised
from surecall.base.errors import Code, RowRefusedError, StoreError
from surecall.base.limits import MIB
from surecall.base.postgres_server import PostgresServer, damaged_tables
from surecall.store.databases import Query, Rows

from .record import COLUMNS, RequestRecord, StoredRow, encode_row
from .store import (
    RecordStore,
    StoreCounts,
    Waiting,
    WaitingRows,
    closed_store,
    finish,
)
from .tables import POSTGRES, POSTGRES_LAYOUT

_ARRAYS: Final = ", ".join(f"${at}::{one.postgres}[]" for at, one in enumerate(COLUMNS.values(), 1))
_INSERT: Final = (
    f"INSERT INTO surecall_requests ({', '.join(COLUMNS)}) "  # noqa: S608 - names of our own
    f"SELECT * FROM unnest({_ARRAYS}) ON CONFLICT DO NOTHING"
)
_INSERT_BODIES: Final = (
    "INSERT INTO surecall_bodies SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[]) "
    "ON CONFLICT DO NOTHING"
)
_READ_CONNECTIONS: Final = 3
_MAX_BATCH: Final = 1000
_MAX_BATCH_BYTES: Final = 4 * MIB
"""More in one statement could take longer than a server has for it."""
_PRUNE_ROWS: Final = 5000


def is_postgres(place: str) -> bool:
    """Tell whether a place is the address of a server, and not a file."""
    return place.startswith(("postgresql://", "postgres://"))


class PostgresRecords(RecordStore):
    """The requests of all gateways that share a server.

    Args:
        url: Such as `postgresql://user@host/database`; a password may be in `PGPASSWORD` or in
            the password file, where the driver looks by itself.
    """

    dialect = POSTGRES

    def __init__(self, url: str) -> None:
        self.counts = StoreCounts()
        # Writing has a connection of its own, so that it never waits for those who read.
        self._writer = PostgresServer(url, POSTGRES_LAYOUT, max_size=1)
        self._reader = PostgresServer(url, POSTGRES_LAYOUT, max_size=_READ_CONNECTIONS)
        self._place = self._writer.place
        self._waiting = WaitingRows(self._begin_writing)
        self._writing = Supervised("writing records", self._write_waiting, self.counts.note_restart)
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
            finish(part, [error])
        except StoreError as error:
            self.counts.reopened = self._writer.reconnects
            _fail(parts, error)
            return
        else:
            self.counts.stored += len(part)
            self.counts.batches += 1
            finish(part)
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

    async def fetch(self, query: Query) -> list[Rows]:
        """Ask the server."""
        return [await self._reader.fetch(query.text, *query.values)]

    def explain_damage(self, reason: str) -> StoreError:
        """Return the error for a row that cannot be right."""
        return damaged_tables(self._place, reason)

    # keeping it small

    async def find_latest(self, skipped: int) -> str:
        """Return the latest id but so many."""
        query = "SELECT id FROM surecall_requests ORDER BY id DESC LIMIT 1 OFFSET $1"
        found = await self._reader.fetch(query, skipped)
        return found[0][0] if found else ""

    async def remove_some(self, last: str) -> tuple[int, bool]:
        """Remove some records below an id; several gateways may do so at once."""
        found = await self._reader.fetch(
            "WITH old AS (SELECT id FROM surecall_requests WHERE id < $1 ORDER BY id "
            "LIMIT $2 FOR UPDATE SKIP LOCKED), "
            "gone AS (DELETE FROM surecall_bodies b USING old WHERE b.id = old.id) "
            "DELETE FROM surecall_requests r USING old WHERE r.id = old.id RETURNING r.id",
            last,
            _PRUNE_ROWS,
        )
        return len(found), len(found) == _PRUNE_ROWS

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
        finish(part, [error] * len(part))
    parts.clear()
