"""Requests on their way out."""

import re
from itertools import islice
from typing import Any, Final, cast

from surecall.errors import JSONTextError
from surecall.jsontext import encode_text
from surecall.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.schema import clean_parameters

__all__ = ["render_message", "render_request", "render_tool"]

_PATH: Final = "/chat/completions"
_UNREADABLE_KEY: Final = "_unreadable_arguments"

_MAX_ECHO: Final = 200
_WIRE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_WIRE_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request; tool settings are left out when there are no tools."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [render_message(message) for message in request.messages],
    }
    if request.tools:
        body["tools"] = [render_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.response_format is not None:
        body["response_format"] = request.response_format
    for key, value in request.params.items():
        body.setdefault(key, value)
    if request.stream:
        body["stream"] = True
        body.setdefault("stream_options", {"include_usage": True})
    return WireRequest(path=_PATH, body=body, stream=request.stream)


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Render a tool as a function tool."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = clean_parameters(
        tool.parameters or {"type": "object", "properties": {}}
    )
    return {"type": "function", "function": function}


def render_message(message: Message) -> dict[str, Any]:
    """Render a message; whatever the model once sent, the result is valid for the wire."""
    calls = message.tool_calls
    content: Any = message.content
    if content is None and not (calls and message.role == "assistant"):
        content = ""
    wire: dict[str, Any] = {"role": message.role, "content": content}
    if calls:
        wire["tool_calls"] = [_render_call(call) for call in calls]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name:
        wire["name"] = message.name
    for key, value in message.extra.items():
        wire.setdefault(key, value)
    return wire


def _render_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": _wire_name(call.name), "arguments": _render_arguments(call)}
    wire: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    for key, value in call.extra.items():
        wire.setdefault(key, value)
    return wire


def _wire_name(name: str) -> str:
    """Return a name that providers accept in history, though no such tool may exist."""
    if _WIRE_NAME.fullmatch(name):
        return name
    return _NOT_WIRE_NAME.sub("_", name[:64]) or "unnamed"


def _render_arguments(call: ToolCall) -> str:
    if call.arguments is None:
        return encode_text({_UNREADABLE_KEY: _echo(call.raw)})
    if isinstance(call.raw, str) and not call.receipts:
        return call.raw
    return encode_text(call.arguments)


def _echo(raw: Any) -> str:
    if not isinstance(raw, str):
        try:
            raw = encode_text(_preview(raw, 2))
        except JSONTextError:
            raw = f"({type(raw).__name__})"
    return raw[:_MAX_ECHO].encode("utf-8", "replace").decode()


def _preview(value: Any, levels: int) -> Any:
    """Return the first part of a value, at a cost that does not depend on its size."""
    if isinstance(value, str):
        return value[:_MAX_ECHO].encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        items = islice(cast("dict[Any, Any]", value).items(), 8 if levels else 0)
        return {str(key)[:_MAX_ECHO]: _preview(item, levels - 1) for key, item in items}
    if isinstance(value, list):
        head = cast("list[Any]", value)[: 8 if levels else 0]
        return [_preview(item, levels - 1) for item in head]
    return value
