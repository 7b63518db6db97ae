"""The four stages from a question to a query: what each is told, and the one tool it has."""

from typing import Any, Final

from msgspec import Struct

from surecall.records import ToolSpec
from surecall.schema import SchemaChecker

from .questions import WORKSPACE_IDS, Question, find_workspace

__all__ = ["CHECKERS", "STAGES", "Stage", "instruct_pipeline", "instruct_stage"]


class Stage(Struct, frozen=True, kw_only=True):
    """One stage: its name, its tool, and what it is about."""

    name: str
    task: str
    tool: ToolSpec


def _tool(name: str, description: str, properties: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
    )


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _names(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_REASONING: Final = _text("Why, in one sentence.")

STAGES: Final = (
    Stage(
        name="intent",
        task="Decide which workspace holds the data that answers the question.",
        tool=_tool(
            "classify_intent",
            "Say which workspace a question is about.",
            {
                "workspace_id": {
                    "type": "string",
                    "enum": list(WORKSPACE_IDS),
                    "description": "The workspace that the question is about.",
                },
                "confidence": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": 1,
                    "description": "How sure you are, from 0 to 1.",
                },
                "reasoning": _REASONING,
            },
        ),
    ),
    Stage(
        name="table",
        task="Choose the tables that a query has to read to answer the question, and no others.",
        tool=_tool(
            "select_tables",
            "Say which tables a query has to read.",
            {
                "relevant_tables": _names("Names of the tables."),
                "reasoning": _REASONING,
            },
        ),
    ),
    Stage(
        name="column_prune",
        task="Sort the columns of the chosen tables: a column is relevant when the query has to "
        "read it, to return, filter, join, group or sort by it; all others are irrelevant. Name "
        "every column in one of the two lists.",
        tool=_tool(
            "prune_columns",
            "Say which columns a query has to read, and which it has not.",
            {
                "relevant_columns": _names("Columns to keep, each as table.column."),
                "irrelevant_columns": _names("Columns to leave out, each as table.column."),
                "reasoning": _REASONING,
            },
        ),
    ),
    Stage(
        name="sql_generation",
        task="Write one SQLite SELECT statement that answers the question. It returns exactly "
        "what is asked for, in the order in which it is asked for, and no further columns.",
        tool=_tool(
            "generate_sql",
            "Run the query that answers the question.",
            {
                "sql_query": _text("One SELECT statement."),
                "explanation": _text("How it answers the question, in one sentence."),
                "tables_used": _names("Names of the tables that it reads."),
            },
        ),
    ),
)
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
