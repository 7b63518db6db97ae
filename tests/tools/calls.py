"""Calls and contexts for the tests of tools."""

from typing import Any

from surecall.base.records import ToolCall, ToolResult
from surecall.text import decode
from surecall.tools import Dispatcher, ToolContext, ToolRegistry

CONTEXT = ToolContext("run-1", 3, "tc_1")


def make_call(name: str, arguments: dict[str, Any] | None = None, **fields: Any) -> ToolCall:
    """Build a call that was read without trouble."""
    fields.setdefault("id", "tc_1")
    return ToolCall(name=name, arguments={} if arguments is None else arguments, **fields)


async def dispatch(
    tools: list[Any], name: str, arguments: dict[str, Any] | None = None, **options: Any
) -> ToolResult:
    """Run one call against a few tools."""
    dispatcher = Dispatcher(ToolRegistry(tools), **options)
    return await dispatcher.dispatch(make_call(name, arguments), CONTEXT)


def shown(result: ToolResult) -> dict[str, Any]:
    """Return what the model sees, decoded."""
    return decode(result.text)
