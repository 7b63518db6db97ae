"""A scripted message as a chat completion, whole or as the chunks of a stream."""

from collections.abc import Iterator
from typing import Any, Final, cast

__all__ = ["render_chunks", "render_completion"]

_PIECE_CHARS: Final = 12
_TEXT_FIELDS: Final = ("reasoning_content", "reasoning", "content")
_ABOUT: Final[dict[str, Any]] = {"id": "chatcmpl-scripted", "created": 0, "model": "scripted"}


def render_completion(
    message: dict[str, Any], finish_reason: str | None, usage: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the body of a chat completion with this message."""
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    body = {**_ABOUT, "object": "chat.completion", "choices": [choice]}
    return body if usage is None else {**body, "usage": usage}


def render_chunks(completion: dict[str, Any]) -> list[Any]:
    """Return the events that stream a completion, or none when it holds no message."""
    choices = completion.get("choices")
    choice = cast("list[Any]", choices)[0] if isinstance(choices, list) and choices else None
    fields = cast("dict[str, Any]", choice) if isinstance(choice, dict) else {}
    message = fields.get("message")
    if not isinstance(message, dict):
        return []
    about = {name: completion.get(name, value) for name, value in _ABOUT.items()}
    about["object"] = "chat.completion.chunk"
    deltas = list(_deltas(cast("dict[str, Any]", message)))
    events: list[Any] = [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    finish = fields.get("finish_reason")
    if finish is not None:
        last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": finish}
        events.append({**about, "choices": [last]})
    if completion.get("usage") is not None:
        events.append({**about, "choices": [], "usage": completion["usage"]})
    return [*events, "[DONE]"]


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": message.get("role", "assistant")}
    for name in _TEXT_FIELDS:
        value = message.get(name)
        if isinstance(value, str):
            yield from ({name: piece} for piece in _pieces(value))
        elif value is not None:
            yield {name: value}
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for index, call in enumerate(cast("list[Any]", calls)):
            yield from ({"tool_calls": [delta]} for delta in _call_deltas(index, call))
    elif calls is not None:
        yield {"tool_calls": calls}
    known = {"role", "tool_calls", *_TEXT_FIELDS}
    rest = {name: value for name, value in message.items() if name not in known}
    if rest:
        yield rest


def _call_deltas(index: int, call: Any) -> Iterator[Any]:
    """Yield one call: everything but the text of its arguments, then that text in pieces."""
    fields = cast("dict[str, Any]", call) if isinstance(call, dict) else {}
    function = fields.get("function")
    if not isinstance(function, dict):
        yield {"index": index, **fields} if fields else call
        return
    function = cast("dict[str, Any]", function)
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        yield {"index": index, **fields}
        return
    yield {"index": index, **fields, "function": {**function, "arguments": ""}}
    for piece in _pieces(arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]
