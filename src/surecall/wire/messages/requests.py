"""Requests on their way out: a history as the turns that the format accepts.

- The user begins, and the two sides take turns: neighbours of one side are joined.
- An assistant's turn has its thoughts first, then its text, then its calls.
- The user's turn after calls begins with one result for each of them, and no other results.
- No text is blank, and the last text does not end in space when the assistant is to go on.

What must be added is added openly: a call without a result gets one that says so, a result
without its call becomes text, and an assistant who begins comes after `(continued)`.
"""

from collections.abc import Container, Mapping
from itertools import takewhile
from typing import Any, Final, Literal, cast

from surecall.base.errors import Code, RequestError
from surecall.base.json_values import as_fields, pick_fields
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.schema import clean_parameters
from surecall.wire.call_ids import CallIds
from surecall.wire.substitutes import keep_allowed, stand_in_arguments, stand_in_name

from .blocks import plain_text, render_parts, wire_id

MAX_NAME_CHARS: Final = 128

_CONTINUED: Final = "(continued)"
_NO_RESULT: Final = "No result of this call was recorded; it may or may not have run."
_LOST_CALL: Final = "[The result of a call that is not part of this conversation any more:]"
_CALL_FIELDS: Final = ("cache_control", "caller", "toolset_name")


def _render_turns(
    messages: tuple[Message, ...], offered: Container[str] = ()
) -> list[dict[str, Any]]:
    """Render messages as alternating turns.

    Args:
        messages: The messages.
        offered: Names of the tools of the same request, which calls keep as they are.

    Raises:
        RequestError: `INVALID_MESSAGE`, when no message says anything.
    """
    turns = _Turns(offered)
    for message in messages:
        if message.role == "assistant":
            turns.add_assistant(message)
        elif message.role == "tool":
            turns.add_result(message)
        else:
            turns.add_user(render_parts(message.content, "user"))
    return turns.render()


class _Turn:
    def __init__(self, role: Literal["user", "assistant"]) -> None:
        self.role = role
        self.first: list[dict[str, Any]] = []
        """Thoughts of the assistant, results of the user."""
        self.words: list[dict[str, Any]] = []
        self.calls: list[dict[str, Any]] = []

    def render(self) -> dict[str, Any]:
        blocks = [*self.first, *self.words, *self.calls]
        text = plain_text(blocks)
        return {"role": self.role, "content": blocks if text is None else text}


class _Turns:
    def __init__(self, offered: Container[str]) -> None:
        self._offered = offered
        self._turns: list[_Turn] = []
        self._ids = CallIds(wire_id)
        self._waiting: dict[str, list[str]] = {}
        """Calls of the last assistant turn without a result: their ids in records and here."""

    def add_user(self, blocks: list[dict[str, Any]]) -> None:
        if blocks:
            self._turn("user").words += blocks

    def add_assistant(self, message: Message) -> None:
        words = render_parts(message.content, "assistant")
        if not words and not message.tool_calls:
            return  # thoughts alone are refused
        if self._turns and self._turns[-1].role == "user":
            self._answer_waiting()
        turn = self._turn("assistant")
        turn.first += _thoughts(message)
        turn.words += words
        for call in message.tool_calls:
            call_id = self._ids.assign(call.id)
            self._waiting.setdefault(call.id, []).append(call_id)
            turn.calls.append(_render_call(call, call_id, self._offered))

    def add_result(self, message: Message) -> None:
        waiting = self._waiting.get(message.tool_call_id or "")
        blocks = render_parts(message.content, "tool" if waiting else "user")
        if not waiting:
            self.add_user([{"type": "text", "text": _LOST_CALL}, *blocks])
            return
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": waiting.pop(0)}
        if blocks:
            text = plain_text(blocks)
            result["content"] = blocks if text is None else text
        if message.extra.get("is_error") is True:
            result["is_error"] = True
        self._turn("user").first.append(result)

    def render(self) -> list[dict[str, Any]]:
        self._answer_waiting()
        if not self._turns:
            raise RequestError(
                Code.INVALID_MESSAGE,
                "No message of the request says anything.",
                hint="Send at least one message with text.",
            )
        if self._turns[0].role == "assistant":
            self._turns.insert(0, _Turn("user"))
            self._turns[0].words.append({"type": "text", "text": _CONTINUED})
        last = self._turns[-1]
        if last.role == "assistant" and last.words and last.words[-1]["type"] == "text":
            block = last.words[-1]
            last.words[-1] = {**block, "text": block["text"].rstrip()}
        return [turn.render() for turn in self._turns]

    def _turn(self, role: Literal["user", "assistant"]) -> _Turn:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        return self._turns[-1]

    def _answer_waiting(self) -> None:
        """Answer the calls that are still waiting; their results cannot come any more."""
        for call_id in [item for items in self._waiting.values() for item in items]:
            result = {"type": "tool_result", "tool_use_id": call_id, "content": _NO_RESULT}
            self._turn("user").first.append({**result, "is_error": True})
        self._waiting.clear()


def _render_call(call: ToolCall, call_id: str, offered: Container[str]) -> dict[str, Any]:
    arguments = call.arguments
    return {
        "type": "tool_use",
        "id": call_id,
        "name": stand_in_name(call.name, MAX_NAME_CHARS, offered),
        "input": stand_in_arguments(call.raw) if arguments is None else arguments,
        **pick_fields(call.extra, _CALL_FIELDS),
    }


def _thoughts(message: Message) -> list[dict[str, Any]]:
    """Return the thoughts to send back as they came; without a signature none is accepted."""
    given: Any = message.extra.get("thinking_blocks")
    blocks = map(as_fields, cast("list[Any]", given if isinstance(given, list | tuple) else ()))
    return [
        dict(block)
        for block in blocks
        if (needed := _THOUGHT_FIELDS.get(str(block.get("type"))))
        and all(isinstance(block.get(key), str) for key in needed)
    ]


_THOUGHT_FIELDS: Final = {"redacted_thinking": ("data",), "thinking": ("thinking", "signature")}


_DEFAULT_MAX_TOKENS: Final = 4096
"""The format demands a limit; this one holds when the caller names none."""

PATH: Final = "/messages"
HEADERS: Final[Mapping[str, str]] = {"anthropic-version": "2026-10-21"}
"""What every request has to say."""
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
    request = keep_allowed(request)
    system, messages = _split_system(request.messages)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": _max_tokens(request.params),
        "messages": _render_turns(messages, {tool.name for tool in request.tools}),
    }
    if system:
        text = plain_text(system)
        body["system"] = system if text is None else text
    _add_tools(request, body)
    _add_params(request, body)
    if request.stream:
        body["stream"] = True
    return WireRequest(path=PATH, body=body, headers=dict(HEADERS), stream=request.stream)


def render_tool(tool: ToolSpec) -> dict[str, Any]:
    """Render a tool; its schema is always that of an object."""
    wire: dict[str, Any] = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    schema = clean_parameters(tool.parameters or {"type": "object", "properties": {}})
    wire["input_schema"] = schema if "type" in schema else {"type": "object", **schema}
    return wire | pick_fields(tool.extra, _TOOL_FIELDS)


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
    budget = as_fields(params.get("thinking")).get("budget_tokens")
    return _DEFAULT_MAX_TOKENS + (budget if isinstance(budget, int) else 0)


def _add_tools(request: ModelRequest, body: dict[str, Any]) -> None:
    if request.tools:
        body["tools"] = [render_tool(tool) for tool in request.tools]
        choice = _render_choice(request.tool_choice, request.parallel_tool_calls)
        if choice is not None:
            body["tool_choice"] = choice
        return
    called = (call.name for message in request.messages for call in message.tool_calls)
    names = dict.fromkeys(stand_in_name(name, MAX_NAME_CHARS) for name in called)
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
        named = as_fields(function) if isinstance(function, dict) else choice
        is_function = choice.get("type", "function") == "function"
        wire = {"type": "tool", "name": named.get("name")} if is_function else dict(choice)
    if parallel is False and wire["type"] != "none":
        wire["disable_parallel_tool_use"] = True
    return wire


def _add_params(request: ModelRequest, body: dict[str, Any]) -> None:
    params = request.params
    stop = params.get("stop")
    if stop:
        body["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    user = params.get("user") or as_fields(params.get("metadata")).get("user_id")
    if user is not None:
        body["metadata"] = {"user_id": user}
    config = dict(as_fields(params.get("output_config")))
    effort = params.get("reasoning_effort")
    if effort == "none":
        body["thinking"] = params.get("thinking") or {"type": "disabled"}
    elif isinstance(effort, str):
        config.setdefault("effort", _EFFORTS.get(effort, effort))
    schema = as_fields(as_fields(request.response_format).get("json_schema")).get("schema")
    if isinstance(schema, dict):
        config["format"] = {"type": "json_schema", "schema": schema}
    if config:
        body["output_config"] = config
    for key, value in params.items():
        if value is not None and key not in _OWN_PARAMS and key not in _REFUSED_PARAMS:
            body.setdefault(key, value)
