"""The questions, with everything that is known to be right about each."""

import tomllib
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from .database import Rows, run_query
from .workspaces import Workspace, data_file, find_workspace

__all__ = ["Question", "answer_of", "load_questions"]


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
    found = tomllib.loads(data_file("questions.toml"))["questions"]
    return msgspec.convert(found, tuple[Question, ...])


@cache
def answer_of(question_id: str, *, changed: bool) -> Rows:
    """Return what the known query of a question gives, on its rows or on the changed ones."""
    question = next(item for item in load_questions() if item.id == question_id)
    workspace = question.workspace
    scripts = (workspace.script, workspace.changes) if changed else (workspace.script,)
    return run_query(question.sql, *scripts)
