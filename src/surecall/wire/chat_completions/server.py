"""What a client sends, understood as records: its messages and its request."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast, get_args

from surecall.base.errors import JSONTextError, RequestError, did_you_mean
from surecall.base.json_values import as_fields, as_list, other_fields, pick_fields
from surecall.base.records import Message, ModelRequest, Role, ToolCall, ToolSpec, WireRequest
from surecall.text import decode, encode_text
from surecall.wire.conversation import (
    MOVE_RESULT,
    Call,
    Conversation,
    FindEcho,
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
    parse_switch,
    parse_tools,
    show,
)

_ROLES: Final = frozenset[str](get_args(Role))
_KNOWN_FIELDS: Final = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_HISTORY_CALL_FIELDS: Final = frozenset({"id", "type", "function", "index"})


def parse_history_message(item: Any) -> Message:
    """Turn what a caller put into the history into a `Message`.

    Args:
        item: A `Message`, a mapping in the chat completions shape, an object with `role` and
            `content`, or plain text, which is taken as the user's.

    Raises:
        RequestError: `INVALID_MESSAGE`, when it is none of these.
    """
    if isinstance(item, Message):
        return item
    if isinstance(item, str):
        return Message("user", item)
    fields = _message_fields(item)
    role = fields.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        suggestion = 'Write it like {"role": "user", "content": "Hello"}.'
        if isinstance(role, str):
            suggestion = did_you_mean(role, _ROLES)
        has = "no role" if role is None else f"the role {show(role)}"
        raise invalid_message(f"A message has {has}.", suggestion)
    call_id = _text_field(fields, "tool_call_id", role)
    if role == "tool" and not call_id:
        raise invalid_message(
            "A tool message has no tool_call_id.", "Name the call that this message answers."
        )
    return Message(
        role=cast("Role", role),
        content=_history_content(fields.get("content"), role),
        tool_calls=_history_calls(fields.get("tool_calls"), role),
        tool_call_id=call_id,
        name=_text_field(fields, "name", role),
        extra=other_fields(fields, _KNOWN_FIELDS),
    )


def _message_fields(item: Any) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(cast("Mapping[str, Any]", item))
    dump = getattr(item, "model_dump", None)
    if callable(dump):
        return cast("dict[str, Any]", dump(exclude_none=True))
    if hasattr(item, "role") and hasattr(item, "content"):
        return {key: getattr(item, key) for key in sorted(_KNOWN_FIELDS) if hasattr(item, key)}
    raise invalid_message(
        f"A value of type {type(item).__name__} is not a message.",
        "Use a Message, a dict with role and content, or plain text for the user.",
    )


def _history_content(content: Any, role: str) -> str | list[dict[str, Any]] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        parts = list(cast("list[Any]", content))
        if all(isinstance(part, dict) for part in parts):
            return parts
    raise invalid_message(
        f"The content of the {role} message is {show(content)}.",
        "Use text, a list of part objects, or null.",
    )


def _text_field(fields: dict[str, Any], key: str, role: str) -> str | None:
    value = fields.get(key)
    if value is None or isinstance(value, str):
        return value
    raise invalid_message(f"The {key} of the {role} message is {show(value)}.", "Use text.")


def _history_calls(calls: Any, role: str) -> tuple[ToolCall, ...]:
    if not calls:
        return ()
    if role != "assistant" or not isinstance(calls, list | tuple):
        raise invalid_message(
            f"The {role} message has tool_calls {show(calls)}.",
            "Only an assistant message has tool_calls, as a list.",
        )
    return tuple(_history_call(call) for call in cast("list[Any]", calls))


def _history_call(item: Any) -> ToolCall:
    if isinstance(item, ToolCall):
        return item
    call = _members(item, ("id", "function"))
    function = _members(call.get("function"), ("name", "arguments"))
    call_id, name = call.get("id"), function.get("name")
    if not isinstance(call_id, str) or not call_id or not isinstance(name, str):
        raise invalid_message(
            f"A tool call in the history is {show(item)}.",
            "It needs an id and a function with name and arguments.",
        )
    raw = function.get("arguments")
    if isinstance(raw, str) and not raw.strip():
        raw = None
    arguments = _history_arguments(raw)
    return ToolCall(
        id=call_id,
        name=name,
        arguments=arguments,
        raw=raw,
        state="unreadable" if arguments is None else "whole",
        extra=other_fields(call, _HISTORY_CALL_FIELDS),
    )


def _history_arguments(raw: Any) -> dict[str, Any] | None:
    if raw is None:
        return {}
    if isinstance(raw, str):
        try:
            raw = decode(raw)
        except JSONTextError:
            return None
    return as_fields(raw) if isinstance(raw, dict) else None


def _members(item: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if isinstance(item, Mapping):
        return dict(cast("Mapping[str, Any]", item))
    return {name: getattr(item, name, None) for name in names}


_OWN_FIELDS: Final = frozenset(
    {
        "function_call",
        "functions",
        "messages",
        "model",
        "parallel_tool_calls",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)
_CHOICES: Final[Mapping[str, str]] = {
    "any": "required",
    "auto": "auto",
    "none": "none",
    "required": "required",
}


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; fields that are not about structure become `params`.

    `stream_options` are left out: usage is asked for with every stream.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong.
    """
    body = request.body
    model = parse_model(body)
    field = "tool_choice" if body.get("tool_choice") is not None else "function_call"
    tools, choice = parse_choice(body.get(field), _CHOICES, _parse_tools(body), field)
    return ModelRequest(
        model=model,
        messages=_parse_messages(body.get("messages")),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parse_switch(body, "parallel_tool_calls"),
        response_format=_parse_response_format(body.get("response_format")),
        params=_parse_params(body),
        stream=request.stream or bool(parse_switch(body, "stream")),
    )


def _parse_params(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other settings; that text is wanted need not be said."""
    params = other_fields(body, _OWN_FIELDS)
    if params.get("modalities") == ["text"]:
        del params["modalities"]
    return params


def _parse_messages(items: Any) -> tuple[Message, ...]:
    messages: list[Message] = []
    legacy_id: str | None = None
    items = parse_items(items, "messages", "Send a list with at least one message.")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise invalid_request(
                f"messages[{index}] is {show(item)}.", "Each message is an object."
            )
        fields, legacy_id = _modern(as_fields(item), index, legacy_id)
        try:
            messages.append(parse_history_message(fields))
        except RequestError as error:
            message = f"messages[{index}]: {error.message}"
            raise RequestError(error.code, message, hint=error.hint) from error
    return tuple(messages)


def _modern(
    fields: dict[str, Any], index: int, legacy_id: str | None
) -> tuple[dict[str, Any], str | None]:
    """Write the older `function_call` and its result as the call and the result they are."""
    call = fields.get("function_call")
    if fields.get("role") == "assistant" and isinstance(call, dict):
        rest = {key: value for key, value in fields.items() if key != "function_call"}
        if rest.get("tool_calls"):
            return rest, None
        call_id = f"call_{index}"
        entry = {"id": call_id, "type": "function", "function": as_fields(call)}
        return {**rest, "tool_calls": [entry]}, call_id
    if fields.get("role") == "function":
        if legacy_id is None:
            raise invalid_message(
                f"messages[{index}] is the result of a function that was not called.",
                "Put it directly after the assistant message with its function_call.",
            )
        rest = {key: value for key, value in fields.items() if key != "name"}
        return {**rest, "role": "tool", "tool_call_id": legacy_id}, None
    return fields, None


def _parse_tools(body: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    if body.get("tools") is not None:
        return parse_tools(body["tools"], _parse_tool)

    def parse_legacy(function: dict[str, Any], place: str) -> ToolSpec:
        return parse_function(function, place, pick_fields(function, ("strict", "cache_control")))

    return parse_tools(body.get("functions"), parse_legacy, "functions")


def _parse_tool(tool: dict[str, Any], place: str) -> ToolSpec:
    kind, function = tool.get("type", "function"), as_fields(tool.get("function"))
    if kind != "function":
        raise invalid_request(
            f"{place} is a tool of type {show(kind)}.", "Only function tools can be carried."
        )
    extra = pick_fields(function, ("strict",)) | pick_fields(tool, ("cache_control",))
    return parse_function(function, place, extra)


def _parse_response_format(value: Any) -> dict[str, Any] | None:
    fields = as_fields(value)
    if value is not None and not isinstance(fields.get("type"), str):
        raise invalid_request(f"response_format is {show(value)}.", "Use an object with a type.")
    return None if value is None or fields["type"] == "text" else fields


class ChatConversation(Conversation):
    """Results are messages of their own, directly behind the message with their calls."""

    key = "messages"

    def _repair_items(self) -> list[Any]:
        mended: list[Any] = []
        taken: set[int] = set()
        for at, entry in enumerate(self._items):
            item = as_fields(entry)
            if item.get("role") == "assistant" and as_list(item.get("tool_calls")):
                item, calls = self._repair_calls(item, f"/{at}")
                mended += [item, *self._find_results(calls, at + 1, taken)]
            elif item.get("role") != "tool":
                mended.append(entry)
            elif at not in taken:
                self._note_lost(item.get("tool_call_id"), f"/{at}")
                mended.append(_tell_chat(item))
        return mended

    def _find_results(self, calls: list[Call], start: int, taken: set[int]) -> list[Any]:
        """Return the results of the calls of one message, with those that are missing."""
        found: list[Any] = []
        searched = list(calls)
        is_near = True
        for at in range(start, len(self._items)):
            if not searched:
                break
            item = as_fields(self._items[at])
            if item.get("role") != "tool":
                is_near = False
                again = [as_fields(call).get("id") for call in as_list(item.get("tool_calls"))]
                searched = [call for call in searched if call.given_id not in again]
                continue
            given = item.get("tool_call_id")
            call = next((call for call in searched if call.given_id == given), None)
            if call is None or at in taken:
                continue
            taken.add(at)
            searched.remove(call)
            calls = [other for other in calls if other != call]
            if not is_near:
                self._note(MOVE_RESULT, f"/{at}", "behind another message", "behind its call")
            found.append(item if call.id == given else {**item, "tool_call_id": call.id})
        for call in calls:
            self._note_missing(call, f"/{start}")
            content = self._missing_result(call.name)
            found.append({"role": "tool", "tool_call_id": call.id, "content": content})
        return found

    def _repair_calls(self, item: Item, place: str) -> tuple[Item, list[Call]]:
        before = as_list(item.get("tool_calls"))
        entries = list(before)
        calls: list[Call] = []
        for at, entry in enumerate(before):
            if not isinstance(entry, dict):
                continue
            call, here = as_fields(entry), f"{place}/tool_calls/{at}"
            given, function = call.get("id"), as_fields(call.get("function"))
            calls.append(Call(given, self._take_id(given, here), str(function.get("name") or "")))
            if calls[-1].id != given:
                call = {**call, "id": calls[-1].id}
            text = self._repair_text(function.get("arguments"), here) if function else None
            if text is not None:
                call = {**call, "function": {**function, "arguments": text}}
            entries[at] = call
        same = all(new is old for new, old in zip(entries, before, strict=True))
        return item if same else {**item, "tool_calls": entries}, calls

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        yield from map(as_fields, as_list(item.get("tool_calls")))

    def results_in(self, item: Item) -> Iterator[tuple[Any, Item]]:
        """Yield the result that a message is."""
        if item.get("role") == "tool":
            yield item.get("tool_call_id"), item

    def has_results(self) -> bool:
        """Tell whether there are any results of tools."""
        return any(as_fields(item).get("role") in ("tool", "function") for item in self._items)

    def ends_with_results(self) -> bool:
        """Tell whether the last message is the result of a tool."""
        return bool(self._items) and as_fields(self._items[-1]).get("role") in ("tool", "function")

    def restore(self, item: Item, find: FindEcho, *, with_reasoning: bool) -> Item:
        """Return a message with what was left out put back."""
        if item.get("role") != "assistant":
            return item
        calls: list[Any] = []
        around: dict[str, Any] = {}
        for entry in as_list(item.get("tool_calls")):
            call = as_fields(entry)
            function = as_fields(call.get("function"))
            name, arguments = str(function.get("name")), function.get("arguments")
            found = find(str(call.get("id")), name, arguments)
            around = around or (found[0] if found else {})
            calls.append({**found[1], **call} if found and found[1] else entry)
        if calls == as_list(item.get("tool_calls")) and not around:
            return item
        mended = {**item, "tool_calls": calls}
        return {**around, **mended} if with_reasoning else mended


def _tell_chat(item: Item) -> Item:
    content, call_id = item.get("content"), item.get("tool_call_id")
    if isinstance(content, list):
        head = {"type": "text", "text": tell_lost_result(call_id, "")}
        return {"role": "user", "content": [head, *as_list(content)]}
    text = content if isinstance(content, str) else encode_text(content)
    return {"role": "user", "content": tell_lost_result(call_id, text)}
