"""The four stages from a question to a query: what each is told, and the one tool it has."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, did_you_mean
from surecall.base.records import ToolSpec
from surecall.evals.cases import read_data
from surecall.schema import SchemaChecker
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

from .database import QueryRefused, Rows, run_query
from .questions import WORKSPACE_IDS, Question, Workspace, find_workspace


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


STAGES: Final = tuple(map(_make_stage, read_data("agents/data/stages.toml")["stages"]))
"""The stages, in order."""

CHECKERS: Final = {stage.name: SchemaChecker(stage.tool.parameters) for stage in STAGES}
"""The schemas of their tools, compiled once, because every trial makes the tools anew."""

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
