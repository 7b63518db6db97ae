"""PostgreSQL servers: connected to lazily, brought to the present layout, refused with a code."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from surecall.base.errors import Code, ConfigError, StoreError, SurecallError, row_refused
from surecall.base.sqlite_files import Layout

__all__ = [
    "PostgresServer",
    "damaged_tables",
    "place_of",
]

_CONNECT_S: Final = 5.0
"""How long a connection may take to open, or to become free."""
_COMMAND_S: Final = 5.0
_USE_S: Final = 20.0
"""How long a connection may be used, with all that the driver waits for by itself."""
_LOST: Final = frozenset({"08", "57", "58", "XX"})
"""Classes of errors after which a connection is given up: it was lost, the server is being stopped,
or fails by itself."""
_REFUSED: Final = frozenset({"22", "23", "54", "P0"})
"""Classes of errors that are about the values: no type takes them, or a constraint or trigger."""
_NOT_BOUND: Final = (TypeError, ValueError, OverflowError)
"""Errors that the driver raises for a value that it cannot send."""


class PostgresServer:
    """Connections to a server, made when they are needed and made again after it was away.

    Nothing waits for the server for ever, whatever state it or the driver is in. When a connection
    fails, all of them are given up and the next use connects again.

    Args:
        url: Such as `postgresql://user@host/database`.
        layout: What the tables are brought to, on the first connection of all.
        max_size: How many connections there may be.
    """

    def __init__(self, url: str, layout: Layout, *, max_size: int = 4) -> None:
        self.place = place_of(url)
        self.reconnects = 0
        """How often the connections were given up because one of them failed."""
        self._url = url
        self._layout = layout
        self._max_size = max_size
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any]:
        """Have a connection for a moment.

        Raises:
            StoreError: The server cannot be used, or refuses; `RowRefusedError` for a value that it
                will never take.
        """
        pool = None
        with _explain_errors(self.place):
            try:
                async with asyncio.timeout(_USE_S):
                    pool = await self._open()
                    async with pool.acquire(timeout=_CONNECT_S) as connection:
                        yield connection
            except Exception as error:
                if pool is not None and pool is self._pool and _breaks_connection(error):
                    self._pool = None
                    self.reconnects += 1
                    self._close_later(pool)
                raise

    async def fetch(self, query: str, *values: Any) -> list[Any]:
        """Run one statement and return its rows."""
        async with self.connect() as connection:
            return await connection.fetch(query, *values)

    async def close(self) -> None:
        """Close the connections; those that do not end in time are cut."""
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            self._close_later(pool)
        await asyncio.gather(*self._closing)

    async def _open(self) -> Any:
        async with self._opening:
            if self._is_closed:
                raise StoreError(Code.STORE_WRITE_FAILED, f"{self.place} was closed.")
            if self._pool is None:
                self._pool = await self._connect()
            return self._pool

    async def _connect(self) -> Any:
        pool = await _load_driver().create_pool(
            self._url,
            min_size=0,  # with a floor the driver goes on by itself, and logs tracebacks
            max_size=self._max_size,
            timeout=_CONNECT_S,
            command_timeout=_COMMAND_S,
        )
        try:
            async with pool.acquire(timeout=_CONNECT_S) as connection:
                await _migrate(connection, self.place, self._layout)
        except BaseException:
            pool.terminate()
            raise
        return pool

    def _close_later(self, pool: Any) -> None:
        """Close a pool once nobody uses it any more."""
        task = asyncio.get_running_loop().create_task(_close_pool(pool))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close_pool(pool: Any) -> None:
    try:
        await asyncio.wait_for(pool.close(), _CONNECT_S)
    except Exception:  # whatever the driver says: nothing of it is used any more
        pool.terminate()


def _breaks_connection(error: Exception) -> bool:
    """Tell whether an error leaves a connection that may not work any more."""
    if isinstance(error, _load_driver().PostgresError):
        return str(getattr(error, "sqlstate", ""))[:2] in _LOST
    return not isinstance(error, (SurecallError, *_NOT_BOUND))


async def _migrate(connection: Any, place: str, layout: Layout) -> None:
    """Bring tables to the present layout, one process at a time."""
    table = layout.table
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", layout.number)
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (version INTEGER NOT NULL)")
        found = await connection.fetchval(f"SELECT max(version) FROM {table}")  # noqa: S608
        version, newest = found or 0, len(layout.steps)
        if version > newest:
            raise StoreError(
                Code.STORE_TOO_NEW,
                f"{place} has layout {version}; this version of surecall knows {newest}.",
                hint="Use the newer surecall, or name another database with --store.",
            )
        for step in layout.steps[version:]:
            await connection.execute(step)
        if version < newest:
            await connection.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of our own
            await connection.execute(f"INSERT INTO {table} VALUES ($1)", newest)  # noqa: S608


def place_of(url: str) -> str:
    """Return where a server is, without the password."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


@contextmanager
def _explain_errors(place: str) -> Generator[None]:
    """Turn what the driver raises into an error with a code."""
    asyncpg = _load_driver()
    try:
        yield
    except SurecallError:
        raise
    except (asyncpg.DiskFullError, asyncpg.OutOfMemoryError) as error:
        raise StoreError(
            Code.DISK_FULL, f"{place} has no room left: {error}.", hint="Free some space there."
        ) from error
    except (
        asyncpg.DataCorruptedError,
        asyncpg.IndexCorruptedError,
        asyncpg.UndefinedTableError,
        asyncpg.UndefinedColumnError,
    ) as error:
        raise damaged_tables(place, str(error)) from error
    except Exception as error:  # the driver raises whatever went wrong inside it
        is_refused = str(getattr(error, "sqlstate", ""))[:2] in _REFUSED
        if is_refused or isinstance(error, _NOT_BOUND):
            raise row_refused(place, error) from error
        reason = str(error) or type(error).__name__
        raise StoreError(
            Code.STORE_WRITE_FAILED,
            f"{place} cannot be used: {reason.rstrip('.')}.",
            hint="Check the address, the server and the permissions.",
        ) from error


def damaged_tables(place: str, reason: str) -> StoreError:
    """Return the error for tables whose content cannot be right."""
    return StoreError(
        Code.STORE_CORRUPT,
        f"{place} is damaged, or its tables are not those of surecall: {reason.rstrip('.')}.",
        hint="Restore it, or name another database with --store.",
    )


def _load_driver() -> Any:
    try:
        return import_module("asyncpg")
    except ImportError as error:
        raise ConfigError(
            Code.EXTRA_MISSING,
            "PostgreSQL needs asyncpg, which is not installed.",
            hint="Run: pip install 'surecall[postgres]'",
        ) from error
