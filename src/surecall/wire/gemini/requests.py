"""Requests on their way out.

A conversation is contents: two roles that take turns, and one instruction next to them.
"""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

from surecall.base.json_values import text_or_none
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.schema import Loss, rewrite_schema
from surecall.wire.substitutes import narrow_to_allowed, stand_in_arguments

from .names import wire_name
from .parts import render_parts, render_response, sign
from .settings import render_choice, render_config


def _render_instruction(messages: Iterable[Message]) -> dict[str, Any] | None:
    """Render what system and developer say, wherever in the conversation they say it."""
    said = [message for message in messages if message.role in {"system", "developer"}]
    parts = [part for message in said for part in render_parts(message.content)]
    return {"parts": parts} if parts else None


def _render_contents(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Render the turns; messages of one side that follow each other become one turn."""
    turns: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    results: list[Message] = []
    order: list[str] = []

    def add(role: str, parts: list[dict[str, Any]]) -> None:
        if turns and turns[-1]["role"] == role:
            turns[-1]["parts"] += parts
        elif parts:
            turns.append({"role": role, "parts": parts})

    def add_results() -> None:
        if results:
            add("user", _render_results(results, names, order))
            results.clear()

    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        add_results()
        if message.role == "assistant":
            order = [call.id for call in message.tool_calls]
            names.update({call.id: call.name for call in message.tool_calls})
            add("model", _render_assistant(message))
        elif message.role == "user":
            add("user", render_parts(message.content) or [{"text": ""}])
    add_results()
    return turns


def _render_assistant(message: Message) -> list[dict[str, Any]]:
    parts = render_parts(message.content)
    signature = text_or_none(message.extra.get("thought_signature"))
    if signature:
        *parts, last = parts or [{"text": ""}]
        parts.append(sign(last, signature))
    return [*parts, *(_render_call(call) for call in message.tool_calls)]


def _render_call(call: ToolCall) -> dict[str, Any]:
    arguments = stand_in_arguments(call.raw) if call.arguments is None else call.arguments
    function = {"id": call.id, "name": wire_name(call.name), "args": arguments}
    return sign({"functionCall": function}, call.extra.get("thought_signature"))


def _render_results(
    results: list[Message], names: dict[str, str], order: list[str]
) -> list[dict[str, Any]]:
    """Render the results of a turn in the order of its calls, and then what came with them."""
    ranks = {call_id: rank for rank, call_id in enumerate(order)}
    beside: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for message in sorted(results, key=lambda item: ranks.get(item.tool_call_id or "", len(ranks))):
        call_id = message.tool_call_id or ""
        name = names.get(call_id) or message.name or "unknown"
        response = render_response(message.text, is_error=message.extra.get("is_error") is True)
        function = {"id": call_id, "name": wire_name(name), "response": response}
        parts.append({"functionResponse": function})
        if isinstance(message.content, list):
            beside += [item for item in render_parts(message.content) if "text" not in item]
    return [*parts, *beside]


_WHOLE: Final = "generateContent"
_STREAMED: Final = "streamGenerateContent?alt=sse"


def render_auth(key: str) -> dict[str, str]:
    """Render the header that carries a key."""
    return {"x-goog-api-key": key}


def path_of(model: str, *, stream: bool) -> str:
    """Return the path of the endpoint that answers for a model."""
    return f"/models/{quote(model, safe='')}:{_STREAMED if stream else _WHOLE}"


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request; `parallel_tool_calls` has no place in this format.

    Raises:
        RequestError: `INVALID_MESSAGE`, when a part of a message cannot be sent.
    """
    request = narrow_to_allowed(request)
    body: dict[str, Any] = {"contents": _render_contents(request.messages)}
    instruction = _render_instruction(request.messages)
    if instruction is not None:
        body["systemInstruction"] = instruction
    if request.tools:
        body["tools"] = [{"functionDeclarations": [render_tool(tool) for tool in request.tools]}]
        if request.tool_choice is not None:
            body["toolConfig"] = render_choice(request.tool_choice)
    config, beside = render_config(request.model, request.params, request.response_format)
    if config:
        body["generationConfig"] = config
    for key, value in beside.items():
        body.setdefault(key, value)
    name = request.model
    if not name.startswith(("models/", "tunedModels/")):
        name = f"models/{name}"
    method = _STREAMED if request.stream else _WHOLE
    path = f"/{quote(name, safe='/:@')}:{method}"
    return WireRequest(path=path, body=body, stream=request.stream)


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Render a tool as a function declaration; `schema_losses` tells what its schema loses."""
    function: dict[str, Any] = {"name": wire_name(tool.name)}
    if tool.description:
        function["description"] = tool.description
    parameters = rewrite_schema(tool.parameters, "gemini").schema
    if parameters.get("properties"):
        function["parameters"] = parameters
    return function


def schema_losses(tools: Iterable[ToolSpec]) -> dict[str, tuple[Loss, ...]]:
    """Return what the schemas of tools say that Gemini does not get, by the names of the tools."""
    found = {tool.name: rewrite_schema(tool.parameters, "gemini").losses for tool in tools}
    return {name: losses for name, losses in found.items() if losses}
