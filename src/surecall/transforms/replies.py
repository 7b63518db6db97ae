"""Transforms of an assistant message as it arrived, before it is parsed."""

from typing import Any, cast

from surecall.errors import JSONTextError
from surecall.jsontext import encode_text
from surecall.records import Receipt, clip

from .tags import CLOSER, OPENER, find_tags, parse_payload

__all__ = [
    "WireMessage",
    "assistant_content_tool_call_tags_to_tool_calls",
    "assistant_function_call_to_tool_calls",
    "assistant_tool_calls_arguments_json_string_if_hash",
    "assistant_tool_calls_object_to_array",
]

WireMessage = dict[str, Any]
Changed = tuple[WireMessage, tuple[Receipt, ...]]


def assistant_function_call_to_tool_calls(message: WireMessage) -> Changed:
    """Turn a legacy `function_call` into one tool call, unless there are tool calls already."""
    function = _legacy_call(message)
    if function is None or _has_tool_calls(message):
        return message, ()
    arguments = _text_of(function.get("arguments"))
    if arguments is None:
        return message, ()
    call = _wire_call("call_1", function["name"], arguments)
    receipt = Receipt(
        rule="assistant_function_call_to_tool_calls",
        place="/function_call",
        before=function["name"],
        after=call["id"],
        why="the call came in the legacy field",
    )
    rest = {key: value for key, value in message.items() if key != "function_call"}
    return {**rest, "tool_calls": [call]}, (receipt,)


def assistant_tool_calls_object_to_array(message: WireMessage) -> Changed:
    """Put a lone tool call object into a list."""
    calls = message.get("tool_calls")
    if not isinstance(calls, dict) or not calls:
        return message, ()
    receipt = Receipt(
        rule="assistant_tool_calls_object_to_array",
        place="/tool_calls",
        before="object",
        after="array of one object",
        why="one call came without its list",
    )
    return {**message, "tool_calls": [calls]}, (receipt,)


def assistant_tool_calls_arguments_json_string_if_hash(message: WireMessage) -> Changed:
    """Turn arguments that came as an object or array into JSON text."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message, ()
    receipts: list[Receipt] = []
    result: list[Any] = []
    for index, call in enumerate(cast("list[Any]", calls)):
        text = _structured_arguments_text(call)
        if text is not None:
            arguments: Any = call["function"]["arguments"]
            receipts.append(
                Receipt(
                    rule="assistant_tool_calls_arguments_json_string_if_hash",
                    place=f"/tool_calls/{index}/function/arguments",
                    before="object" if isinstance(arguments, dict) else "array",
                    after=clip(text),
                    why="arguments came as JSON instead of text",
                )
            )
            call = {**call, "function": {**call["function"], "arguments": text}}
        result.append(call)
    return ({**message, "tool_calls": result}, tuple(receipts)) if receipts else (message, ())


def assistant_content_tool_call_tags_to_tool_calls(message: WireMessage) -> Changed:
    """Turn `<tool_call>` tags in the content into tool calls, when there are no others.

    Every tag is cut from the content once one of them is usable; tags that are not usable leave
    a receipt that is not lossless.
    """
    content = message.get("content")
    if not isinstance(content, str) or _has_tool_calls(message) or _legacy_call(message):
        return message, ()
    calls: list[WireMessage] = []
    receipts: list[Receipt] = []
    kept: list[str] = []
    position = 0
    for tag in find_tags(content):
        found = parse_payload(content[tag.start + len(OPENER) : tag.end - len(CLOSER)])
        if found:
            calls.append(_wire_call(f"tag_call_{len(calls) + 1}", found.name, found.arguments))
        receipts.append(
            Receipt(
                rule="assistant_content_tool_call_tags_to_tool_calls",
                place=f"{tag.start}:{tag.end}",
                before=clip(content[tag.start : tag.end]),
                after=calls[-1]["id"] if found else None,
                lossless=found is not None,
                why="the call was written as text" if found else "the tag holds no readable call",
            )
        )
        kept.append(content[position : tag.start])
        position = tag.end
    if not calls:
        return message, ()
    kept.append(content[position:])
    text = "".join(kept).strip()
    return {**message, "content": text, "tool_calls": calls}, tuple(receipts)


def _has_tool_calls(message: WireMessage) -> bool:
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return any(isinstance(call, dict) and call != {} for call in cast("list[Any]", calls))
    return isinstance(calls, dict) and calls != {}


def _legacy_call(message: WireMessage) -> WireMessage | None:
    function = message.get("function_call")
    if not isinstance(function, dict):
        return None
    function = cast("WireMessage", function)
    name = function.get("name")
    return function if isinstance(name, str) and name.strip() else None


def _wire_call(call_id: str, name: str, arguments: str) -> WireMessage:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _structured_arguments_text(call: Any) -> str | None:
    if not isinstance(call, dict):
        return None
    function = cast("WireMessage", call).get("function")
    if not isinstance(function, dict):
        return None
    arguments = cast("WireMessage", function).get("arguments")
    return _text_of(arguments) if isinstance(arguments, dict | list) else None


def _text_of(arguments: Any) -> str | None:
    """Return arguments as text; `None` when they cannot be written as JSON."""
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return arguments
    try:
        return encode_text(arguments)
    except JSONTextError:
        return None
