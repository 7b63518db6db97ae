"""The databases of the suite, and the questions about them with their known answers."""

from collections.abc import Collection, Iterable
from contextlib import closing
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.evals.cases import read_data

from .database import Rows, open_database, run_query

WORKSPACE_IDS: Final = ("clinic", "library", "shop")


class Column(Struct, frozen=True, kw_only=True):
    """One column of a table."""

    table: str
    name: str
    type: str
    note: str = ""
    is_key: bool = False
    """Whether it is the primary key, which a query may always read."""

    @property
    def full_name(self) -> str:
        """The name as models write it: `table.column`."""
        return f"{self.table}.{self.name}"

    @property
    def line(self) -> str:
        """The column as one line of a list."""
        line = f"{self.full_name} ({self.type})"
        return f"{line}: {self.note}" if self.note else line


class Table(Struct, frozen=True, kw_only=True):
    """One table of a workspace."""

    name: str
    note: str
    columns: tuple[Column, ...]


class Workspace(Struct, frozen=True, kw_only=True):
    """A database that questions can be about."""

    id: str
    note: str
    script: str
    """The SQL that makes its tables and rows."""
    changes: str
    """The SQL that turns its rows into other rows."""
    tables: tuple[Table, ...]

    @property
    def table_names(self) -> tuple[str, ...]:
        """The names of its tables."""
        return tuple(table.name for table in self.tables)

    def columns_of(self, tables: Collection[str]) -> tuple[Column, ...]:
        """Return the columns of some tables, in order."""
        chosen = (table for table in self.tables if table.name in tables)
        return tuple(column for table in chosen for column in table.columns)

    def readable(self, tables: Collection[str], columns: Collection[str]) -> frozenset[str]:
        """Return what a query may read when only these columns were kept: them and all keys."""
        return frozenset(
            column.full_name
            for column in self.columns_of(tables)
            if column.is_key or column.full_name in columns
        )

    def render_schema(self, readable: Collection[str]) -> str:
        """Return the statements that would make the tables with these columns only."""
        statements: list[str] = []
        for table in self.tables:
            kept = [column for column in table.columns if column.full_name in readable]
            if kept:
                lines = [f"CREATE TABLE {table.name} ( -- {table.note}", *_definitions(kept), ");"]
                statements.append("\n".join(lines))
        return "\n".join(statements)

    def list_tables(self) -> list[dict[str, Any]]:
        """Return the tables as data for a model."""
        return [{"name": table.name, "about": table.note} for table in self.tables]


@cache
def find_workspace(name: str) -> Workspace:
    """Return the workspace of this name."""
    script, changes = data_file(f"{name}.sql"), data_file(f"{name}_changes.sql")
    with closing(open_database(script)) as database:
        made = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
        tables = tuple(
            Table(
                name=table,
                note=_note_of(sql.splitlines()[0]),
                columns=tuple(
                    _columns(table, sql, database.execute(f"PRAGMA table_info({table})"))
                ),
            )
            for table, sql in made.fetchall()
        )
    note = _note_of(script.splitlines()[0])
    return Workspace(id=name, note=note, script=script, changes=changes, tables=tables)


def data_file(name: str) -> str:
    """Return the text of a file that is shipped with the suite."""
    folder = resources.files("surecall.evals.suites.agents").joinpath("data")
    return folder.joinpath(name).read_text("utf-8")


def _columns(table: str, sql: str, found: Iterable[Any]) -> Iterable[Column]:
    notes = {line.split()[0]: _note_of(line) for line in sql.splitlines()[1:] if line.split()}
    for _, name, kind, _, _, key in found:
        yield Column(table=table, name=name, type=kind, note=notes.get(name, ""), is_key=bool(key))


def _note_of(line: str) -> str:
    return line.partition("-- ")[2].strip()


def _definitions(columns: list[Column]) -> Iterable[str]:
    for place, column in enumerate(columns, 1):
        key = " PRIMARY KEY" if column.is_key else ""
        comma = "," if place < len(columns) else ""
        note = f" -- {column.note}" if column.note else ""
        yield f"  {column.name} {column.type}{key}{comma}{note}"


class Question(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about one workspace, and its right answer at every stage."""

    id: str
    """The workspace and a number, such as `shop-03`."""
    question: str
    sql: str
    tables: tuple[str, ...]
    """The tables that a query has to read."""
    columns: tuple[str, ...]
    """The columns that a query has to read."""
    answer: tuple[tuple[Any, ...], ...]
    """The rows that the query returns."""

    @property
    def workspace(self) -> Workspace:
        """The workspace that it is about."""
        return find_workspace(self.id.partition("-")[0])

    @property
    def is_ordered(self) -> bool:
        """Whether the order of the rows was asked for."""
        return "ORDER BY" in self.sql

    @property
    def readable(self) -> frozenset[str]:
        """The columns that are shown to a model that has to write the query."""
        return self.workspace.readable(self.tables, self.columns)


@cache
def load_questions() -> tuple[Question, ...]:
    """Return all questions, in order."""
    found = read_data("agents/data/questions.toml")["questions"]
    return msgspec.convert(found, tuple[Question, ...])


@cache
def answer_of(question_id: str, *, changed: bool) -> Rows:
    """Return what the known query of a question gives, on its rows or on the changed ones."""
    question = next(item for item in load_questions() if item.id == question_id)
    workspace = question.workspace
    scripts = (workspace.script, workspace.changes) if changed else (workspace.script,)
    return run_query(question.sql, *scripts)
