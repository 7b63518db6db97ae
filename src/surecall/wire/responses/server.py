"""What a client sends, understood as records: the items of its input and its request.

What the model made between two inputs is one turn: its reasoning, its text and its calls become
one assistant message. A result may be anywhere behind its call, and becomes a message directly
behind that of its call. Reasoning that nothing follows stays with the turn it ended; without a turn
it is left out, as it is when a request is rendered.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from surecall.base.errors import Code, RequestError
from surecall.base.json_values import as_fields, as_list, other_fields, pick_fields
from surecall.base.records import Message, ModelRequest, Role, ToolSpec, WireRequest
from surecall.text import encode_text
from surecall.wire.chat_completions import parse_history_message
from surecall.wire.conversation import (
    Call,
    Conversation,
    Item,
    tell_lost_result,
)
from surecall.wire.server import (
    invalid_message,
    invalid_request,
    parse_choice,
    parse_function,
    parse_items,
    parse_model,
    parse_object,
    parse_role,
    parse_switch,
    parse_tools,
    show,
)

from .content import OWN_REASONING_ID, mark_places, parse_content, reasoning_parts

_ROLES: Final = ("assistant", "developer", "system", "user")
_CALL_FIELDS: Final = frozenset({"arguments", "call_id", "id", "name", "status", "type"})


def _parse_input(value: Any) -> list[Message]:
    """Understand the input: text of the user, or a list of items.

    Raises:
        RequestError: `INVALID_MESSAGE` for an item that cannot be understood, `STATE_NOT_KEPT` for
            one that stands for something a server would have to remember.
    """
    if isinstance(value, str):
        return [Message("user", value)]
    items = parse_items(value, "input", "Send text, or a list with at least one item.")
    reader = _InputReader()
    for index, item in enumerate(items):
        place = f"input[{index}]"
        try:
            reader.read(item, place)
        except RequestError as error:
            if error.message.startswith(place):
                raise
            message = f"{place}: {error.message}"
            raise RequestError(error.code, message, hint=error.hint) from error
    return reader.close()


def _state_not_kept(what: str) -> RequestError:
    """Return the refusal of what only a server with a memory could answer."""
    return RequestError(
        Code.STATE_NOT_KEPT,
        f"{what} refers to something a server would have to remember; nothing is stored here.",
        hint="Stateless: send the whole input with every request.",
    )


class _InputReader:
    def __init__(self) -> None:
        self._groups: list[list[Message]] = []
        """Messages, each with the results of its calls behind it."""
        self._waiting: dict[str, list[Message]] = {}
        """Where the result of a call belongs, by the id of the call."""
        self._turn: _Turn | None = None
        self._pending: list[dict[str, Any]] = []

    def read(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            raise invalid_message(f"{place} is {show(value)}.", "Each item is an object.")
        item = as_fields(value)
        kind = item.get("type")
        if kind is None:
            kind = "message" if "role" in item else "item_reference"
        if kind == "reasoning":
            self._pending.append(item)
        elif kind == "function_call":
            self._turn = self._turn or _Turn()
            self._turn.add_call(item, self._take_pending())
        elif kind == "function_call_output":
            self._add_result(_parse_result(item, place))
        elif kind == "message":
            self._read_message(item, place)
        elif kind == "item_reference":
            raise _state_not_kept(f"{place}, an item that is only named,")
        else:
            raise invalid_message(
                f"{place} is an item of type {show(kind)}.",
                "Only messages, reasoning, function calls and their outputs can be carried.",
            )

    def close(self) -> list[Message]:
        self._end_turn()
        return [message for group in self._groups for message in group]

    def _read_message(self, item: dict[str, Any], place: str) -> None:
        role = parse_role(item.get("role"), _ROLES, place)
        content = parse_content(item.get("content"), f"{place}.content")
        if role != "assistant":
            self._add(Message(cast("Role", role), content))
            return
        if self._turn is not None and self._turn.contents and not self._turn.calls:
            reasoning = self._take_pending()
            self._end_turn()
            self._pending = reasoning
        self._turn = self._turn or _Turn()
        self._turn.add_text(content, item.get("phase"), self._take_pending())

    def _add(self, message: Message) -> None:
        self._end_turn()
        self._groups.append([message])

    def _add_result(self, message: Message) -> None:
        self._end_turn()
        group = self._waiting.pop(message.tool_call_id or "", None)
        if group is None:
            self._groups.append([message])
        else:
            group.append(message)

    def _take_pending(self) -> list[dict[str, Any]]:
        pending, self._pending = self._pending, []
        return pending

    def _end_turn(self) -> None:
        pending = self._take_pending()
        if self._turn is not None:
            self._turn.items += pending
            message = self._turn.close()
            self._groups.append([message])
            self._waiting.update({call.id: self._groups[-1] for call in message.tool_calls})
        self._turn = None


class _Turn:
    """What the model made between two inputs."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.contents: list[str | list[dict[str, Any]] | None] = []
        self.calls: list[dict[str, Any]] = []
        self._phase: str | None = None

    def add_text(self, content: Any, phase: Any, reasoning: list[dict[str, Any]]) -> None:
        self.items += [*reasoning, {"type": "message"}]
        self.contents.append(content)
        self._phase = phase if isinstance(phase, str) else None

    def add_call(self, item: dict[str, Any], reasoning: list[dict[str, Any]]) -> None:
        self.items += [*reasoning, item]
        extra = {key: item[key] for key in item.keys() - _CALL_FIELDS if item[key] is not None}
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        call = {"id": item.get("call_id"), "function": function, **extra}
        parse_history_message({"role": "assistant", "tool_calls": [call]})  # refused where it is
        self.calls.append(call)

    def close(self) -> Message:
        content = _join_contents(self.contents)
        fields: dict[str, Any] = {"role": "assistant", "content": content}
        if self.calls:
            fields["tool_calls"] = self.calls
        if self._phase:
            fields["phase"] = self._phase
        fields |= _reasoning_fields(mark_places(self.items, has_text=bool(content)))
        return parse_history_message(fields)


def _parse_result(item: dict[str, Any], place: str) -> Message:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise invalid_message(
            f"{place} has the call_id {show(call_id)}.",
            "Name the call that this output answers.",
        )
    content = parse_content(item.get("output"), f"{place}.output")
    return Message("tool", content, tool_call_id=call_id)


def _join_contents(
    contents: list[str | list[dict[str, Any]] | None],
) -> str | list[dict[str, Any]] | None:
    """Return the content of a turn: text where text says it all, parts otherwise."""
    parts: list[dict[str, Any]] = []
    for content in contents:
        parts += [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    texts = [part.get("text") if part.get("type") == "text" else None for part in parts]
    if all(isinstance(text, str) for text in texts):
        return "".join(cast("list[str]", texts)) if contents else None
    refusals = [part.get("refusal") for part in parts if part.get("type") == "refusal"]
    if len(refusals) == len(parts) == 1 and isinstance(refusals[0], str):
        return refusals[0]
    return parts


def _reasoning_fields(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what a message keeps of its reasoning.

    Items made here from plain text go back to being text: no provider of this format knows them.
    """
    fields: dict[str, Any] = {}
    contents = [{"content": item.get("content")} for item in items]
    plain = [text for content in contents for text in reasoning_parts(content)]
    foreign = [item for item in items if not str(item.get("id")).startswith(OWN_REASONING_ID)]
    if foreign:
        fields["reasoning_items"] = foreign
    if plain:
        fields["reasoning_content"] = "\n\n".join(plain)
    return fields


_OWN_FIELDS: Final = frozenset(
    {
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "model",
        "parallel_tool_calls",
        "reasoning",
        "store",
        "stream",
        "stream_options",
        "text",
        "tool_choice",
        "tools",
    }
)
_STATE_FIELDS: Final = ("background", "conversation", "previous_response_id", "prompt")
_ENCRYPTED: Final = "reasoning.encrypted_content"
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "required"}
_TOOL_EXTRA: Final = ("allowed_callers", "async", "cache_control", "defer_loading", "output_schema")


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; fields that are not about structure become `params`.

    Parameters get the names they have in the records: `max_output_tokens` is `max_tokens`,
    `reasoning.effort` is `reasoning_effort`, and `text.format` is the response format.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong;
            `STATE_NOT_KEPT` for a request that leans on what a server remembers.
    """
    body = request.body
    for key in _STATE_FIELDS:
        if body.get(key):
            raise _state_not_kept(key)
    model = parse_model(body)
    tools = parse_tools(body.get("tools"), _parse_tool)
    tools, choice = parse_choice(body.get("tool_choice"), _CHOICES, tools)
    text = parse_object(body, "text")
    return ModelRequest(
        model=model,
        messages=(*_parse_instructions(body), *_parse_input(body.get("input"))),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parse_switch(body, "parallel_tool_calls"),
        response_format=_parse_format(text.get("format")),
        params=_parse_params(body, text),
        stream=request.stream or bool(parse_switch(body, "stream")),
    )


def _parse_instructions(body: Mapping[str, Any]) -> tuple[Message, ...]:
    instructions = body.get("instructions")
    if instructions is None:
        return ()
    if not isinstance(instructions, str):
        raise invalid_request(f"instructions is {show(instructions)}.", "Use text.")
    return (Message("system", instructions),)


def _parse_params(body: Mapping[str, Any], text: Mapping[str, Any]) -> dict[str, Any]:
    params = other_fields(body, _OWN_FIELDS)
    for key in _STATE_FIELDS:
        params.pop(key, None)
    if body.get("max_output_tokens") is not None:
        params["max_tokens"] = body["max_output_tokens"]
    reasoning = parse_object(body, "reasoning")
    if reasoning.get("effort") is not None:
        params["reasoning_effort"] = reasoning["effort"]
    left = {key: value for key, value in reasoning.items() if key != "effort" and value is not None}
    if left:
        params["reasoning"] = left
    if text.get("verbosity") is not None:
        params["verbosity"] = text["verbosity"]
    if parse_switch(body, "store"):
        params["store"] = True
    include = [item for item in as_list(body.get("include")) if item != _ENCRYPTED]
    if include:
        params["include"] = body["include"]
    return params


def _parse_tool(tool: dict[str, Any], place: str) -> ToolSpec:
    kind = tool.get("type")
    if kind != "function":
        raise invalid_request(
            f"{place} is a tool of type {show(kind)}.",
            "Only function tools can be carried; tools that the provider runs need the provider.",
        )
    tool = {**tool, **as_fields(tool.get("function"))}  # chat completions nest it
    extra = pick_fields(tool, _TOOL_EXTRA)
    if tool.get("strict") is True:
        extra["strict"] = True
    return parse_function(tool, place, extra)


def _parse_format(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    fields = as_fields(value)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise invalid_request(f"text.format is {show(value)}.", "Use an object with a type.")
    if kind == "text":
        return None
    if kind != "json_schema":
        return fields
    schema = {key: item for key, item in fields.items() if key != "type" and item is not None}
    return {"type": "json_schema", "json_schema": schema}


class ResponsesConversation(Conversation):
    """Calls and results are items; a result may be anywhere behind its call."""

    key = "input"
    id_key = "call_id"
    said_key = "output"

    def _repair_items(self) -> list[Any]:
        mended: list[Any] = []
        missing = self._find_unanswered()
        ids: dict[str, str] = {}
        waiting: list[Call] = []
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            kind = item.get("type")
            if waiting and kind not in ("function_call", "function_call_output"):
                mended += self._add_results(waiting, at)
                waiting = []
            if kind == "function_call":
                entry, call = self._repair_call(item, f"/{at}")
                ids[call.given_id if isinstance(call.given_id, str) else ""] = call.id
                waiting += [call] if at in missing else []
            elif kind == "function_call_output":
                entry = self._repair_result(item, ids, at)
            mended.append(entry)
        return mended + self._add_results(waiting, len(self._items))

    def _find_unanswered(self) -> set[int]:
        """Return the places of calls that have no result."""
        waiting: dict[Any, int] = {}
        missing: set[int] = set()
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            call_id = item.get("call_id")
            call_id = call_id if isinstance(call_id, str) else ""
            if item.get("type") == "function_call":
                if call_id in waiting:
                    missing.add(waiting[call_id])
                waiting[call_id] = at
            elif item.get("type") == "function_call_output":
                waiting.pop(call_id, None)
        return missing | set(waiting.values())

    def _repair_call(self, item: Item, place: str) -> tuple[Item, Call]:
        given = item.get("call_id")
        call = Call(given, self._take_id(given, place), str(item.get("name") or ""))
        text = self._repair_text(item.get("arguments"), f"{place}/arguments")
        if text is not None:
            item = {**item, "arguments": text}
        return item if call.id == given else {**item, "call_id": call.id}, call

    def _repair_result(self, item: Item, ids: dict[str, str], at: int) -> Item:
        given = item.get("call_id")
        if isinstance(given, str) and given in ids:
            call_id = ids.pop(given)
            return item if call_id == given else {**item, "call_id": call_id}
        if self._document.get("previous_response_id") or self._document.get("conversation"):
            return item  # the endpoint keeps the call
        self._note_lost(given, f"/{at}")
        output = item.get("output")
        text = output if isinstance(output, str) else encode_text(output)
        return {"type": "message", "role": "user", "content": tell_lost_result(given, text)}

    def _add_results(self, calls: list[Call], at: int) -> list[Any]:
        for call in calls:
            self._note_missing(call, f"/{at}")
        return [
            {
                "type": "function_call_output",
                "call_id": call.id,
                "output": self._missing_result(call.name),
            }
            for call in calls
        ]

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        if item.get("type") == "function_call":
            yield item

    def results_in(self, item: Item) -> Iterator[tuple[Any, Item]]:
        """Yield the result that an item is."""
        if item.get("type") == "function_call_output":
            yield item.get("call_id"), item

    def has_results(self) -> bool:
        """Tell whether there are any results of tools."""
        kinds = (str(as_fields(item).get("type")) for item in self._items)
        return any(kind.endswith("_call_output") for kind in kinds)

    def ends_with_results(self) -> bool:
        """Tell whether the last item is the result of a tool."""
        last = as_fields(self._items[-1]) if self._items else {}
        return last.get("type") == "function_call_output"
