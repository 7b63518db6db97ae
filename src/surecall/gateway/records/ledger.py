"""What keys have used, counted where several gateways meet: each takes a share and spends that.

What was taken counts as used at once, so that all together never take more than there is.
"""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Protocol

from surecall.base.files import make_private
from surecall.base.postgres_server import PostgresServer
from surecall.base.sqlite_files import explain_database_errors, write_ahead

from .postgres import is_postgres, prepare_tables

Resource = Literal["requests", "tokens"]
"""What a quota counts."""
_KEPT_WINDOWS: Final = 400
"""How many windows of a kind are remembered: the newest. No clock decides, which may be wrong."""
_BUSY_S: Final = 2.0


class Window(NamedTuple):
    """A key, what it uses, and a span of time: its length in seconds and its number since 1970."""

    key: str
    resource: Resource
    length: int
    number: int

    def is_over(self, now: float) -> bool:
        """Tell whether its time has passed."""
        return (self.number + 1) * self.length <= now


class Ledger(Protocol):
    """Where gateways count together."""

    async def take(self, window: Window, limit: int, amount: int, debt: int = 0) -> int:
        """Count a debt as used, take up to an amount of what is left, and return how much.

        Args:
            window: What is counted.
            limit: How much of it all gateways may use together.
            amount: How much is wanted.
            debt: What was used beyond what had been taken; below zero gives something back.

        Raises:
            StoreError: The place cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Let go of the place."""
        ...


class MemoryLedger:
    """Counts for one process, as long as it runs."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, Resource, int], dict[int, int]] = {}

    async def take(self, window: Window, limit: int, amount: int, debt: int = 0) -> int:
        """Count a debt as used, take up to an amount of what is left, and return how much."""
        windows = self._used.setdefault((window.key, window.resource, window.length), {})
        used = windows.get(window.number, 0) + debt
        granted = _grant(used, limit, amount)
        windows[window.number] = used + granted
        if len(windows) > _KEPT_WINDOWS:
            del windows[min(windows)]
        return granted

    async def close(self) -> None:
        """Nothing is open."""


class SqliteLedger:
    """Counts for the workers of one machine, in a file that outlives a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def take(self, window: Window, limit: int, amount: int, debt: int = 0) -> int:
        """Count a debt as used, take up to an amount of what is left, and return how much."""
        return await asyncio.to_thread(self._take, window, limit, amount, debt)

    def _take(self, window: Window, limit: int, amount: int, debt: int) -> int:
        with explain_database_errors(self._path), closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            (used,) = database.execute(
                "INSERT INTO used VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET used = used + excluded.used RETURNING used",
                (*window, debt),
            ).fetchone()
            granted = _grant(used, limit, amount)
            database.execute(
                "UPDATE used SET used = used + ? "
                "WHERE key = ? AND resource = ? AND length = ? AND number = ?",
                (granted, *window),
            )
            if used == debt:  # a window begins
                alike = "key = ? AND resource = ? AND length = ?"
                database.execute(
                    f"DELETE FROM used WHERE {alike} AND number <= (SELECT number FROM used "  # noqa: S608
                    f"WHERE {alike} ORDER BY number DESC LIMIT 1 OFFSET ?)",
                    (*window[:3], *window[:3], _KEPT_WINDOWS),
                )
            database.execute("COMMIT")
        return granted

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        make_private(self._path)
        database = sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
        write_ahead(database)
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS used (key TEXT, resource TEXT, length INTEGER, "
            "number INTEGER, used INTEGER, PRIMARY KEY (key, resource, length, number)) "
            "WITHOUT ROWID"
        )
        return database

    async def close(self) -> None:
        """Nothing is open."""


class PostgresLedger:
    """Counts for the gateways of several machines, next to their records."""

    def __init__(self, url: str) -> None:
        self._server = PostgresServer(url, self._prepare, max_size=2)

    async def take(self, window: Window, limit: int, amount: int, debt: int = 0) -> int:
        """Count a debt as used, take up to an amount of what is left, and return how much."""
        async with self._server.connect() as connection, connection.transaction():
            used = await connection.fetchval(
                "INSERT INTO surecall_budgets VALUES ($1, $2, $3, $4, $5) "
                "ON CONFLICT (key, resource, length, number) DO UPDATE "
                "SET used = surecall_budgets.used + excluded.used RETURNING used",
                *window,
                debt,
            )
            granted = _grant(used, limit, amount)
            if granted:
                await connection.execute(
                    "UPDATE surecall_budgets SET used = used + $5 "
                    "WHERE key = $1 AND resource = $2 AND length = $3 AND number = $4",
                    *window,
                    granted,
                )
            if used == debt:  # a window begins
                await connection.execute(
                    "DELETE FROM surecall_budgets WHERE key = $1 AND resource = $2 "
                    "AND length = $3 AND number <= (SELECT number FROM surecall_budgets "
                    "WHERE key = $1 AND resource = $2 AND length = $3 "
                    "ORDER BY number DESC LIMIT 1 OFFSET $4)",
                    *window[:3],
                    _KEPT_WINDOWS,
                )
        return granted

    async def _prepare(self, connection: Any) -> None:
        await prepare_tables(connection, self._server.place)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._server.close()


def open_ledger(place: str, file: Path) -> Ledger:
    """Return the ledger of a store: next to its records on a server, or in a file."""
    return PostgresLedger(place) if is_postgres(place) else SqliteLedger(file)


def _grant(used: int, limit: int, amount: int) -> int:
    return max(0, min(amount, limit - used))
