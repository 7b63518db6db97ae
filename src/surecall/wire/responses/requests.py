"""Requests on their way out; each message is one or more items.

Nothing is left to the server's memory: the whole input is sent, `store` is false, and encrypted
reasoning is asked for so that it can be sent back. Parameters may say otherwise; one that is null
takes the field out.

`stop`, `seed`, `n`, `logit_bias`, `logprobs`, `frequency_penalty` and `presence_penalty` are left
out, because the API refuses them; so is the `name` of a message.
"""

from collections.abc import Container, Mapping
from hashlib import sha256
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.schema import clean_parameters
from surecall.wire.chat_completions import render_message

from .content import is_sendable, place_reasoning, render_content

_CALL_EXTRA: Final = ("async", "caller", "namespace")
_MAX_ID_CHARS: Final = 64


def _render_items(
    message: Message, *, stored: bool = False, offered: Container[str] = ()
) -> list[dict[str, Any]]:
    """Render a message; whatever the model once sent, the items are valid for the wire.

    Args:
        message: The message.
        stored: Whether the server keeps replies, so that reasoning may be named by its id alone.
        offered: Names of the tools of the same request, which calls keep as they are.
    """
    if message.role == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": _wire_id(message.tool_call_id or ""),
                "output": render_content(message.content),
            }
        ]
    if message.role == "assistant":
        return _render_turn(message, stored=stored, offered=offered)
    return [{"role": message.role, "content": render_content(message.content)}]


def _render_turn(
    message: Message, *, stored: bool, offered: Container[str]
) -> list[dict[str, Any]]:
    """Render what the model said: reasoning before what it led to, text, calls."""
    items: list[dict[str, Any]] = []
    calls = message.tool_calls
    leading, before = place_reasoning(message.extra.get("reasoning_items"))
    if calls or message.content:
        items += [item for item in leading if is_sendable(item, stored=stored)]
    if message.content or not calls:
        text: dict[str, Any] = {
            "role": "assistant",
            "content": render_content(message.content, "output_text"),
        }
        if isinstance(message.content, list):
            text = {"type": "message", **text}
        if message.extra.get("phase"):
            text["phase"] = message.extra["phase"]
        items.append(text)
    for call in calls:
        items += [item for item in before.get(call.id, ()) if is_sendable(item, stored=stored)]
        items.append(_render_call(call, offered))
    return items


def _render_call(call: ToolCall, offered: Container[str]) -> dict[str, Any]:
    message = render_message(Message("assistant", None, (call,)), offered)
    function = message["tool_calls"][0]["function"]
    wire = {"type": "function_call", "call_id": _wire_id(call.id), **function}
    return wire | {key: call.extra[key] for key in _CALL_EXTRA if key in call.extra}


def _wire_id(call_id: str) -> str:
    """Return an id that the API takes; the same for the call and its result."""
    if 0 < len(call_id) <= _MAX_ID_CHARS:
        return call_id
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"call_{digest[: _MAX_ID_CHARS - len('call_')]}"


PATH: Final = "/responses"
_ENCRYPTED: Final = "reasoning.encrypted_content"
_REFUSED_PARAMS: Final = frozenset(
    {"frequency_penalty", "logit_bias", "logprobs", "n", "presence_penalty", "seed", "stop"}
)
_LIMIT_PARAMS: Final = ("max_tokens", "max_completion_tokens")
_NESTED_PARAMS: Final[Mapping[str, tuple[str, str]]] = {
    "reasoning_effort": ("reasoning", "effort"),
    "verbosity": ("text", "verbosity"),
}
_TOOL_EXTRA: Final = ("allowed_callers", "async", "defer_loading", "output_schema")


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request; tool settings are left out when there are no tools."""
    params = _render_params(request.params)
    messages = request.messages
    body: dict[str, Any] = {"model": request.model}
    if _has_instructions(messages) and "instructions" not in params:
        body["instructions"] = messages[0].content
        messages = messages[1:]
    stored = params.get("store") is True
    offered = {tool.name for tool in request.tools}
    body["input"] = [
        item
        for message in messages
        for item in _render_items(message, stored=stored, offered=offered)
    ]
    if request.tools:
        body["tools"] = [render_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _render_choice(request.tool_choice)
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.response_format is not None:
        text = {"format": _render_format(request.response_format)}
        params["text"] = {**as_fields(params.get("text")), **text}
    for key, value in ({"store": False, "include": [_ENCRYPTED]} | params).items():
        if value is not None:
            body.setdefault(key, value)
    if request.stream:
        body["stream"] = True
    return WireRequest(path=PATH, body=body, stream=request.stream)


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Render a tool; `strict` is always said, because the API takes a missing one for true."""
    wire: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    wire["parameters"] = clean_parameters(tool.parameters or {"type": "object", "properties": {}})
    wire["strict"] = tool.extra.get("strict") is True
    wire |= {key: tool.extra[key] for key in _TOOL_EXTRA if key in tool.extra}
    return wire


def _has_instructions(messages: tuple[Message, ...]) -> bool:
    """Tell whether the first message may leave the input, which must not become empty."""
    first = messages[0] if len(messages) > 1 else None
    return first is not None and first.role == "system" and isinstance(first.content, str)


def _render_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the parameters that other formats call differently."""
    wire: dict[str, Any] = {}
    for key, value in params.items():
        if key in _NESTED_PARAMS:
            outer, inner = _NESTED_PARAMS[key]
            if value is not None:
                wire[outer] = {inner: value, **as_fields(params.get(outer))}
        elif key in _LIMIT_PARAMS:
            wire.setdefault("max_output_tokens", value)
        elif key == "stream_options":
            options = {name: on for name, on in as_fields(value).items() if name != "include_usage"}
            if options:
                wire[key] = options
        elif key == "max_output_tokens":
            wire[key] = value
        elif key not in _REFUSED_PARAMS:
            wire.setdefault(key, value)
    return wire


def _render_choice(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(choice, str):
        return choice
    function = as_fields(choice.get("function"))
    if function:
        return {"type": "function", "name": function.get("name")}
    allowed = as_fields(choice.get("allowed_tools"))
    if allowed:
        tools = [_flat(as_fields(tool)) for tool in as_list(allowed.get("tools"))]
        return {"type": "allowed_tools", "mode": allowed.get("mode", "auto"), "tools": tools}
    return choice


def _flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in tool.items() if key != "function"}
    return {**rest, **as_fields(tool.get("function"))}


def _render_format(response_format: Mapping[str, Any]) -> dict[str, Any]:
    schema = as_fields(response_format.get("json_schema"))
    if response_format.get("type") != "json_schema" or not schema:
        return dict(response_format)
    return {"type": "json_schema", "name": "reply", **schema}
