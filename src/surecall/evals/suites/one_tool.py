"""Forty plain requests, each with the one tool that serves it: does the right call arrive?"""

import tomllib
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any, Final

from surecall.records import Message, ToolSpec

from .single_turn import SingleTurnCase

__all__ = ["OneToolSuite", "fold_case"]

_SCENARIO: Final = "one_tool"


def fold_case(text: str) -> str:
    """Return a text without case and without runs of spaces; all else counts."""
    return " ".join(text.split()).casefold()


class OneToolSuite:
    """Requests that one call answers; values must be right and nothing else may be sent."""

    name = "one_tool"

    @property
    def version(self) -> str:
        """Hash of the prompts and tools."""
        return sha256(_text("tools.toml") + _text("prompts.toml")).hexdigest()[:12]

    def scenarios(self) -> Sequence[str]:
        """Name the only scenario."""
        return (_SCENARIO,)

    def cases(self, scenario: str) -> Sequence[SingleTurnCase]:
        """Return the requests, in order."""
        return _cases() if scenario == _SCENARIO else ()


@cache
def _cases() -> tuple[SingleTurnCase, ...]:
    described = tomllib.loads(_text("tools.toml").decode())["tools"]
    tools = {each["name"]: _tool(each) for each in described}
    asked = tomllib.loads(_text("prompts.toml").decode())["prompts"]
    return tuple(_case(each, tools[each["tool"]]) for each in asked)


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


def _case(asked: dict[str, Any], tool: ToolSpec) -> SingleTurnCase:
    return SingleTurnCase(
        scenario=_SCENARIO,
        id=asked["id"],
        messages=(Message("user", asked["prompt"]),),
        tools=(tool,),
        functions={tool.name: {"name": tool.name, "parameters": tool.parameters}},
        names={tool.name: tool.name},
        answers=({tool.name: asked["arguments"]},),
        fold=fold_case,
    )


def _text(name: str) -> bytes:
    return resources.files("surecall.evals.suites").joinpath("one_tool_data", name).read_bytes()
