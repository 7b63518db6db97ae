"""A provider on loopback that gives scripted replies over real HTTP, whole or streamed.

    async with CompletionServer(["hello"]) as server:
        transport = HttpTransport(server.url)
        ...
    assert server.bodies[0]["model"] == "m"

Replies are those a `ScriptedTransport` takes, exceptions left out. They are rendered here anew,
so that a mistake in the scripted transport cannot hide itself.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET

from surecall.models.transport import ScriptedReply

from .upstream import FaultyUpstream, Received, completion_bytes, http_response, sse_response

__all__ = ["CompletionServer"]

_OUT_OF_REPLIES = 501


class CompletionServer(FaultyUpstream):
    """Answers each request with the next reply; one request too many is refused with a 501."""

    def __init__(self, replies: Sequence[Any]) -> None:
        waiting = iter(replies)

        def answer(request: Received) -> bytes:
            reply = next(waiting, None)
            if reply is None:
                return _render_error(_OUT_OF_REPLIES, "the script has no more replies")
            return _render(_as_reply(reply), stream=request.json.get("stream") is True)

        super().__init__(answer)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The body of every request, as it arrived."""
        return [request.json for request in self.requests]

    @property
    def paths(self) -> list[str]:
        """The path of every request."""
        return [request.head.split(" ")[1] for request in self.requests]


def _as_reply(reply: Any) -> ScriptedReply:
    return reply if isinstance(reply, ScriptedReply) else ScriptedReply(message=reply)


def _render(reply: ScriptedReply, *, stream: bool) -> bytes:
    if reply.status >= 300:
        return _render_error(reply.status, str(reply.message), reply.headers)
    message = reply.message
    if not isinstance(message, dict):
        message = {"content": message}
    message = {"role": "assistant", **message}
    finish = reply.finish_reason
    if finish is UNSET:
        finish = "tool_calls" if message.get("tool_calls") else "stop"
    if stream:
        return sse_response(_chunks(message, finish, reply.usage))
    body = completion_bytes(message, finish_reason=finish, usage=reply.usage)
    return http_response(body, headers=reply.headers)


def _render_error(status: int, message: str, headers: dict[str, str] | None = None) -> bytes:
    body = json.dumps({"error": {"message": message, "type": "scripted"}}).encode()
    return http_response(body, status, headers)


def _chunks(message: dict[str, Any], finish: Any, usage: Any) -> Iterator[dict[str, Any]]:
    for delta in _deltas(message):
        yield {"id": "s1", "model": "m", "choices": [{"index": 0, "delta": delta}]}
    last = {"index": 0, "delta": {}, "finish_reason": finish}
    yield {"id": "s1", "model": "m", "choices": [last]}
    if usage is not None:
        yield {"id": "s1", "model": "m", "choices": [], "usage": usage}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the message in small pieces; arguments and text are cut every few characters."""
    yield {"role": "assistant", "content": ""}
    for key, value in message.items():
        if key == "content" and isinstance(value, str):
            yield from ({key: piece} for piece in _pieces(value))
        elif key == "tool_calls" and isinstance(value, list):
            for index, call in enumerate(value):
                yield from ({key: [delta]} for delta in _call_deltas(index, call))
        elif key != "role" and value is not None:
            yield {key: value}


def _call_deltas(index: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    function = call["function"]
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        yield {**call, "index": index}
        return
    yield {**call, "index": index, "function": {**function, "arguments": ""}}
    for piece in _pieces(arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str, size: int = 5) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
