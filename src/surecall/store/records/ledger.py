"""What keys have used, counted where several gateways meet: each takes a share and spends that.

What was taken counts as used at once, so that all together never take more than there is.
"""

import asyncio
from calendar import timegm
from contextlib import closing
from pathlib import Path
from time import gmtime
from typing import Final, Literal, NamedTuple, Protocol, Self

from surecall.base.sqlite_files import Layout, connect, explain_database_errors, transaction
from surecall.store.databases import PostgresDatabase, Query, Steps, drive

from .postgres import is_postgres
from .tables import POSTGRES_LAYOUT

Resource = Literal["requests", "tokens", "cost"]
"""What a quota counts; cost in millionths of the currency of the prices."""
MINUTE_S: Final = 60
DAY_S: Final = 86_400
MONTH_S: Final = 31 * DAY_S
"""Stands for a month of the calendar."""
_KEPT_WINDOWS: Final = 400
"""How many windows of a kind are remembered: the newest. No clock decides, which may be wrong."""
_BUSY_S: Final = 2.0
BUDGETS: Final = Layout(
    0x53_43_42_47,  # "SCBG"
    (
        """
        CREATE TABLE used (
            key TEXT, resource TEXT, length INTEGER, number INTEGER, used INTEGER,
            PRIMARY KEY (key, resource, length, number)
        ) WITHOUT ROWID
        """,
    ),
)


class Window(NamedTuple):
    """A key, what it uses, and a span of time: its length in seconds and its number since 1970.

    >>> Window.at("a", "cost", MONTH_S, 0.0).end == 31 * DAY_S
    True
    """

    key: str
    resource: Resource
    length: int
    number: int

    @classmethod
    def at(cls, key: str, resource: Resource, length: int, now: float) -> Self:
        """Return the window that a moment lies in."""
        moment = gmtime(now)
        month = (moment.tm_year - 1970) * 12 + moment.tm_mon - 1
        return cls(key, resource, length, month if length == MONTH_S else int(now // length))

    @property
    def end(self) -> float:
        """When its time has passed, in seconds since 1970."""
        if self.length != MONTH_S:
            return (self.number + 1) * self.length
        years, month = divmod(self.number + 1, 12)
        return timegm((1970 + years, month + 1, 1, 0, 0, 0))


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
        return await asyncio.to_thread(self._run, _take("used", window, limit, amount, debt))

    def _run(self, steps: Steps[int]) -> int:
        """Open the file each time, so that one that was removed is begun again."""
        with explain_database_errors(self._path):
            database = connect(self._path, BUDGETS, ("synchronous = NORMAL",), busy_s=_BUSY_S)
            with closing(database), transaction(database):
                return drive(steps, database)

    async def close(self) -> None:
        """Nothing is open."""


class PostgresLedger:
    """Counts for the gateways of several machines, next to their records."""

    def __init__(self, url: str) -> None:
        self._database = PostgresDatabase(url, POSTGRES_LAYOUT, max_size=2)

    async def take(self, window: Window, limit: int, amount: int, debt: int = 0) -> int:
        """Count a debt as used, take up to an amount of what is left, and return how much."""
        steps = _take("surecall_budgets", window, limit, amount, debt)
        return await self._database.run(steps, writes=True)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._database.close()


def _take(table: str, window: Window, limit: int, amount: int, debt: int) -> Steps[int]:
    alike = "key = $1 AND resource = $2 AND length = $3"
    found = yield Query(
        f"INSERT INTO {table} VALUES ($1, $2, $3, $4, $5) "  # noqa: S608 - names of our own
        "ON CONFLICT (key, resource, length, number) DO UPDATE "
        f"SET used = {table}.used + excluded.used RETURNING used",
        (*window, debt),
    )
    used = found[0][0]
    granted = _grant(used, limit, amount)
    if granted:
        yield Query(
            f"UPDATE {table} SET used = used + $5 WHERE {alike} AND number = $4",  # noqa: S608
            (*window, granted),
        )
    if used == debt:  # a window begins
        yield Query(
            f"DELETE FROM {table} WHERE {alike} AND number <= (SELECT number FROM {table} "  # noqa: S608
            f"WHERE {alike} ORDER BY number DESC LIMIT 1 OFFSET $4)",
            (*window[:3], _KEPT_WINDOWS),
        )
    return granted


def open_ledger(place: str, file: Path) -> Ledger:
    """Return the ledger of a store: next to its records on a server, or in a file."""
    return PostgresLedger(place) if is_postgres(place) else SqliteLedger(file)


def _grant(used: int, limit: int, amount: int) -> int:
    return max(0, min(amount, limit - used))
