"""Requests on their way out.

A conversation is contents: two roles that take turns, and one instruction next to them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

from surecall.base.json_values import as_fields, as_list, other_fields, text_or_none
from surecall.base.limits import MAX_SCHEMA_DEPTH
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.schema import Loss, rewrite_schema
from surecall.wire.substitutes import keep_allowed, stand_in_arguments

from .parts import (
    known_members,
    member,
    own_name,
    render_parts,
    render_response,
    sign,
    snake,
    wire_name,
)

_TWO_SPELLINGS: Final = (
    *("additionalProperties", "anyOf", "maxItems", "maxLength", "maxProperties", "minItems"),
    *("minLength", "minProperties", "propertyOrdering"),
)
_BY_SNAKE: Final = {snake(name): name for name in _TWO_SPELLINGS}
_COUNTS: Final = frozenset(
    {"maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"}
)
_LEFT_OUT: Final = frozenset({"nullable", "propertyOrdering"})


def parse_schema(schema: Any, depth: int = 0) -> dict[str, Any]:
    """Return a JSON Schema: types in lower case, null as a type, counts as numbers."""
    if not isinstance(schema, dict) or depth > MAX_SCHEMA_DEPTH:
        return {}
    fields = {_BY_SNAKE.get(k, k): v for k, v in as_fields(schema).items()}
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if value is None or key in _LEFT_OUT:
            continue
        if key == "type" and isinstance(value, str):
            if value.upper() != "TYPE_UNSPECIFIED":
                found[key] = value.lower()
        elif key in _COUNTS and isinstance(value, str):
            found[key] = int(value) if value.isascii() and value.isdigit() else value
        elif key == "properties" and isinstance(value, dict):
            items = as_fields(value).items()
            found[key] = {name: parse_schema(item, depth + 1) for name, item in items}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            found[key] = parse_schema(value, depth + 1)
        elif key == "anyOf" and isinstance(value, list):
            found[key] = [parse_schema(item, depth + 1) for item in as_list(value)]
        elif not (key == "format" and value == "enum"):
            found[key] = value
    return _with_null(found) if fields.get("nullable") is True else found


def _with_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str) and schema["type"] != "null":
        enum = {"enum": [*schema["enum"], None]} if isinstance(schema.get("enum"), list) else {}
        return {**schema, "type": [schema["type"], "null"], **enum}
    if isinstance(schema.get("anyOf"), list):
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    return schema


_NAMES: Final[Mapping[str, str]] = {
    "frequencyPenalty": "frequency_penalty",
    "candidateCount": "n",
    "maxOutputTokens": "max_tokens",
    "presencePenalty": "presence_penalty",
    "responseLogprobs": "logprobs",
    "logprobs": "top_logprobs",
    "seed": "seed",
    "stopSequences": "stop",
    "temperature": "temperature",
    "topK": "top_k",
    "topP": "top_p",
}
_CONFIG_NAMES: Final = {own: wire for wire, own in _NAMES.items()} | {
    "max_completion_tokens": "maxOutputTokens"
}
_REFUSED: Final = frozenset(
    {"logit_bias", "metadata", "service_tier", "store", "stream_options", "user"}
)
"""Settings of other formats; Gemini answers 400 to names it does not know."""
_FORMAT_FIELDS: Final = ("responseMimeType", "responseSchema", "responseJsonSchema")
_BUDGETS: Final = {"none": 0, "minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
_EFFORTS: Final = {budget: effort for effort, budget in _BUDGETS.items()}
_LEVELS: Final = {"max": "HIGH", "none": "MINIMAL", "xhigh": "HIGH"}
_MODES: Final = {"any": "ANY", "auto": "AUTO", "none": "NONE", "required": "ANY"}
_JSON: Final = "application/json"


def render_config(
    model: str, params: dict[str, Any], response_format: dict[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the generation config, and the settings that belong next to it."""
    config: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    given = as_fields(params.get("generationConfig"))
    for name, value in params.items():
        if name == "stop":
            config["stopSequences"] = [value] if isinstance(value, str) else value
        elif name in _CONFIG_NAMES:
            config[_CONFIG_NAMES[name]] = value
        elif name == "reasoning_effort" and isinstance(value, str):
            config["thinkingConfig"] = _render_effort(model, value)
        elif name not in _REFUSED and name != "generationConfig":
            beside[name] = value
    if response_format is not None:
        config.update(_render_format(response_format))
    if config.get("logprobs") is not None:
        config.setdefault("responseLogprobs", True)  # how many there are does not say it
    thinking = {**as_fields(config.get("thinkingConfig")), **as_fields(given.get("thinkingConfig"))}
    config.update(given)
    if thinking:
        config["thinkingConfig"] = thinking
    return config, beside


def parse_config(config: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return settings by their usual names, and the form of the answer; others stay as they are."""
    params: dict[str, Any] = {}
    for wire, own in _NAMES.items():
        value = member(config, wire)
        if value is not None:
            params[own] = value
    thinking = as_fields(member(config, "thinkingConfig"))
    effort = _parse_effort(thinking)
    if effort is not None:
        params["reasoning_effort"] = effort
    done = known_members(*_NAMES, *_FORMAT_FIELDS, *(["thinkingConfig"] if effort else []))
    rest = other_fields(config, done)
    mime = member(config, "responseMimeType")
    if mime not in (None, _JSON, "text/plain"):
        rest["responseMimeType"] = mime
    if rest:
        params["generationConfig"] = rest
    return params, _parse_format(config)


def render_choice(choice: str | dict[str, Any]) -> dict[str, Any]:
    """Render which tools may or must be called."""
    if isinstance(choice, str):
        return {"functionCallingConfig": {"mode": _MODES.get(choice, choice.upper())}}
    kind = choice.get("type")
    if isinstance(kind, str) and kind in _MODES:
        return render_choice(kind)
    name = as_fields(choice.get("function")).get("name") or choice.get("name")
    config: dict[str, Any] = {"mode": "ANY"}
    if isinstance(name, str):
        config["allowedFunctionNames"] = [wire_name(name)]
    return {"functionCallingConfig": config}


def parse_choice(
    tool_config: dict[str, Any],
) -> tuple[str | dict[str, Any] | None, frozenset[str] | None]:
    """Return the tool choice, and the names of the tools that are allowed when only some are."""
    config = as_fields(member(tool_config, "functionCallingConfig"))
    mode = str(config.get("mode") or "").upper()
    allowed = as_list(member(config, "allowedFunctionNames"))
    names = [own_name(item) for item in allowed if isinstance(item, str)]
    if mode == "ANY":
        if len(names) == 1:
            return {"type": "function", "function": {"name": names[0]}}, None
        return "required", frozenset(names) if names else None
    choice = {"AUTO": "auto", "NONE": "none", "VALIDATED": "auto"}.get(mode)
    return choice, frozenset(names) if names else None


def _render_effort(model: str, effort: str) -> dict[str, Any]:
    """Render how much to think: models before Gemini 3 take a number of tokens."""
    if "gemini-2" in model or "gemini-1" in model:
        return {"thinkingBudget": _BUDGETS.get(effort, _BUDGETS["high"])}
    return {"thinkingLevel": _LEVELS.get(effort, effort.upper())}


def _parse_effort(thinking: dict[str, Any]) -> str | None:
    """Return how much to think when nothing else is said about it."""
    if len(thinking) != 1:
        return None
    level, budget = member(thinking, "thinkingLevel"), member(thinking, "thinkingBudget")
    if isinstance(level, str) and level.upper() != "THINKING_LEVEL_UNSPECIFIED":
        return level.lower()
    return _EFFORTS.get(budget) if isinstance(budget, int) else None


def _render_format(response_format: dict[str, Any]) -> dict[str, Any]:
    kind = response_format.get("type")
    if kind == "json_schema":
        schema = as_fields(response_format.get("json_schema")).get("schema")
        if isinstance(schema, dict):
            written = rewrite_schema(as_fields(schema), "gemini").schema
            return {"responseMimeType": _JSON, "responseSchema": written}
    return {"responseMimeType": _JSON} if kind in {"json_object", "json_schema"} else {}


def _parse_format(config: dict[str, Any]) -> dict[str, Any] | None:
    if member(config, "responseMimeType") != _JSON:
        return None
    schema = member(config, "responseJsonSchema")
    if not isinstance(schema, dict):
        written = member(config, "responseSchema")
        schema = parse_schema(written) if isinstance(written, dict) else None
    if schema is None:
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "response", "schema": schema}}


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


KEY_HEADER: Final = "x-goog-api-key"
_WHOLE: Final = "generateContent"
_STREAMED: Final = "streamGenerateContent?alt=sse"


def render_auth(key: str) -> dict[str, str]:
    """Render the header that carries a key."""
    return {KEY_HEADER: key}


def path_of(model: str, *, stream: bool) -> str:
    """Return the path of the endpoint that answers for a model."""
    return f"/models/{quote(model, safe='')}:{_STREAMED if stream else _WHOLE}"


def render_request(request: ModelRequest) -> WireRequest:
    """Render a request; `parallel_tool_calls` has no place in this format.

    Raises:
        RequestError: `INVALID_MESSAGE`, when a part of a message cannot be sent.
    """
    request = keep_allowed(request)
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
