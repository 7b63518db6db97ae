"""A store in PostgreSQL, for applications on several machines."""

from contextlib import nullcontext
from typing import Any, Final, TypeVar

from surecall.base.postgres_server import PostgresServer, damaged_tables, migrate_tables, place_of

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
        super().__init__(_PostgresDatabase(url))

    def __repr__(self) -> str:
        return f"PostgresStore({self._place!r})"


class _PostgresDatabase:
    def __init__(self, url: str) -> None:
        self._server = PostgresServer(url, self._prepare)

    async def run(self, taken: Steps[T], *, writes: bool) -> T:
        async with self._server.connect() as connection:
            try:
                async with connection.transaction() if writes else nullcontext():
                    return await _drive(taken, connection)
            except DamagedRow as error:
                raise damaged_tables(self._server.place, str(error)) from None

    async def close(self) -> None:
        await self._server.close()

    async def _prepare(self, connection: Any) -> None:
        await migrate_tables(
            connection,
            self._server.place,
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
