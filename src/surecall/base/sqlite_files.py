"""SQLite files: private to their owner, written in whole transactions, refused with a code."""

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from surecall.base.errors import Code, StoreError, row_refused
from surecall.base.files import is_disk_full, make_private

__all__ = [
    "Layout",
    "connect",
    "damaged",
    "explain_database_errors",
    "is_busy_or_full",
    "prepare",
    "transaction",
]

_BUSY_S: Final = 30.0
_BUSY_STEP_S: Final = 0.01
_DAMAGED: Final = {
    "SQLITE_CONSTRAINT",
    "SQLITE_CORRUPT",
    "SQLITE_ERROR",  # our queries are right: a table or a column is missing
    "SQLITE_FORMAT",
    "SQLITE_MISMATCH",
    "SQLITE_NOTADB",
    "SQLITE_SCHEMA",
}
_IN_USE: Final = {"SQLITE_BUSY", "SQLITE_PROTOCOL"}
_NOT_BOUND: Final = (
    OverflowError,
    UnicodeEncodeError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
"""Errors that are raised for a value that no column takes."""
_NOT_TEXT: Final = "Could not decode to UTF-8"
"""How Python begins what it says about damaged text; the database itself does not look."""


class Layout(NamedTuple):
    """The tables of a store in one kind of database."""

    number: int
    """Tells a file from those of other programs; on a server, the lock for whoever makes tables."""
    steps: Sequence[str]
    """The steps from each layout to the next: statements that end with `;` and the line.

    The first makes the tables. A step that was released never changes.
    """
    table: str = ""
    """Where a server keeps how many of the steps were taken; a file knows it by itself."""


def connect(
    path: Path, layout: Layout, settings: Sequence[str] = (), *, busy_s: float = _BUSY_S
) -> sqlite3.Connection:
    """Open the file, made new with its folder when it is not there.

    The database waits for those who hold a lock, but not for those who begin the file or leave it
    as the last at the same moment; this does.
    """
    give_up = time.monotonic() + busy_s
    with explain_database_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with explain_database_errors(path):
        make_private(path)
        while True:
            connection = sqlite3.connect(
                path, timeout=busy_s, isolation_level=None, check_same_thread=False
            )
            try:
                prepare(connection, path, layout, settings)
            except BaseException as error:
                connection.close()
                if _family_of(error) not in _IN_USE or time.monotonic() > give_up:
                    raise
                time.sleep(_BUSY_STEP_S)
            else:
                return connection


def prepare(
    connection: sqlite3.Connection, path: Path, layout: Layout, settings: Sequence[str] = ()
) -> None:
    """Make the settings of a connection, and bring its file to the present layout.

    Raises:
        StoreError: The file is another program's, or has a later layout; it stays as it was.
    """
    newest = len(layout.steps)
    _check_owner(connection, path, layout.number, newest)
    for setting in settings:
        connection.execute(f"PRAGMA {setting}")
    if _read_version(connection) == newest:
        return
    # A log beside the file, so that nobody who reads waits for those who write.
    connection.execute("PRAGMA journal_mode = WAL")
    with transaction(connection):
        # Two processes may meet here: the second finds what the first has done.
        for step in layout.steps[_read_version(connection) :]:
            for statement in step.split(";\n"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {layout.number}")
        connection.execute(f"PRAGMA user_version = {newest}")


def _check_owner(connection: sqlite3.Connection, path: Path, number: int, newest: int) -> None:
    found = _read_version(connection)
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and owner != number:
        raise StoreError(
            Code.STORE_CORRUPT,
            f"{path} is a database of another program.",
            hint="Name another file with --store.",
        )
    if found > newest:
        raise StoreError(
            Code.STORE_TOO_NEW,
            f"{path} has layout {found}; this version of surecall knows {newest}.",
            hint="Use the newer surecall, or name another file with --store.",
        )


def _read_version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Have one durable transaction: all of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def explain_database_errors(path: Path) -> Generator[None]:
    """Turn what the database or the file system raises into an error with a code."""
    try:
        yield
    except OSError as error:
        raise _write_failed(path, error.strerror or str(error), full=is_disk_full(error)) from error
    except UnicodeDecodeError as error:  # the database's own message quotes what it found
        raise damaged(path, "it holds text that is not UTF-8") from error
    except _NOT_BOUND as error:
        raise row_refused(path, error) from error
    except sqlite3.Error as error:
        name = _family_of(error)
        if str(error).startswith(_NOT_TEXT):
            raise damaged(path, "it holds text that is not UTF-8") from error
        if name in _DAMAGED:
            raise damaged(path, str(error)) from error
        raise _write_failed(path, str(error), full=name == "SQLITE_FULL") from error


def is_busy_or_full(error: Exception) -> bool:
    """Tell whether a database may do later what it refuses now, without being opened again."""
    return _family_of(error) in {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL"}


def _family_of(error: BaseException) -> str:
    """Return the name of an error, without what an extended name such as `…_INDEX` adds."""
    return "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])


def damaged(path: Path, reason: str) -> StoreError:
    """Return the error for a file whose content cannot be right."""
    return StoreError(
        Code.STORE_CORRUPT,
        f"{path} is damaged, or is not a database of surecall: {reason}.",
        hint="Restore it, or move it away and begin a new one.",
    )


def _write_failed(path: Path, reason: str, *, full: bool) -> StoreError:
    return StoreError(
        Code.DISK_FULL if full else Code.STORE_WRITE_FAILED,
        f"{path} cannot be used: {reason}.",
        hint="Free some space, or choose a place on another disk."
        if full
        else "Check the place and the permissions.",
    )
