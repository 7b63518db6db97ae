"""A choice among some of the tools, for formats that have no word for it."""

from typing import Any, cast

from msgspec.structs import replace

from surecall.records import ModelRequest

__all__ = ["narrow_to_allowed"]


def narrow_to_allowed(request: ModelRequest) -> ModelRequest:
    """Return a request that offers only the tools its choice allows, which is what that means."""
    choice = request.tool_choice
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return request
    inner: Any = choice.get("allowed_tools")
    allowed = cast("dict[str, Any]", inner) if isinstance(inner, dict) else choice
    entries: Any = allowed.get("tools")
    names = {_name_in(entry) for entry in cast("list[Any]", entries or ())}
    return replace(
        request,
        tools=tuple(tool for tool in request.tools if tool.name in names),
        tool_choice="required" if allowed.get("mode") == "required" else "auto",
    )


def _name_in(entry: Any) -> Any:
    """Return the name of a tool, which chat completions nest and responses do not."""
    fields = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    inner: Any = fields.get("function")
    name = (cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields).get("name")
    return name if isinstance(name, str) else None
