"""Queries that a model wrote, run so that they can read what they may and do nothing else.

Every query gets a database of its own in memory, which is thrown away. On top of that:

- the first word has to be SELECT, WITH or VALUES, and there has to be one statement;
- SQLite asks us about every table, column and function before it runs anything;
- the work is counted in SQLite's own steps, so that the same query always gets as far; a clock
  stops only what takes long in few steps.
"""

import math
import re
import sqlite3
import time
from collections.abc import Collection
from contextlib import closing
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.records import clip

MAX_ROWS: Final = 200
"""Rows that are looked at; a query that returns more is not complete."""

_MAX_STEPS: Final = 500_000
_STEPS_BETWEEN_LOOKS: Final = 5_000
_MAX_TIME_S: Final = 5.0
_MAX_SQL_CHARS: Final = 4_000
_LIMITS: Final = {
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_COLUMN: 200,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_LENGTH: 5_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
}
_FIRST_WORDS: Final = frozenset({"SELECT", "VALUES", "WITH"})
_ALWAYS: Final = frozenset({sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_SELECT})
_FUNCTION_NAMES: Final = """
    abs avg ceil ceiling char coalesce concat concat_ws count cume_dist date datetime dense_rank
    first_value floor format glob group_concat hex ifnull iif instr julianday lag last_value lead
    length like likelihood likely lower ltrim max min mod nth_value ntile nullif percent_rank pow
    power printf quote rank replace round row_number rtrim sign sqrt strftime string_agg substr
    substring sum time total trim trunc typeof unicode unixepoch unlikely upper
"""
_FUNCTIONS: Final = frozenset(_FUNCTION_NAMES.split())
_ONE_SELECT: Final = "Send one SELECT statement."


_NO_CODE: Final = re.compile(r"'[^']*+'|--[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
"""Texts and comments of SQL."""
_CHANGE_WORDS: Final = (
    "insert|update|delete|drop|alter|create|replace|attach|pragma|vacuum|truncate"
)
_CHANGE: Final = re.compile(rf"(?i)(?:^|[;)])\s*+(?:{_CHANGE_WORDS})\b(?!\s*+\()")


def changes_data(sql: str) -> bool:
    """Tell whether a text has a statement that does more than read, also behind a `WITH`."""
    return _CHANGE.search(_NO_CODE.sub(" ", sql[:_MAX_SQL_CHARS])) is not None


class Rows(Struct, frozen=True, kw_only=True):
    """What a query returned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    is_complete: bool
    """Whether these are all rows."""
    tables: frozenset[str]
    """The tables that were read."""
    read: frozenset[str]
    """The columns that were read, as `table.column`."""


class QueryRefused(Exception):  # noqa: N818 - reads as what happened
    """A query that was not run, or not to its end; says what to change."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


def open_database(*scripts: str) -> sqlite3.Connection:
    """Return a database in memory that the scripts have filled."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    for script in scripts:
        database.executescript(script)
    return database


def run_query(sql: str, *scripts: str, readable: Collection[str] | None = None) -> Rows:
    """Run one query on a database that the scripts make.

    Args:
        sql: The query, as it came from a model.
        *scripts: SQL of ours that makes the tables and rows.
        readable: The columns that may be read, as `table.column`; all when left out.

    Raises:
        QueryRefused: It does more than read, reads something else, is wrong or takes too long.
    """
    _check_text(sql)
    with closing(open_database(*scripts)) as database:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema")]
        guard = _Guard(tables, readable)
        database.execute("PRAGMA query_only = ON")
        for category, value in _LIMITS.items():
            database.setlimit(category, value)
        database.set_progress_handler(guard.step, _STEPS_BETWEEN_LOOKS)
        database.set_authorizer(guard.allow)
        try:
            cursor = database.execute(sql)
            found = cursor.fetchmany(MAX_ROWS + 1)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            raise guard.explain(error) from None
        if cursor.description is None:
            raise QueryRefused(Code.SQL_ERROR, "there is no query in it.", _ONE_SELECT)
        return Rows(
            columns=tuple(str(column[0]) for column in cursor.description),
            rows=tuple(tuple(_plain(value) for value in row) for row in found[:MAX_ROWS]),
            is_complete=len(found) <= MAX_ROWS,
            tables=frozenset(guard.tables_read),
            read=frozenset(guard.columns_read),
        )


class _Guard:
    """Says yes or no to everything that SQLite is about to do, and remembers why."""

    def __init__(self, tables: Collection[str], readable: Collection[str] | None) -> None:
        self._tables = tables
        self._readable = readable
        self._steps = 0
        self._stops_at = time.monotonic() + _MAX_TIME_S
        self._is_stopped = False
        self._denied = ""
        self._hint: str | None = None
        self.tables_read: set[str] = set()
        self.columns_read: set[str] = set()

    def step(self) -> int:
        self._steps += _STEPS_BETWEEN_LOOKS
        self._is_stopped = self._steps > _MAX_STEPS or time.monotonic() > self._stops_at
        return int(self._is_stopped)

    def allow(
        self, action: int, first: str | None, second: str | None, _place: Any, _inner: Any
    ) -> int:
        if action == sqlite3.SQLITE_READ:
            return self._allow_read(first or "", second or "")
        if action == sqlite3.SQLITE_FUNCTION:
            if (second or "").lower() in _FUNCTIONS:
                return sqlite3.SQLITE_OK
            return self._deny(f"the function {second} may not be used", "Use a standard function.")
        if action in _ALWAYS:
            return sqlite3.SQLITE_OK
        return self._deny("it does more than read the tables", _ONE_SELECT)

    def _allow_read(self, table: str, column: str) -> int:
        if table not in self._tables:
            known = ", ".join(self._tables)
            return self._deny(f"{table} may not be read", f"The tables are: {known}.")
        self.tables_read.add(table)
        if not column:
            # A table is named and none of its columns, as in COUNT(*).
            kept = self._readable is None or any(
                name.startswith(f"{table}.") for name in self._readable
            )
            hint = f"Choose {table} first, or write the query without it."
            return sqlite3.SQLITE_OK if kept else self._deny(f"{table} was not chosen", hint)
        name = f"{table}.{column}"
        if self._readable is not None and name not in self._readable:
            return self._deny(
                f"{name} is not among the columns that were kept",
                f"Keep {name} first, or write the query without it.",
            )
        self.columns_read.add(name)
        return sqlite3.SQLITE_OK

    def _deny(self, message: str, hint: str) -> int:
        if not self._denied:
            self._denied, self._hint = message, hint
        return sqlite3.SQLITE_DENY

    def explain(self, error: Exception) -> QueryRefused:
        """Return the refusal that an exception of the database stands for."""
        if self._denied:
            message = f"the query is not allowed: {self._denied}."
            return QueryRefused(Code.SQL_NOT_ALLOWED, message, self._hint)
        if self._is_stopped:
            return QueryRefused(
                Code.SQL_LIMIT_EXCEEDED,
                "the query takes too long and was stopped.",
                "Join tables by their keys, and read only what is asked for.",
            )
        words = clip(str(error), 300)
        if isinstance(error, sqlite3.ProgrammingError | sqlite3.Warning) and "one stat" in words:
            message = "the query is not allowed: there is more than one statement in it."
            return QueryRefused(Code.SQL_NOT_ALLOWED, message, _ONE_SELECT)
        hint = "Correct the query and send it again; use only tables and columns of the schema."
        return QueryRefused(Code.SQL_ERROR, f"SQLite says: {words}.", hint)


def _check_text(sql: str) -> None:
    if len(sql) > _MAX_SQL_CHARS:
        message = f"the query has {len(sql)} characters; the limit is {_MAX_SQL_CHARS}."
        raise QueryRefused(Code.SQL_LIMIT_EXCEEDED, message, "Write a shorter query.")
    word = _first_word(sql)
    if not word:
        raise QueryRefused(Code.SQL_ERROR, "there is no query in it.", _ONE_SELECT)
    if word.upper() not in _FIRST_WORDS:
        message = f"the query is not allowed: it begins with {clip(word, 40)!r}."
        raise QueryRefused(Code.SQL_NOT_ALLOWED, message, _ONE_SELECT)


def _first_word(sql: str) -> str:
    """Return the first word behind spaces and comments."""
    place = 0
    while place < len(sql):
        if sql[place].isspace() or sql[place] == ";":
            place += 1
        elif sql.startswith("--", place):
            end = sql.find("\n", place)
            place = len(sql) if end < 0 else end + 1
        elif sql.startswith("/*", place):
            end = sql.find("*/", place + 2)
            place = len(sql) if end < 0 else end + 2
        else:
            break
    end = place
    while end < len(sql) and (sql[end].isalnum() or sql[end] == "_"):
        end += 1
    return sql[place:end] or sql[place : place + 1]


def _plain(value: Any) -> Any:
    """Return a value as one that JSON has."""
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
