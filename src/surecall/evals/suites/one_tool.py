"""The suite `one_tool`: requests that one call answers."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any, Final

from surecall.base.records import Message, ToolSpec
from surecall.evals.records import read_data, read_text

from .single_turn import SingleTurnCase

_FILES: Final = {
    "one_tool": ("one_tool/tools.toml", "one_tool/prompts.toml"),
    "one_tool_fresh": ("one_tool/fresh_tools.toml", "one_tool/fresh_prompts.toml"),
}
"""The second forty were written without knowledge of the first or of how tools are put."""
_EFFECTS: Final = frozenset(
    {
        *("send_email", "create_event", "create_task", "book_table", "ship_parcel", "set_timer"),
        *("add_to_cart", "deploy_service", "open_ticket", "transfer_money", "append_to_note"),
        *("add_contact", "post_chat_message", "create_metric_alert", "log_workout"),
        "reserve_meeting_room",
    }
)
"""What does one thing more each time; the other tools read, compute or set a value."""


def fold_case(text: str) -> str:
    """Return a text without case and without runs of spaces; all else counts."""
    return " ".join(text.split()).casefold()


class OneToolSuite:
    """Requests that one call answers; values must be right and nothing else may be sent."""

    name = "one_tool"

    @property
    def version(self) -> str:
        """Hash of the prompts and tools."""
        texts = "".join(read_text(name) for names in _FILES.values() for name in names)
        return sha256(texts.encode()).hexdigest()[:12]

    def scenarios(self) -> Sequence[str]:
        """Name the sets of requests."""
        return tuple(_FILES)

    def cases(self, scenario: str) -> Sequence[SingleTurnCase]:
        """Return the requests, in order."""
        return _cases(scenario) if scenario in _FILES else ()


@cache
def _cases(scenario: str) -> tuple[SingleTurnCase, ...]:
    described, asked = map(read_data, _FILES[scenario])
    tools = {each["name"]: _tool(each) for each in described["tools"]}
    return tuple(_case(scenario, each, tools[each["tool"]]) for each in asked["prompts"])


def _tool(described: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=described["name"],
        description=described["description"],
        parameters={
            "type": "object",
            "properties": described["properties"],
            "required": described["required"],
            "additionalProperties": False,
        },
    )


def _case(scenario: str, asked: dict[str, Any], tool: ToolSpec) -> SingleTurnCase:
    return SingleTurnCase(
        scenario=scenario,
        id=asked["id"],
        messages=(Message("user", asked["prompt"]),),
        tools=(tool,),
        functions={tool.name: {"name": tool.name, "parameters": tool.parameters}},
        names={tool.name: tool.name},
        answers=({tool.name: asked["arguments"]},),
        fold=fold_case,
        is_closed=True,
        is_once=tool.name in _EFFECTS,
    )
