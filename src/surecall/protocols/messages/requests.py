"""Requests on their way out."""

from collections.abc import Mapping
from itertools import takewhile
from typing import Any, Final, cast

from surecall.protocols.choices import narrow_to_allowed
from surecall.protocols.standins import stand_in_name
from surecall.records import Message, ModelRequest, ToolSpec, WireRequest
from surecall.schema import clean_parameters

from .blocks import plain_text, render_parts
from .turns import MAX_NAME_CHARS, render_turns

__all__ = ["DEFAULT_MAX_TOKENS", "render_request", "render_tool"]

DEFAULT_MAX_TOKENS: Final = 4096
"""The format demands a limit; this one holds when the caller names none."""

_PATH: Final = "/messages"
_HEADERS: Final = {"anthropic-version": "2026-10-21"}
_SYSTEM_ROLES: Final = ("system", "developer")

_OWN_PARAMS: Final = frozenset(
    {
        "max_completion_tokens",
        "max_tokens",
        "metadata",
        "output_config",
        "reasoning_effort",
        "stop",
        "user",
    }
)
_REFUSED_PARAMS: Final = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "n",
        "presence_penalty",
        "seed",
        "stream_options",
        "top_logprobs",
    }
)
"""What the API answers with an error, since it has no such field."""
_EFFORTS: Final[Mapping[str, str]] = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
_CHOICES: Final[Mapping[str, str]] = {
    "any": "any",
    "auto": "auto",
    "none": "none",
    "required": "any",
}
_TOOL_FIELDS: Final = (
    "allowed_callers",
    "cache_control",
    "defer_loading",
    "eager_input_streaming",
    "input_examples",
    "strict",
)


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request.

    A `response_format` with a JSON schema becomes `output_config.format`; the format has no
    counterpart of `json_object`, which is left out. `reasoning_effort` becomes
    `output_config.effort`, and `none` turns thinking off; a `thinking` parameter goes through as
    it is. Reasoning without a signature, and the names of participants, have no place here.
    """
    request = narrow_to_allowed(request)
    system, messages = _split_system(request.messages)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": _max_tokens(request.params),
        "messages": render_turns(messages, {tool.name for tool in request.tools}),
    }
    if system:
        text = plain_text(system)
        body["system"] = system if text is None else text
    _add_tools(request, body)
    _add_params(request, body)
    if request.stream:
        body["stream"] = True
    return WireRequest(path=_PATH, body=body, headers=dict(_HEADERS), stream=request.stream)


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Render a tool; its schema is always that of an object."""
    wire: dict[str, Any] = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    schema = clean_parameters(tool.parameters or {"type": "object", "properties": {}})
    wire["input_schema"] = schema if "type" in schema else {"type": "object", **schema}
    for key in _TOOL_FIELDS:
        if tool.extra.get(key) is not None:
            wire[key] = tool.extra[key]
    return wire


def _split_system(
    messages: tuple[Message, ...],
) -> tuple[list[dict[str, Any]], tuple[Message, ...]]:
    """Part the leading instructions from the conversation.

    The system prompt takes text only, so what else they hold is moved to the user, and so are
    instructions that stand alone: somebody has to begin.
    """
    leading = tuple(takewhile(lambda message: message.role in _SYSTEM_ROLES, messages))
    if len(leading) == len(messages):
        return [], messages
    blocks = [block for message in leading for block in render_parts(message.content, "user")]
    rest = messages[len(leading) :]
    others = [block for block in blocks if block["type"] != "text"]
    if others:
        rest = (Message("user", others), *rest)
    return [block for block in blocks if block["type"] == "text"], rest


def _max_tokens(params: Mapping[str, Any]) -> Any:
    for key in ("max_tokens", "max_completion_tokens"):
        if params.get(key) is not None:
            return params[key]
    thinking: Any = params.get("thinking")
    budget = (
        cast("dict[str, Any]", thinking).get("budget_tokens")
        if isinstance(thinking, dict)
        else None
    )
    return DEFAULT_MAX_TOKENS + (budget if isinstance(budget, int) else 0)


def _add_tools(request: ModelRequest, body: dict[str, Any]) -> None:
    if request.tools:
        body["tools"] = [render_tool(tool) for tool in request.tools]
        choice = _render_choice(request.tool_choice, request.parallel_tool_calls)
        if choice is not None:
            body["tool_choice"] = choice
        return
    names = _called_names(request.messages)
    if names:
        # A history with calls is refused unless tools are defined; none of them may be used.
        body["tools"] = [render_tool(ToolSpec(name=name)) for name in names]
        body["tool_choice"] = {"type": "none"}


def _render_choice(
    choice: str | dict[str, Any] | None, parallel: bool | None
) -> dict[str, Any] | None:
    if choice is None and parallel is not False:
        return None
    if choice is None or isinstance(choice, str):
        wire: dict[str, Any] = {"type": _CHOICES.get(choice or "auto", choice)}
    else:
        function: Any = choice.get("function")
        named = cast("dict[str, Any]", function) if isinstance(function, dict) else choice
        is_function = choice.get("type", "function") == "function"
        wire = {"type": "tool", "name": named.get("name")} if is_function else dict(choice)
    if parallel is False and wire["type"] != "none":
        wire["disable_parallel_tool_use"] = True
    return wire


def _called_names(messages: tuple[Message, ...]) -> list[str]:
    names = (call.name for message in messages for call in message.tool_calls)
    return list(dict.fromkeys(stand_in_name(name, MAX_NAME_CHARS) for name in names))


def _add_params(request: ModelRequest, body: dict[str, Any]) -> None:
    params = request.params
    stop = params.get("stop")
    if stop:
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    user = params.get("user") or _member(params.get("metadata"), "user_id")
    if user is not None:
        body["metadata"] = {"user_id": user}
    output: Any = params.get("output_config")
    config = dict(cast("dict[str, Any]", output)) if isinstance(output, dict) else {}
    effort = params.get("reasoning_effort")
    if effort == "none":
        body["thinking"] = params.get("thinking") or {"type": "disabled"}
    elif isinstance(effort, str):
        config.setdefault("effort", _EFFORTS.get(effort, effort))
    schema = _member(_member(request.response_format, "json_schema"), "schema")
    if isinstance(schema, dict):
        config["format"] = {"type": "json_schema", "schema": schema}
    if config:
        body["output_config"] = config
    for key, value in params.items():
        if value is not None and key not in _OWN_PARAMS and key not in _REFUSED_PARAMS:
            body.setdefault(key, value)


def _member(value: Any, key: str) -> Any:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
