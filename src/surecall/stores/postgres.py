"""A store in PostgreSQL, for applications on several machines."""

import asyncio
from contextlib import nullcontext
from typing import Any, Final, TypeVar

from surecall.errors import Code, StoreError
from surecall.postgres import (
    CONNECT_S,
    close_pool,
    damaged_tables,
    explain_postgres_errors,
    migrate_tables,
    open_pool,
    place_of,
)

from .base import DatabaseStore
from .rows import DamagedRow
from .steps import Steps
from .tables import POSTGRES_MIGRATIONS

T = TypeVar("T")

_LOCK: Final = 0x53_43_57_53
"""Number of the lock under which one process at a time looks after the layout."""


class PostgresStore(DatabaseStore):
    """Workspaces, approvals and paused runs on a server; used within one event loop.

    Args:
        url: Such as `postgresql://user@host/database`; a password may be in `PGPASSWORD` or in
            the password file, where the driver looks by itself.
    """

    def __init__(self, url: str) -> None:
        self._place = place_of(url)
        super().__init__(_PostgresDatabase(url, self._place))

    def __repr__(self) -> str:
        return f"PostgresStore({self._place!r})"


class _PostgresDatabase:
    def __init__(self, url: str, place: str) -> None:
        self._url = url
        self._place = place
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def run(self, taken: Steps[T], *, writes: bool) -> T:
        pool = await self._open()
        with explain_postgres_errors(self._place):
            try:
                async with (
                    pool.acquire(timeout=CONNECT_S) as connection,
                    connection.transaction() if writes else nullcontext(),
                ):
                    return await _drive(taken, connection)
            except DamagedRow as error:
                raise damaged_tables(self._place, str(error)) from None

    async def close(self) -> None:
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await close_pool(pool)

    async def _open(self) -> Any:
        async with self._opening:
            if self._is_closed:
                raise StoreError(Code.STORE_WRITE_FAILED, f"{self._place} was closed.")
            if self._pool is None:
                self._pool = await open_pool(self._url, self._prepare)
            return self._pool

    async def _prepare(self, connection: Any) -> None:
        await migrate_tables(
            connection,
            self._place,
            POSTGRES_MIGRATIONS,
            table="surecall_workspace_layout",
            lock=_LOCK,
        )


async def _drive(taken: Steps[T], connection: Any) -> T:
    try:
        query = next(taken)
        while True:
            query = taken.send(await connection.fetch(query.text, *query.values))
    except StopIteration as done:
        return done.value
