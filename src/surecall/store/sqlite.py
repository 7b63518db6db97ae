"""A store in one SQLite file, which several processes may use at once."""

import asyncio
import sqlite3
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Final, TypeVar

from surecall.base.errors import Code, StoreError
from surecall.base.sqlite_files import (
    check_owner,
    connect,
    damaged,
    explain_database_errors,
    read_version,
    transaction,
    write_ahead,
)

from .base import DatabaseStore
from .rows import DamagedRow
from .steps import Steps
from .tables import SQLITE_MIGRATIONS

T = TypeVar("T")

_APPLICATION_ID: Final = 0x53_43_57_53  # "SCWS"


class SqliteStore(DatabaseStore):
    """Workspaces, approvals and paused runs in one file, readable by its owner alone.

    Args:
        path: The file; it is made, with its folder, when it is not there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        super().__init__(_SqliteDatabase(self.path))

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"


class _SqliteDatabase:
    def __init__(self, path: Path) -> None:
        self._path = path
        with explain_database_errors(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._connection: sqlite3.Connection | None = connect(path, _prepare)
        self._turn = threading.Lock()

    async def run(self, taken: Steps[T], *, writes: bool) -> T:
        return await asyncio.to_thread(self._run, taken, writes)

    async def close(self) -> None:
        await asyncio.to_thread(self._close)

    def _run(self, taken: Steps[T], writes: bool) -> T:
        with self._turn, explain_database_errors(self._path):
            connection = self._connection
            if connection is None:
                raise StoreError(Code.STORE_WRITE_FAILED, f"{self._path} was closed.")
            try:
                with transaction(connection) if writes else nullcontext():
                    return _drive(taken, connection)
            except DamagedRow as error:
                raise damaged(self._path, str(error)) from None

    def _close(self) -> None:
        with self._turn:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


def _drive(taken: Steps[T], connection: sqlite3.Connection) -> T:
    try:
        query = next(taken)
        while True:
            # By name, because Python 3.12 warns of numbers.
            text = query.text.replace("$", ":v")
            values = {f"v{number}": value for number, value in enumerate(query.values, 1)}
            query = taken.send(connection.execute(text, values).fetchall())
    except StopIteration as done:
        return done.value


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    newest = len(SQLITE_MIGRATIONS)
    check_owner(connection, path, _APPLICATION_ID, newest)
    write_ahead(connection)
    # A commit survives a loss of power, not only of the process.
    connection.execute("PRAGMA synchronous = FULL")
    if read_version(connection) == newest:
        return
    with transaction(connection):
        # Two processes may meet here: the second finds what the first has done.
        for step in SQLITE_MIGRATIONS[read_version(connection) :]:
            for statement in step.split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {newest}")
