"""What a client sends, understood as records: its contents and its request."""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from surecall.base.json_values import as_fields, as_list, other_fields, text_or_none
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.text import decode, encode_text
from surecall.wire.conversation import (
    Call,
    FindEcho,
    Item,
    TurnConversation,
    tell_lost_result,
)
from surecall.wire.server import (
    invalid_message,
    invalid_request,
    parse_description,
    parse_items,
    parse_role,
    show,
)

from .parts import known_members, member, own_name, parse_part, parse_response
from .requests import parse_choice, parse_config, parse_schema

_ROLES: Final = ("function", "model", "user")
_Placed: TypeAlias = tuple[dict[str, Any], str]
"""A part, and the place of it in the request."""


def _parse_instruction(instruction: Any) -> list[Message]:
    """Turn the system instruction into a message, if there is one."""
    if isinstance(instruction, str):
        return [Message("system", instruction)]
    parts = [_parse_said(item, "systemInstruction") for item in _parts(instruction)]
    return [Message("system", _content(parts))] if parts else []


def _parse_contents(contents: Any) -> list[Message]:
    """Turn contents into messages; each result becomes one of its own.

    Contents of the model that follow each other are one turn: with calls in it, it becomes one
    message, since results have to be directly behind the message with their calls.

    Calls without an id are given one, and results without one answer the first call of the turn
    before that has their name and no result yet.

    Raises:
        RequestError: `INVALID_MESSAGE`, naming the place of what is wrong.
    """
    if isinstance(contents, dict):
        contents = [contents]
    items = parse_items(contents, "contents", "Send a list with at least one content.")
    return _Conversation().parse(items)


class _Conversation:
    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._open: list[tuple[str, str]] = []
        self._numbered = 0

    def parse(self, contents: list[Any]) -> list[Message]:
        turn: list[_Placed] = []
        """The model's parts from the first content with calls on."""
        for index, item in enumerate(contents):
            place = f"contents[{index}]"
            content = as_fields(item)
            role = parse_role(content.get("role") or "user", _ROLES, place)
            parts = [(part, f"{place}.parts[{at}]") for at, part in enumerate(_parts(content))]
            if role != "model":
                self._end_turn(turn)
                self._take_user(parts)
            elif turn or any(member(part, "functionCall") for part, _ in parts):
                turn += parts
            else:
                self._take_model(parts)
        self._end_turn(turn)
        return self._messages

    def _end_turn(self, turn: list[_Placed]) -> None:
        if turn:
            self._take_model(turn)
            turn.clear()

    def _take_user(self, parts: list[_Placed]) -> None:
        """Add the results of a turn first, then what the user says."""
        said: list[dict[str, Any]] = []
        has_results = False
        for part, here in parts:
            response = member(part, "functionResponse")
            if isinstance(response, dict):
                has_results = True
                self._messages.append(self._parse_result(as_fields(response), here))
            else:
                said.append(_parse_said(part, here))
        if said or not has_results:
            self._messages.append(Message("user", _content(said)))

    def _parse_result(self, response: dict[str, Any], place: str) -> Message:
        name, call_id = response.get("name"), response.get("id")
        name = own_name(name) if isinstance(name, str) else ""
        if not isinstance(call_id, str) or not call_id:
            call_id = next((held for held, called in self._open if called == name), None)
            if call_id is None:
                raise invalid_message(
                    f"{place} is the result of {name!r}, which was not called.",
                    "Put it after the content with its functionCall.",
                )
        self._open = [entry for entry in self._open if entry[0] != call_id]
        text, is_error = parse_response(response.get("response") or {})
        extra = {"is_error": True} if is_error else {}
        shown = [_parse_said(part, place) for part in _parts(response)]
        content: Any = [{"type": "text", "text": text}, *shown] if shown else text
        return Message("tool", content, tool_call_id=call_id, extra=extra)

    def _take_model(self, parts: list[_Placed]) -> None:
        said: list[dict[str, Any]] = []
        thoughts: list[str] = []
        calls: list[ToolCall] = []
        extra: dict[str, Any] = {}
        self._open = []
        for part, here in parts:
            signature = member(part, "thoughtSignature")
            call = member(part, "functionCall")
            if isinstance(call, dict):
                calls.append(self._parse_call(as_fields(call), signature, here))
                continue
            if text_or_none(signature):
                extra["thought_signature"] = signature
            if part.get("thought") is True:
                thoughts += [part["text"]] if isinstance(part.get("text"), str) else []
            elif part.get("text") != "":
                said.append(_parse_said(part, here))
        if thoughts:
            extra["reasoning_content"] = "".join(thoughts)
        content: Any = said
        if all(part["type"] == "text" for part in said):
            content = "".join(part["text"] for part in said) or None
        self._messages.append(Message("assistant", content, tuple(calls), extra=extra))

    def _parse_call(self, call: dict[str, Any], signature: Any, place: str) -> ToolCall:
        name, args, call_id = call.get("name"), call.get("args"), call.get("id")
        if not isinstance(name, str) or not name:
            raise invalid_message(f"{place} is a call of {show(name)}.", "Name the function.")
        if args is not None and not isinstance(args, dict):
            raise invalid_message(f"{place} has the args {show(args)}.", "Use an object.")
        if not isinstance(call_id, str) or not call_id:
            self._numbered += 1
            call_id = f"call_{self._numbered}"
        name = own_name(name)
        self._open.append((call_id, name))
        extra = {"thought_signature": signature} if text_or_none(signature) else {}
        arguments = as_fields(args)
        return ToolCall(id=call_id, name=name, arguments=arguments, raw=arguments, extra=extra)


def _parts(content: Any) -> list[dict[str, Any]]:
    return [as_fields(part) for part in as_list(as_fields(content).get("parts"))]


def _parse_said(part: dict[str, Any], place: str) -> dict[str, Any]:
    found = parse_part(part)
    if found is None:
        kinds = ", ".join(sorted(part)) or "empty"
        raise invalid_message(f"{place} is {kinds}.", "Send text, inlineData or fileData.")
    return found


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return plain text where nothing more was said, since more servers take that."""
    if not parts:
        return ""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


_OWN_FIELDS: Final = known_members(
    "contents", "generationConfig", "model", "systemInstruction", "toolConfig", "tools"
)
_STREAMED: Final = "streamGenerateContent"


def parse_request(request: WireRequest) -> ModelRequest:
    """Understand a request; the model and whether it streams are in its path.

    Raises:
        RequestError: `INVALID_MESSAGE` or `INVALID_REQUEST`, naming the field that is wrong.
    """
    body = request.body
    model, method = _parse_path(request.path)
    model = model or str(body.get("model") or "").removeprefix("models/")
    if not model:
        raise invalid_request("The path names no model.", "Use /models/NAME:generateContent.")
    params, response_format = parse_config(as_fields(member(body, "generationConfig")))
    params |= other_fields(body, _OWN_FIELDS)
    tools = parse_tools(body.get("tools"))
    choice, allowed = parse_choice(as_fields(member(body, "toolConfig")))
    if allowed is not None:
        tools = tuple(tool for tool in tools if tool.name in allowed)
    messages = _parse_contents(body.get("contents"))
    instruction = _parse_instruction(member(body, "systemInstruction"))
    return ModelRequest(
        model=model,
        messages=(*instruction, *messages),
        tools=tools,
        tool_choice=choice if tools else None,
        response_format=response_format,
        params=params,
        stream=request.stream or method == _STREAMED,
    )


def _parse_path(path: str) -> tuple[str, str]:
    """Return the model and the method that a path names."""
    plain = unquote(path.partition("?")[0])
    name, _, method = plain.rpartition(":")
    _, found, model = name.partition("/models/")
    if not found:
        model = name.strip("/")
    return model, method


def parse_tools(items: Any) -> tuple[ToolSpec, ...]:
    """Return the functions that tools declare."""
    if items is None:
        return ()
    if isinstance(items, dict):
        items = [items]
    if not isinstance(items, list):
        raise invalid_request(f"tools is {show(items)}.", "Send a list of tools.")
    tools: list[ToolSpec] = []
    for index, item in enumerate(as_list(items)):
        declared = member(as_fields(item), "functionDeclarations")
        if not isinstance(declared, list):
            kinds = ", ".join(sorted(as_fields(item))) or show(item)
            raise invalid_request(
                f"tools[{index}] is {kinds}.", "Only function declarations can be carried."
            )
        tools += [
            _parse_tool(tool, f"tools[{index}].functionDeclarations[{number}]")
            for number, tool in enumerate(as_list(declared))
        ]
    return tuple(tools)


def _parse_tool(item: Any, place: str) -> ToolSpec:
    fields = as_fields(item)
    name, description = parse_description(fields, place)
    schema = member(fields, "parametersJsonSchema")
    if schema is None and fields.get("parameters") is not None:
        schema = parse_schema(fields["parameters"])
    return ToolSpec(name=own_name(name), description=description, parameters=as_fields(schema))


class GeminiConversation(TurnConversation):
    """Calls need no id here: a result answers the first open call of its name."""

    key = "contents"
    part_key = "parts"
    model_role = "model"
    said_key = "response"

    def is_result(self, part: Item) -> bool:
        """Tell whether a part is the result of a call."""
        return "functionResponse" in part or "function_response" in part

    def result_id(self, part: Item) -> Any:
        """Return the id of the call that a result names."""
        response = _response_in(part)
        return response.get("id") or response.get("name")

    def call_keys(self, call: Call) -> tuple[str, ...]:
        """Return what a result may name a call by."""
        return (f"id {call.id}", f"name {call.name}") if call.id else (f"name {call.name}",)

    def result_keys(self, part: Item) -> tuple[str, ...]:
        """Return what a result names its call by, the best first."""
        response = _response_in(part)
        named = (f"name {response.get('name')}",)
        return (f"id {response['id']}", *named) if response.get("id") else named

    def name_result(self, part: Item, call: Call) -> Item:
        """Return a result with the id that its call has now."""
        return part

    def make_result(self, call: Call) -> Item:
        """Return the result of a call that has none."""
        response: Item = {"name": call.name, "response": decode(self._missing_result(call.name))}
        return {"functionResponse": {"id": call.id, **response} if call.id else response}

    def tell_result(self, part: Item) -> Item:
        """Return a result without a call as text."""
        text = encode_text(_response_in(part).get("response"))
        return {"text": tell_lost_result(self.result_id(part), text)}

    def repair_call(self, part: Item, place: str) -> tuple[Item, Call | None]:
        """Return a part with its call repaired, and the call if it is one."""
        key = "functionCall" if "functionCall" in part else "function_call"
        if not isinstance(part.get(key), dict):
            return part, None
        fields = as_fields(part[key])
        call_id, name = fields.get("id"), str(fields.get("name") or "")
        call_id = call_id if isinstance(call_id, str) else ""
        value = None
        if fields.get("args") is not None:
            value = self._repair_object(fields["args"], f"{place}/{key}/args")
        if value is not None:
            part = {**part, key: {**fields, "args": value}}
        return part, Call(call_id, call_id, name)

    def result_in(self, part: Item) -> Item:
        """Return the object of a part that says the result."""
        return _response_in(part)

    def calls_in(self, item: Item) -> Iterator[Item]:
        """Yield the calls of an item."""
        for entry in as_list(item.get("parts")):
            part = as_fields(entry)
            call = part.get("functionCall") or part.get("function_call")
            if isinstance(call, dict):
                yield as_fields(call)

    def restore(self, item: Item, find: FindEcho, *, with_reasoning: bool) -> Item:
        """Return a content with the signatures that were left out put back."""
        if item.get("role") != "model":
            return item
        parts: list[Any] = []
        for entry in as_list(item.get("parts")):
            part = as_fields(entry)
            call = as_fields(part.get("functionCall"))
            signed = "thoughtSignature" in part or "thought_signature" in part
            found = None
            if call and not signed:
                name, call_id = str(call.get("name")), str(call.get("id") or "")
                found = find(call_id, name, call.get("args") or {})
            signature = found[1].get("thought_signature") if found else None
            parts.append({**part, "thoughtSignature": signature} if signature else entry)
        return item if parts == as_list(item.get("parts")) else {**item, "parts": parts}


def _response_in(part: Item) -> Item:
    return as_fields(part.get("functionResponse") or part.get("function_response"))
