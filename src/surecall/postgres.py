"""PostgreSQL servers: connected to lazily, brought to the present layout, refused with a code."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from surecall.errors import Code, ConfigError, StoreError

__all__ = [
    "CONNECT_S",
    "close_pool",
    "damaged_tables",
    "explain_postgres_errors",
    "migrate_tables",
    "open_pool",
    "place_of",
]

CONNECT_S: Final = 5.0
"""How long a connection may take to open, or to become free."""
_COMMAND_S: Final = 5.0


async def open_pool(
    url: str, prepare: Callable[[Any], Awaitable[None]], *, max_size: int = 4
) -> Any:
    """Connect to a server; the connections are closed again when `prepare` refuses it."""
    with explain_postgres_errors(place_of(url)):
        pool = await _load_driver().create_pool(
            url,
            min_size=1,
            max_size=max_size,
            timeout=CONNECT_S,
            command_timeout=_COMMAND_S,
        )
        try:
            async with pool.acquire(timeout=CONNECT_S) as connection:
                await prepare(connection)
        except BaseException:
            pool.terminate()
            raise
    return pool


async def close_pool(pool: Any) -> None:
    """Close the connections; those that do not end in time are cut."""
    try:
        await asyncio.wait_for(pool.close(), CONNECT_S)
    except (TimeoutError, OSError):
        pool.terminate()


async def migrate_tables(
    connection: Any, place: str, migrations: Sequence[str], *, table: str, lock: int
) -> None:
    """Bring tables to the present layout, one process at a time.

    Args:
        connection: To the server.
        place: What errors call it.
        migrations: What leads from each layout to the next.
        table: Where the number of the layout is kept.
        lock: The number of the lock under which one process at a time looks after the layout.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock($1)", lock)
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (version INTEGER NOT NULL)")
        found = await connection.fetchval(f"SELECT max(version) FROM {table}")  # noqa: S608
        version, newest = found or 0, len(migrations)
        if version > newest:
            raise StoreError(
                Code.STORE_TOO_NEW,
                f"{place} has layout {version}; this version of surecall knows {newest}.",
                hint="Use the newer surecall, or name another database with --store.",
            )
        for step in migrations[version:]:
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
def explain_postgres_errors(place: str) -> Generator[None]:
    """Turn what the driver raises into an error with a code."""
    asyncpg = _load_driver()
    try:
        yield
    except StoreError:
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
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
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
