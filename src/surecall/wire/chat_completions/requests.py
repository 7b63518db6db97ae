"""Requests on their way out."""

from collections.abc import Container, Iterator
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.schema import clean_parameters
from surecall.text import encode_text
from surecall.wire.substitutes import stand_in_arguments, stand_in_name

PATH: Final = "/chat/completions"
_FOREIGN_KEYS: Final = frozenset(
    {"is_error", "reasoning_items", "thinking_blocks", "thought_signature"}
)
"""What only other wire formats take back."""
_SHOWN_BELOW: Final = "[The result is in the next message of the user.]"


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request; tool settings are left out when there are no tools."""
    offered = {tool.name for tool in request.tools}
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [
            render_message(message, offered) for message in _show_results(request.messages)
        ],
    }
    if request.tools:
        body["tools"] = [render_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = request.tool_choice
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.response_format is not None:
        body |= _place_schema(request.response_format, request.schema_field)
    for key, value in request.params.items():
        body.setdefault(key, value)
    if body.get("top_logprobs") is not None:
        body.setdefault("logprobs", True)  # how many there are does not say it
    if request.stream:
        body["stream"] = True
        body.setdefault("stream_options", {"include_usage": True})
    return WireRequest(path=PATH, body=body, stream=request.stream)


def _place_schema(form: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the field that holds a reply to its form; servers of models have fields of their own.

    `structured_outputs` and `guided_json` are fields of vLLM, `json_schema` is one of llama.cpp.
    """
    if field == "response_format" or form.get("type") != "json_schema":
        return {"response_format": form}
    schema = form["json_schema"]["schema"]
    return {field: {"json": schema} if field == "structured_outputs" else schema}


def _show_results(messages: tuple[Message, ...]) -> Iterator[Message]:
    """Move what is not text out of results, which take nothing else, to the user behind them."""
    shown: list[dict[str, Any]] = []
    for message in messages:
        if shown and message.role != "tool":
            yield Message("user", shown)
            shown = []
        if message.role != "tool" or not isinstance(message.content, list):
            yield message
            continue
        texts = [part for part in message.content if part.get("type") == "text"]
        others = [part for part in message.content if part.get("type") != "text"]
        if others:
            stated = f"[From the result of the call {message.tool_call_id}:]"
            shown += [{"type": "text", "text": stated}, *others]
            message = replace(message, content=texts or _SHOWN_BELOW)
        yield message
    if shown:
        yield Message("user", shown)


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Render a tool as a function tool."""
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = clean_parameters(
        tool.parameters or {"type": "object", "properties": {}}
    )
    if "strict" in tool.extra:
        function["strict"] = tool.extra["strict"]
    wire: dict[str, Any] = {"type": "function", "function": function}
    if "cache_control" in tool.extra:
        wire["cache_control"] = tool.extra["cache_control"]
    return wire


def render_message(message: Message, offered: Container[str] = ()) -> dict[str, Any]:
    """Render a message; whatever the model once sent, the result is valid for the wire.

    Args:
        message: The message.
        offered: Names of the tools of the same request, which calls keep as they are.
    """
    calls = message.tool_calls
    content: Any = message.content
    if content is None and not (calls and message.role == "assistant"):
        content = ""
    wire: dict[str, Any] = {"role": message.role, "content": content}
    if calls:
        wire["tool_calls"] = [_render_call(call, offered) for call in calls]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.name:
        wire["name"] = message.name
    for key, value in message.extra.items():
        if key not in _FOREIGN_KEYS:
            wire.setdefault(key, value)
    return wire


def _render_call(call: ToolCall, offered: Container[str]) -> dict[str, Any]:
    name = stand_in_name(call.name, offered=offered)
    function = {"name": name, "arguments": _render_arguments(call)}
    wire: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    for key, value in call.extra.items():
        if key not in _FOREIGN_KEYS:
            wire.setdefault(key, value)
    return wire


def _render_arguments(call: ToolCall) -> str:
    if call.arguments is None:
        return encode_text(stand_in_arguments(call.raw))
    if isinstance(call.raw, str) and not call.receipts:
        return call.raw
    return encode_text(call.arguments)
