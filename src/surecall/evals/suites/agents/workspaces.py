"""What the questions are about: workspaces with tables and columns, read from their SQL."""

from collections.abc import Collection, Iterable
from contextlib import closing
from functools import cache
from importlib import resources
from typing import Any, Final

from msgspec import Struct

from .database import open_database

__all__ = ["WORKSPACE_IDS", "Column", "Table", "Workspace", "data_file", "find_workspace"]

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
        told = f"{self.full_name} ({self.type})"
        return f"{told}: {self.note}" if self.note else told


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
