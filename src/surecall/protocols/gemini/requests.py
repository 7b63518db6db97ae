"""Requests on their way out."""

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

from surecall.protocols.choices import narrow_to_allowed
from surecall.records import ModelRequest, ToolSpec, WireRequest
from surecall.schema import Loss, rewrite_schema

from .contents import render_contents, render_instruction
from .names import wire_name
from .settings import render_choice, render_config

__all__ = ["render_auth", "render_request", "render_tool", "schema_losses"]

_WHOLE: Final = "generateContent"
_STREAMED: Final = "streamGenerateContent?alt=sse"


def render_auth(key: str) -> dict[str, str]:
    """Render the header that carries a key."""
    return {"x-goog-api-key": key}


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request; `parallel_tool_calls` has no place in this format.

    Raises:
        RequestError: `INVALID_MESSAGE`, when a part of a message cannot be sent.
    """
    request = narrow_to_allowed(request)
    body: dict[str, Any] = {"contents": render_contents(request.messages)}
    instruction = render_instruction(request.messages)
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
    """Return what the schemas of tools say that Gemini is not told, by the names of the tools."""
    found = {tool.name: rewrite_schema(tool.parameters, "gemini").losses for tool in tools}
    return {name: losses for name, losses in found.items() if losses}
