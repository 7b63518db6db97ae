"""Calls whose native arguments were damaged on their way, in every wire format, and what runs."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from surecall.base.errors import SurecallError
from surecall.base.records import ToolSpec
from surecall.calls import ToolNames
from surecall.reading import read_reply
from surecall.reading.arguments import read_arguments
from surecall.wire import find_protocol

from .damage import damage, draw_arguments, split, write

__all__ = ["FORMS", "OUTCOMES", "DamagedArguments", "damaged_arguments", "judge"]

OUTCOMES = ("right", "refused", "likely", "strict", "WRONG")
"""Read as written; refused; at most likely; what a strict reader finds; and what must not be."""
_NAME: Final = "act"


class DamagedArguments(NamedTuple):
    """One reply with damaged arguments."""

    form: str
    kind: str
    arguments: dict[str, Any]
    schema: dict[str, Any]
    text: str
    """What is left of the arguments."""
    data: bytes
    """The reply that holds it."""


def damaged_arguments(form: str, seed: int, count: int) -> Iterator[DamagedArguments]:
    """Yield replies of one form, with damage of every kind."""
    chance = random.Random(f"{form} {seed}")
    made = 0
    while made < count:
        arguments = draw_arguments(chance)
        schema = _describe(arguments)
        if chance.random() < 0.5:
            schema["additionalProperties"] = False
        for kind, text in damage(chance, write(chance, arguments)):
            if made == count or not text.strip():  # without arguments it is another call
                continue
            made += 1
            if form == "gemini stream":  # an event is one line
                text = text.replace("\n", " ")
            data = FORMS[form](chance, text)
            yield DamagedArguments(form, kind, arguments, schema, text, data)


def judge(case: DamagedArguments) -> str:
    """Return what becomes of a reply, of which a tool with effects is called."""
    spec = ToolSpec(name=_NAME, effect="write", parameters=case.schema)
    protocol = find_protocol(case.form.partition(" ")[0])
    try:
        if case.form.endswith("stream"):
            folder = protocol.open_stream()
            folder.feed(case.data)
            raw = folder.close()
        else:
            raw = protocol.parse_body(case.data)
        calls = read_reply(protocol.parse_message(raw), tools=ToolNames([spec])).calls
    except SurecallError:
        return "refused"
    calls = [call for call in calls if call.name == _NAME]
    runs = [call for call in calls if call.state == "whole" and not call.errors]
    given = [call.arguments for call in runs if call.certainty == "certain"]
    if all(_is_same(one, case.arguments) for one in given) and len(given) < 2:
        return "right" if given else "likely" if runs else "refused"
    try:
        strict = json.loads(case.text)
    except ValueError:
        return "WRONG"
    fitted = read_arguments(strict, case.schema).value
    is_strict = all(_is_same(one, strict) or _is_same(one, fitted) for one in given)
    return "strict" if is_strict else "WRONG"


def _is_same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _describe(value: Any) -> dict[str, Any]:
    """Return a schema in which the value fits, and other values of its types."""
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {key: _describe(item) for key, item in value.items()},
        }
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    if isinstance(value, list):
        return {"type": "array"}
    return next(({"type": name} for kind, name in kinds if isinstance(value, kind)), {})


# Replies


def _events(events: list[dict[str, Any]], *, named: bool = False) -> bytes:
    lines = (
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    )
    return "".join(lines).encode()


def _in_place(body: dict[str, Any], text: str) -> bytes:
    """Return a body with the text in the place of an object."""
    return json.dumps(body).replace('"@"', text).encode()


def _chat(arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"name": _NAME, "arguments": arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], **fields}


def _chat_stream(chance: random.Random, text: str) -> bytes:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}

    begin = {"index": 0, "id": "call_1", "type": "function"}
    function = {"name": _NAME, "arguments": ""}
    pieces = [
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        for piece in split(chance, text)
    ]
    first = chunk({"role": "assistant", "tool_calls": [{**begin, "function": function}]})
    return _events([first, *pieces, chunk({}, "tool_calls")]) + b"data: [DONE]\n\n"


def _item(text: str, status: str = "completed") -> dict[str, Any]:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": _NAME}
    return {**call, "arguments": text, "status": status}


def _response(text: str) -> dict[str, Any]:
    head = {"id": "resp_1", "object": "response", "status": "completed", "model": "m"}
    return {**head, "output": [_item(text)]}


def _responses_stream(chance: random.Random, text: str) -> bytes:
    place = {"item_id": "fc_1", "output_index": 0}
    kind = "response.function_call_arguments"
    begin = {**_response(text), "status": "in_progress", "output": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begin},
        {"type": "response.output_item.added", "output_index": 0, "item": _item("", "in_progress")},
        *({"type": f"{kind}.delta", **place, "delta": piece} for piece in split(chance, text)),
        {"type": f"{kind}.done", **place, "arguments": text},
        {"type": "response.output_item.done", "output_index": 0, "item": _item(text)},
        {"type": "response.completed", "response": _response(text)},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return _events(numbered, named=True)


def _message(**fields: Any) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
    return {**head, **fields, "usage": {"input_tokens": 1, "output_tokens": 1}}


def _messages_stream(chance: random.Random, text: str) -> bytes:
    begin = _message(content=[], stop_reason=None)
    block = {"type": "tool_use", "id": "call_1", "name": _NAME, "input": {}}
    delta = {"type": "content_block_delta", "index": 0}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begin},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {**delta, "delta": {"type": "input_json_delta", "partial_json": piece}}
            for piece in split(chance, text)
        ),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {}},
        {"type": "message_stop"},
    ]
    return _events(events, named=True)


def _messages_object(_: random.Random, text: str) -> bytes:
    block = {"type": "tool_use", "id": "call_1", "name": _NAME, "input": "@"}
    return _in_place(_message(content=[block], stop_reason="tool_use"), text)


def _gemini(text: str) -> bytes:
    part = {"functionCall": {"name": _NAME, "args": "@"}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return _in_place({"candidates": [candidate], "modelVersion": "m"}, text)


FORMS: Final[dict[str, Callable[[random.Random, str], bytes]]] = {
    "chat_completions text": lambda _, text: json.dumps(_chat(text)).encode(),
    "chat_completions object": lambda _, text: _in_place(_chat("@"), text),
    "chat_completions stream": _chat_stream,
    "responses text": lambda _, text: json.dumps(_response(text)).encode(),
    "responses stream": _responses_stream,
    "messages object": _messages_object,
    "messages stream": _messages_stream,
    "gemini object": lambda _, text: _gemini(text),
    "gemini stream": lambda _, text: b"data: " + _gemini(text) + b"\n\n",
}
"""How each wire format carries the arguments: as text, as an object, or in a stream."""
