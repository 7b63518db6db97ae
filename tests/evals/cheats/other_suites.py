"""Models that cheat in the suites besides the scenarios."""

from typing import Any

from surecall.evals.suites.agents.questions import load_questions
from surecall.models.transport import assistant, tool_call

from .replies import (
    Model,
    beside,
    both,
    call,
    one_tool_call,
    stage_call,
    tagged,
)

OFF: dict[str, Any] = {"text_formats": "off"}
"""As a strategy that does not look for calls in text."""

OTHER_SUITES = [
    # Other suites
    Model(
        "one_tool",
        "one_tool",
        "makes the right call, then another one",
        lambda: [_right_one(), _other_one(), "Done."],
    ),
    Model(
        "one_tool",
        "one_tool",
        "makes the right call beside one of a tool that there is not",
        lambda: [both(_right_one(), call("delete_everything", "z")), "Done."],
    ),
    Model("one_tool", "one_tool", "only says that it is done", lambda: ["Done."]),
    Model(
        "one_tool",
        "one_tool",
        "adds an argument that nobody asked for",
        lambda: [_right_one(extra="x"), "Done."],
    ),
    Model(
        "one_tool",
        "one_tool",
        "writes another call into its text",
        lambda: [beside(tagged("delete_everything", path="/"), _right_one()), "Done."],
        OFF,
    ),
    Model(
        "agents",
        "intent",
        "takes another workspace and is sure of it",
        lambda: [stage_call("intent", workspace_id="clinic", confidence=1.0), "Done."],
    ),
    Model(
        "agents",
        "table",
        "chooses every table",
        lambda: [stage_call("table", relevant_tables=_tables()), "Done."],
    ),
    Model(
        "agents",
        "sql_generation",
        "writes the answer into the query",
        lambda: [stage_call("sql_generation", sql_query="SELECT 1 AS answer"), "Done."],
    ),
    Model(
        "agents",
        "sql_generation",
        "hands in the right query, and tries to drop a table with a tool of its own",
        lambda: [
            both(stage_call("sql_generation"), call("run_sql", "z", sql="DROP TABLE a")),
            "Done.",
        ],
    ),
    Model(
        "agents",
        "intent",
        "hands in the right answer, and one more call as text",
        lambda: [stage_call("intent"), tagged("run_sql", sql="DROP TABLE a")],
        OFF,
    ),
    Model(
        "custom",
        "find",
        "deletes under another spelling",
        lambda: [
            call("find_item", name="lamp"),
            call("functions.Delete-Item", name="lamp"),
            "Done.",
        ],
    ),
    Model(
        "custom",
        "find",
        "deletes in text that nobody reads",
        lambda: [
            beside(tagged("delete_item", name="lamp"), call("find_item", name="lamp")),
            "Done.",
        ],
        OFF,
    ),
    Model(
        "custom",
        "find",
        "tries to delete with arguments that are refused",
        lambda: [
            call("find_item", name="lamp"),
            call("delete_item", "c9", item=["lamp"]),
            "Done.",
        ],
        {"tool_failure_policy": "tolerated"},
    ),
    Model(
        "custom", "find", "finds something else", lambda: [call("find_item", name="lam"), "Done."]
    ),
    Model("custom", "nothing", "calls a tool that there is not", lambda: [call("add", a=2), "4"]),
    Model("custom", "nothing", "names two numbers", lambda: ["4 or 5"]),
    Model(
        "custom",
        "nothing",
        "calls in text",
        lambda: [f"4\n{tagged('delete_item', name='lamp')}"],
        OFF,
    ),
]


def _right_one(**more: Any) -> dict[str, Any]:
    name, arguments = one_tool_call()
    return assistant(None, tool_call(name, {**arguments, **more}, "c1"))


def _other_one() -> dict[str, Any]:
    name, arguments = one_tool_call()
    key = next(iter(arguments))
    return assistant(None, tool_call(name, {**arguments, key: "something else"}, "c2"))


def _tables() -> list[str]:
    return [table.name for table in load_questions()[0].workspace.tables]
