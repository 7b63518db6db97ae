"""What a client sends, understood as records: its turns of content blocks and its request."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from surecall.base.errors import did_you_mean
from surecall.base.json_values import as_fields, as_list, other_fields
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.text import encode_text
from surecall.wire.conversation import (
    Call,
    Item,
    TurnConversation,
    tell_lost_result,
)
from surecall.wire.server import (
    invalid_message,
    invalid_request,
    parse_description,
    parse_items,
    parse_model,
    parse_object,
    parse_role,
    parse_switch,
    parse_tools,
    show,
)

from .blocks import THOUGHT_BLOCKS, parse_block, plain_text

_ROLES: Final = ("assistant", "system", "user")
_CALL_FIELDS: Final = frozenset({"id", "input", "name", "type"})
_Placed: TypeAlias = tuple[dict[str, Any], str]
"""A block, and the place of it in the request."""


def _parse_system(system: Any) -> list[Message]:
    """Turn the system prompt into a message, if there is one."""
    content = _blocks(system, "system") if system is not None else []
    if not content:
        return []
    return [Message("system", _content([_parse_said(block, "system") for block in content]))]


def _parse_conversation(items: list[Any]) -> list[Message]:
    """Turn the turns of a conversation into messages; each result becomes one of its own.

    Items of the assistant that follow each other are one turn: with calls in it, it becomes one
    message, since results have to be directly behind the message with their calls.

    Raises:
        RequestError: `INVALID_MESSAGE`, naming the place of what is wrong.
    """
    messages: list[Message] = []
    turn: list[_Placed] = []
    """The assistant's blocks from the first item with calls on."""
    for index, item in enumerate(items):
        place = f"messages[{index}]"
        fields = as_fields(item)
        role = parse_role(fields.get("role"), _ROLES, place)
        blocks = _blocks(fields.get("content"), f"{place}.content")
        placed = [(block, f"{place}.content[{at}]") for at, block in enumerate(blocks)]
        if role == "assistant":
            if turn or any(block.get("type") == "tool_use" for block in blocks):
                turn += placed
            else:
                messages.append(_parse_assistant(placed))
            continue
        messages += [_parse_assistant(turn)] if turn else []
        turn = []
        if role == "system":
            messages.append(Message("system", _content([_parse_said(*entry) for entry in placed])))
        else:
            messages += _parse_user(placed)
    return [*messages, _parse_assistant(turn)] if turn else messages


def _parse_user(blocks: list[_Placed]) -> list[Message]:
    """Return the results of a turn first, then what the user says."""
    messages: list[Message] = []
    parts: list[dict[str, Any]] = []
    for block, here in blocks:
        if block.get("type") == "tool_result":
            messages.append(_parse_result(block, here))
        else:
            parts.append(_parse_said(block, here))
    if parts or not messages:
        messages.append(Message("user", _content(parts)))
    return messages


def _parse_result(block: dict[str, Any], place: str) -> Message:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str) or not call_id:
        raise invalid_message(f"{place} answers the call {show(call_id)}.", "Name its tool_use_id.")
    content = block.get("content")
    found = _blocks(content, f"{place}.content") if content is not None else []
    parts = [_parse_said(item, place) for item in found]
    if parts and block.get("cache_control"):
        parts[-1] = {"cache_control": block["cache_control"], **parts[-1]}
    extra = {"is_error": True} if block.get("is_error") is True else {}
    return Message("tool", _content(parts), tool_call_id=call_id, extra=extra)


def _parse_assistant(blocks: list[_Placed]) -> Message:
    parts: list[dict[str, Any]] = []
    calls: list[ToolCall] = []
    signed: list[dict[str, Any]] = []
    unsigned: list[str] = []
    for block, here in blocks:
        kind = block.get("type")
        if kind == "tool_use":
            calls.append(_parse_call(block, here))
        elif isinstance(kind, str) and kind in THOUGHT_BLOCKS:
            if block.get("signature") or kind == "redacted_thinking":
                signed.append(block)
            elif isinstance(block.get("thinking"), str):
                unsigned.append(block["thinking"])
        else:
            parts.append(_parse_said(block, here))
    extra: dict[str, Any] = {"thinking_blocks": signed} if signed else {}
    if not signed and any(unsigned):
        extra["reasoning_content"] = "".join(unsigned)
    content = _content(parts)
    if isinstance(content, list) and all(plain_text([part]) is not None for part in content):
        content = "".join(part["text"] for part in content)
    return Message("assistant", content or None, tuple(calls), extra=extra)


def _parse_call(block: dict[str, Any], place: str) -> ToolCall:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        raise invalid_message(f"{place} is a tool_use without an id or a name.", "Give it both.")
    if not isinstance(arguments, dict):
        raise invalid_message(f"{place} has the input {show(arguments)}.", "Use an object.")
    extra = other_fields(block, _CALL_FIELDS)
    arguments = as_fields(arguments)
    return ToolCall(id=call_id, name=name, arguments=arguments, raw=arguments, extra=extra)


def _blocks(content: Any, place: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, list):
        blocks = as_list(content)
        if all(isinstance(block, dict) for block in blocks):
            return blocks
    raise invalid_message(f"{place} is {show(content)}.", "Use text or a list of content blocks.")


def _parse_said(block: dict[str, Any], place: str) -> dict[str, Any]:
    kind = block.get("type")
    if not isinstance(kind, str) or kind in {"tool_result", "tool_use", *THOUGHT_BLOCKS}:
        raise invalid_message(
            f"{place} has a block of type {show(kind)}.", "It does not belong there."
        )
    if kind == "text" and not isinstance(block.get("text"), str):
        raise invalid_message(f"{place} has the text {show(block.get('text'))}.", "Use text.")
    return parse_block(block)


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return plain text where nothing more was said, since more servers take that."""
    if not parts:
        return ""
    text = plain_text(parts)
    return parts if text is None else text


_OWN_FIELDS: Final = frozenset(
    {
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "stop_sequences",
        "stream",
        "system",
        "tool_choice",
        "tools",
    }
)
_CHOICES: Final[Mapping[str, str]] = {"any": "required", "auto": "auto", "none": "none"}
_CHOICE_KINDS: Final = (*_CHOICES, "tool")
_KINDS_HINT: Final = f"Use an object with the type {', '.join(_CHOICE_KINDS)}."
_TOOL_FIELDS: Final = frozenset({"description", "input_schema", "name", "type"})


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; fields that are not about structure become `params`.

    Tools that only the provider itself can run, which have a type of their own, are refused.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong.
    """
    body = request.body
    model = parse_model(body)
    hint = "Send a list with at least one message."
    items = parse_items(body.get("messages"), "messages", hint)
    stream = parse_switch(body, "stream")
    messages = (*_parse_system(body.get("system")), *_parse_conversation(items))
    choice, parallel = _parse_choice(body.get("tool_choice"))
    params, response_format = _parse_params(body)
    return ModelRequest(
        model=model,
        messages=messages,
        tools=parse_tools(body.get("tools"), _parse_tool),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=response_format,
        params=params,
        stream=request.stream or bool(stream),
    )


def _parse_tool(tool: dict[str, Any], place: str) -> ToolSpec:
    kind = tool.get("type")
    if kind not in (None, "custom"):
        raise invalid_request(
            f"{place} is a tool of type {show(kind)}.", "Only custom tools can be carried."
        )
    name, description = parse_description(tool, place)
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        raise invalid_request(f"{place} has the input_schema {show(schema)}.", "Use a JSON Schema.")
    return ToolSpec(
        name=name,
        description=description,
        parameters=as_fields(schema),
        extra=other_fields(tool, _TOOL_FIELDS),
    )


def _parse_choice(value: Any) -> tuple[str | dict[str, Any] | None, bool | None]:
    if value is None:
        return None, None
    fields = as_fields(value)
    kind, name = fields.get("type"), fields.get("name")
    if not isinstance(kind, str) or kind not in _CHOICE_KINDS:
        hint = did_you_mean(kind, _CHOICE_KINDS) if isinstance(kind, str) else _KINDS_HINT
        raise invalid_request(f"tool_choice has the type {show(kind)}.", hint)
    parallel = False if fields.get("disable_parallel_tool_use") is True else None
    if kind != "tool":
        return _CHOICES[kind], parallel
    if not isinstance(name, str) or not name:
        raise invalid_request(f"tool_choice names {show(name)}.", "Name a tool.")
    return {"type": "function", "function": {"name": name}}, parallel


def _parse_params(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    params = other_fields(body, _OWN_FIELDS)
    limit, stop = body.get("max_tokens"), body.get("stop_sequences")
    if limit is not None:
        if type(limit) is not int:
            raise invalid_request(f"max_tokens is {show(limit)}.", "Use a whole number.")
        params["max_tokens"] = limit
    if stop is not None:
        if not isinstance(stop, list):
            raise invalid_request(f"stop_sequences is {show(stop)}.", "Send a list of texts.")
        params["stop"] = stop
    metadata = parse_object(body, "metadata")
    if metadata.get("user_id") is not None:
        params["user"] = metadata["user_id"]
    output = dict(parse_object(body, "output_config"))
    effort, form = output.pop("effort", None), output.pop("format", None)
    if effort is not None:
        params["reasoning_effort"] = effort
    if output:
        params["output_config"] = output
    return params, _parse_format(form)


def _parse_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    fields = as_fields(value)
    schema = fields.get("schema")
    if fields.get("type") != "json_schema" or not isinstance(schema, dict):
        raise invalid_request(
            f"output_config.format is {show(value)}.", "Use json_schema with a schema."
        )
    named: dict[str, Any] = {"name": "answer", "schema": schema, "strict": True}
    return {"type": "json_schema", "json_schema": named}


class MessagesConversation(TurnConversation):
    """Results are blocks of what the user says next."""

    key = "messages"
    part_key = "content"
    model_role = "assistant"

    def is_result(self, part: Item) -> bool:
        """Tell whether a part is the result of a call."""
        return part.get("type") == "tool_result"

    def result_id(self, part: Item) -> Any:
        """Return the id of the call that a result names."""
        return part.get("tool_use_id")

    def call_keys(self, call: Call) -> tuple[str, ...]:
        """Return what a result may name a call by."""
        return (str(call.given_id),)

    def result_keys(self, part: Item) -> tuple[str, ...]:
        """Return what a result names its call by, the best first."""
        return (str(part.get("tool_use_id")),)

    def name_result(self, part: Item, call: Call) -> Item:
        """Return a result with the id that its call has now."""
        return part if call.id == call.given_id else {**part, "tool_use_id": call.id}

    def make_result(self, call: Call) -> Item:
        """Return the result of a call that has none."""
        content = self._missing_result(call.name)
        named = {"type": "tool_result", "tool_use_id": call.id}
        return {**named, "content": content, "is_error": True}

    def tell_result(self, part: Item) -> Item:
        """Return a result without a call as text."""
        content = part.get("content")
        text = content if isinstance(content, str) else encode_text(content)
        return {"type": "text", "text": tell_lost_result(part.get("tool_use_id"), text)}

    def repair_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        """Return a part with its call repaired, and the call if it is one."""
        if part.get("type") != "tool_use":
            return part, None
        given = part.get("id")
        call = Call(given, self._take_id(given, f"{place}/id"), str(part.get("name") or ""))
        value = self._repair_object(part.get("input"), f"{place}/input")
        if value is not None:
            part = {**part, "input": value}
        return part if call.id == given else {**part, "id": call.id}, call

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        blocks = map(as_fields, as_list(item.get("content")))
        yield from (block for block in blocks if block.get("type") == "tool_use")
