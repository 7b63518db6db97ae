"""What a store asks, and the two databases that answer: a SQLite file, and a PostgreSQL server.

A method of a store is a generator: it yields queries and is sent their rows. `reads` and `writes`
make it a coroutine that runs all of them in one transaction, so whatever a generator raises leaves
nothing behind.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from surecall.base.errors import Code, StoreError
from surecall.base.postgres_server import PostgresServer, damaged_tables
from surecall.base.sqlite_files import (
    Layout,
    connect,
    damaged,
    explain_database_errors,
    transaction,
)

if TYPE_CHECKING:
    from types import CoroutineType

T = TypeVar("T")
P = ParamSpec("P")


class Query(NamedTuple):
    """One statement; `$1` stands for the first value, as often as it is needed."""

    text: str
    values: tuple[Any, ...] = ()


Rows = Sequence[Sequence[Any]]
Steps = Generator[Query, Rows, T]


class DamagedRow(ValueError):  # noqa: N818 - what was found
    """A row holds what no version of surecall writes."""


class Database(Protocol):
    """Runs the steps of one method in one transaction."""

    async def run(self, steps: Steps[T], *, writes: bool) -> T:
        """Run all steps, or leave nothing behind; `writes` is false for those that only read."""
        ...

    async def close(self) -> None:
        """Let go of the database."""
        ...


class HasDatabase(Protocol):
    """A store, as `reads` and `writes` see it."""

    database: Database


S = TypeVar("S", bound=HasDatabase)
if TYPE_CHECKING:
    Method = Callable[Concatenate[S, P], CoroutineType[Any, Any, T]]


def reads(ask: Callable[Concatenate[S, P], Steps[T]]) -> "Method[S, P, T]":
    """Make a generator of queries a method that reads."""
    return _as_method(ask, writes=False)


def writes(ask: Callable[Concatenate[S, P], Steps[T]]) -> "Method[S, P, T]":
    """Make a generator of queries a method that writes, all of them or nothing."""
    return _as_method(ask, writes=True)


def _as_method(ask: Callable[Concatenate[S, P], Steps[T]], *, writes: bool) -> "Method[S, P, T]":
    @wraps(ask)
    async def method(store: S, /, *arguments: P.args, **settings: P.kwargs) -> T:
        return await store.database.run(ask(store, *arguments, **settings), writes=writes)

    return method


class SqliteDatabase:
    """One SQLite file, which several processes may use at once.

    Args:
        path: The file; it is made, with its folder, when it is not there.
        layout: Its tables.
        settings: Pragmas of each connection. By default a commit survives a loss of power.
    """

    def __init__(
        self, path: Path, layout: Layout, settings: Sequence[str] = ("synchronous = FULL",)
    ) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = connect(path, layout, settings)
        self._turn = threading.Lock()

    async def run(self, steps: Steps[T], *, writes: bool) -> T:
        """Run all steps on a thread, in one transaction if they write."""
        return await asyncio.to_thread(self._run, steps, writes)

    async def close(self) -> None:
        """Close the file."""
        await asyncio.to_thread(self._close)

    def _run(self, steps: Steps[T], writes: bool) -> T:
        with self._turn, explain_database_errors(self._path):
            connection = self._connection
            if connection is None:
                raise StoreError(Code.STORE_WRITE_FAILED, f"{self._path} was closed.")
            try:
                with transaction(connection) if writes else nullcontext():
                    return drive(steps, connection)
            except DamagedRow as error:
                raise damaged(self._path, str(error)) from None

    def _close(self) -> None:
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


def drive(steps: Steps[T], connection: sqlite3.Connection) -> T:
    """Answer the queries of a generator from a file, and return what it returns."""
    try:
        query = next(steps)
        while True:
            query = steps.send(connection.execute(query.text, by_number(query.values)).fetchall())
    except StopIteration as done:
        return done.value


def by_number(values: Sequence[Any]) -> dict[str, Any]:
    """Return values under the names that SQLite looks for: those of `$1`, `$2` and so on."""
    return {str(number): value for number, value in enumerate(values, 1)}


class PostgresDatabase:
    """The tables on a PostgreSQL server, used within one event loop."""

    def __init__(self, url: str, layout: Layout, *, max_size: int = 4) -> None:
        self._server = PostgresServer(url, layout, max_size=max_size)
        self.place = self._server.place

    async def run(self, steps: Steps[T], *, writes: bool) -> T:
        """Run all steps on one connection, in one transaction if they write."""
        async with self._server.connect() as connection:
            try:
                async with connection.transaction() if writes else nullcontext():
                    return await self._drive(steps, connection)
            except DamagedRow as error:
                raise damaged_tables(self.place, str(error)) from None

    async def close(self) -> None:
        """Let go of the connections."""
        await self._server.close()

    async def _drive(self, steps: Steps[T], connection: Any) -> T:
        try:
            query = next(steps)
            while True:
                query = steps.send(await connection.fetch(query.text, *query.values))
        except StopIteration as done:
            return done.value
