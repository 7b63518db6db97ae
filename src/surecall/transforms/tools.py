"""Transforms of the outbound tools list, in wire form."""

from typing import Any

__all__ = ["WireTools", "openai_tools_strip_function_descriptions"]

WireTools = list[dict[str, Any]]


def openai_tools_strip_function_descriptions(tools: WireTools) -> WireTools:
    """Leave out the description of every function tool; those of parameters stay."""
    if not any(_is_described(tool) for tool in tools):
        return tools
    return [_without_description(tool) if _is_described(tool) else tool for tool in tools]


def _is_described(tool: dict[str, Any]) -> bool:
    function = tool.get("function")
    return (
        tool.get("type") == "function" and isinstance(function, dict) and "description" in function
    )


def _without_description(tool: dict[str, Any]) -> dict[str, Any]:
    function = {key: value for key, value in tool["function"].items() if key != "description"}
    return {**tool, "function": function}
