"""The databases of the suite, the questions about them, and the four stages to an answer."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from functools import cache, partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, did_you_mean
from surecall.base.records import ToolSpec
from surecall.evals.records import read_data, read_text
from surecall.evals.suites.agents.database import QueryRefused, Rows, open_database, run_query
from surecall.schema import SchemaChecker
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

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
    script, changes = (read_text(f"agents/{name}{part}.sql") for part in ("", "_changes"))
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
    found = read_data("agents/questions.toml")["questions"]
    return msgspec.convert(found, tuple[Question, ...])


@cache
def answer_of(question_id: str, *, changed: bool) -> Rows:
    """Return what the known query of a question gives, on its rows or on the changed ones."""
    question = next(item for item in load_questions() if item.id == question_id)
    workspace = question.workspace
    scripts = (workspace.script, workspace.changes) if changed else (workspace.script,)
    return run_query(question.sql, *scripts)


class Stage(Struct, frozen=True, kw_only=True):
    """One stage: its name, its tool, and what it is about."""

    name: str
    task: str
    tool: ToolSpec


def _make_stage(described: dict[str, Any]) -> Stage:
    properties = described["properties"]
    spec = ToolSpec(
        name=described["tool"],
        description=described["description"],
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
    )
    return Stage(name=described["name"], task=described["task"], tool=spec)


STAGES: Final = tuple(map(_make_stage, read_data("agents/stages.toml")["stages"]))
"""The stages, in order."""

CHECKERS: Final = {stage.name: SchemaChecker(stage.tool.parameters) for stage in STAGES}
"""The schemas of their tools, compiled once, because every trial makes its own tools."""

_PIPELINE: Final = (
    "Answer the user's question with the data of a workspace, in four steps. Make one call for "
    "each step and wait for its result, which has what the next step needs."
)
_CORRECT: Final = "If the result has ok=false, read its errors and call the tool again."


def instruct_stage(stage: Stage, question: Question) -> str:
    """Return the system text of one stage on its own, with what it has to know."""
    name = stage.tool.name
    steps = f"Call {name} for the user's question. {_CORRECT} Then reply with the word Done."
    return "\n\n".join((stage.task, _context(stage, question), steps))


def instruct_pipeline() -> str:
    """Return the system text of all stages in a row."""
    steps = "\n".join(
        f"{number}. {stage.tool.name}: {stage.task}" for number, stage in enumerate(STAGES, 1)
    )
    end = f"{_CORRECT} After the last step, answer the question in one sentence."
    return f"{_PIPELINE}\n\n{steps}\n\n{_workspaces()}\n\n{end}"


def _context(stage: Stage, question: Question) -> str:
    workspace = question.workspace
    match stage.name:
        case "intent":
            return _workspaces()
        case "table":
            tables = "\n".join(f"- {table.name}: {table.note}" for table in workspace.tables)
            return f"The tables of the workspace {workspace.id}:\n{tables}"
        case "column_prune":
            columns = workspace.columns_of(question.tables)
            lines = "\n".join(f"- {column.line}" for column in columns)
            return f"The columns of the chosen tables:\n{lines}"
        case _:
            return f"The schema:\n{workspace.render_schema(question.readable)}"


def _workspaces() -> str:
    known = "\n".join(f"- {name}: {find_workspace(name).note}" for name in WORKSPACE_IDS)
    return f"The workspaces:\n{known}"


_SHOWN_ROWS: Final = 20
_PLACES: Final = {stage.name: place for place, stage in enumerate(STAGES)}


class LoggedCall(Struct, frozen=True, kw_only=True):
    """One call whose arguments fitted the schema, and what became of it."""

    stage: str
    arguments: dict[str, Any]
    is_sound: bool
    """Whether every table and column that it names exists."""
    error: str | None = None
    """The code it was refused with."""
    rows: Rows | None = None


class Desk:
    """The state of one trial.

    Args:
        question: What is asked; it says what stages that are not tried would have answered.
        stages: The stages that are tried, in order.
    """

    def __init__(self, question: Question, stages: Sequence[Stage]) -> None:
        self.question = question
        self.stages = tuple(stages)
        self.log: list[LoggedCall] = []
        self.accepted: dict[str, LoggedCall] = {}
        """The last accepted call of each stage; another choice takes back what was built on it."""

    def registry(self) -> ToolRegistry:
        """Return the tools of the stages that are tried."""
        return ToolRegistry(self._tool(stage) for stage in self.stages)

    async def execute(self, stage: Stage, arguments: dict[str, Any]) -> dict[str, Any]:
        """Take a stage's answer, or refuse it with what has to be corrected.

        Raises:
            ToolFailed: With a code that tells the model what to do.
        """
        is_sound, code, rows = False, None, None
        try:
            self._check_order(stage)
            # The form of a query is right when it is a text, whatever it says.
            is_sound = stage.name == "sql_generation"
            self._check_names(stage, arguments)
            is_sound = True
            if stage.name == "sql_generation":
                rows = self._run(arguments["sql_query"])
        except ToolFailed as failure:
            code = failure.code
            raise
        finally:
            call = LoggedCall(
                stage=stage.name, arguments=arguments, is_sound=is_sound, error=code, rows=rows
            )
            self.log.append(call)
        for later in STAGES[_PLACES[stage.name] :]:
            self.accepted.pop(later.name, None)
        self.accepted[stage.name] = call
        return self._answer(stage, rows)

    def _tool(self, stage: Stage) -> Tool[..., Any]:
        def bind(arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
            return partial(self.execute, stage, arguments)

        return Tool(stage.tool, self.execute, binder=bind, checker=CHECKERS[stage.name])

    def _check_order(self, stage: Stage) -> None:
        for earlier in self.stages:
            if earlier.name == stage.name:
                return
            if earlier.name not in self.accepted:
                raise ToolFailed(
                    Code.ARGUMENT_ERROR,
                    f"{stage.tool.name} needs the result of {earlier.tool.name}.",
                    f"Call {earlier.tool.name} first.",
                )

    def _check_names(self, stage: Stage, arguments: dict[str, Any]) -> None:
        match stage.name:
            case "table":
                _require_known(arguments["relevant_tables"], self._workspace.table_names, "table")
            case "column_prune":
                given = [*arguments["relevant_columns"], *arguments["irrelevant_columns"]]
                columns = self._workspace.columns_of(self._tables)
                _require_known(given, [column.full_name for column in columns], "column")
            case "sql_generation":
                _require_known(arguments["tables_used"], self._workspace.table_names, "table")
            case _:
                pass

    def _run(self, sql: str) -> Rows:
        try:
            return run_query(sql, self._workspace.script, readable=self._readable)
        except QueryRefused as refusal:
            raise ToolFailed(refusal.code, refusal.message, refusal.hint) from None

    def _answer(self, stage: Stage, rows: Rows | None) -> dict[str, Any]:
        if rows is not None:
            shown = [list(row) for row in rows.rows[:_SHOWN_ROWS]]
            is_whole = rows.is_complete and len(shown) == len(rows.rows)
            return {"columns": list(rows.columns), "rows": shown, "complete": is_whole}
        if stage is self.stages[-1]:
            return {"accepted": True}
        workspace = self._workspace
        match stage.name:
            case "intent":
                return {"workspace_id": workspace.id, "tables": workspace.list_tables()}
            case "table":
                columns = workspace.columns_of(self._tables)
                return {"columns": [column.line for column in columns]}
            case _:
                return {"schema": workspace.render_schema(self._readable)}

    # What a stage builds on: what was accepted before it, or what is right if that is not tried.

    @property
    def _workspace(self) -> Workspace:
        chosen = self.accepted.get("intent")
        if chosen is None:
            return self.question.workspace
        return find_workspace(chosen.arguments["workspace_id"])

    @property
    def _tables(self) -> Collection[str]:
        chosen = self.accepted.get("table")
        return self.question.tables if chosen is None else chosen.arguments["relevant_tables"]

    @property
    def _readable(self) -> frozenset[str]:
        kept = self.accepted.get("column_prune")
        if kept is None:
            return self.question.readable
        return self._workspace.readable(self._tables, kept.arguments["relevant_columns"])


def _require_known(given: Sequence[str], known: Sequence[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise ToolFailed(
                Code.ARGUMENT_ERROR, f"there is no {what} {name!r:.80}.", did_you_mean(name, known)
            )
