"""A transport that answers from a script: for tests, examples and offline work."""

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from operator import is_
from typing import Any, Final, cast

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from surecall.base.errors import Code, ProviderReplyError, invalid_config
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import WireReply, WireRequest
from surecall.text import encode, encode_text, render_event
from surecall.wire.errors import check_body, parse_error

from .interface import Closing, PreparedStream
from .retry import parse_retry_after

_BODY_KEYS: Final = ("choices", "error", "object")
"""A dict with one of these is a whole body; any other is a message."""


class ScriptedReply(Struct, frozen=True, kw_only=True):
    """One answer of a script, in detail; give one of `message`, `body` and `chunks`."""

    message: str | dict[str, Any] | None = None
    """The assistant message or only its text; with an error status, the provider's message."""
    body: dict[str, Any] | bytes | None = None
    """The whole body."""
    chunks: list[Any] | None = None
    """Events of a stream: dicts are encoded, text is taken as it is; `[DONE]` is yours to add."""
    status: int = 200
    headers: dict[str, str] = {}
    finish_reason: str | UnsetType | None = UNSET
    """Left out: `tool_calls` for a message with calls, `stop` for any other."""
    usage: dict[str, Any] | None = None
    delay_s: float = 0.0
    cut_at_bytes: int | None = None
    """The answer ends after so many bytes, as if the provider had closed the connection."""


Reply = str | bytes | dict[str, Any] | ScriptedReply | BaseException
_SINGLE: Final = (str, bytes, dict, ScriptedReply, BaseException)
Replies = Iterable[Reply] | Callable[[WireRequest], Any]


class ScriptedTransport(Closing):
    """Answers each request with the next reply of a script, whole or streamed.

        transport = surecall.ScriptedTransport(["Hello."])
        surecall.run_sync("Hi", model="small", transport=transport).text  # 'Hello.'

    Args:
        replies: A list or iterator of replies, or a function from the request to a reply. A
            reply is text, a message, a whole body, raw bytes, an exception to raise, or a
            `ScriptedReply`.
        chunk_bytes: How streams are cut: in pieces of one size, or of these sizes and then the
            rest; `None` gives one event at a time.
    """

    def __init__(self, replies: Replies, *, chunk_bytes: int | Sequence[int] | None = None) -> None:
        if isinstance(replies, _SINGLE):
            raise invalid_config(
                "replies is one reply, not a list of replies.",
                "Put it into a list: ScriptedTransport([reply]).",
            )
        self._choose = replies if callable(replies) else None
        self._replies: Iterator[Any] = iter(()) if callable(replies) else iter(replies)
        self._chunk_bytes = chunk_bytes
        self.requests: list[WireRequest] = []
        """Every request, as it was when it was sent; what two in a row have in common is kept
        once."""

    async def send(self, request: WireRequest) -> WireReply:
        """Return the next reply as a whole answer."""
        started = time.perf_counter()
        reply = await self._next_reply(request)
        body, headers = _render_body(reply)
        if reply.cut_at_bytes is not None and reply.cut_at_bytes < len(body):
            raise ProviderReplyError(
                Code.UPSTREAM_TRUNCATED_BODY,
                "The provider closed the connection before its answer was complete.",
                status=reply.status,
                retryable=True,
            )
        error = check_body(headers, body, status=reply.status)
        if error is not None:
            raise error
        elapsed_ms = (time.perf_counter() - started) * 1000
        return WireReply(status=reply.status, headers=headers, body=body, elapsed_ms=elapsed_ms)

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[PreparedStream, None]:
        """Open the next reply as a streamed answer."""
        reply = await self._next_reply(request)
        events, headers = _render_events(reply)
        if reply.cut_at_bytes is not None:
            events = _cut_after(events, reply.cut_at_bytes)
        if self._chunk_bytes is not None:
            events = _cut_into(b"".join(events), self._chunk_bytes)
        yield PreparedStream(reply.status, headers, events)

    async def _next_reply(self, request: WireRequest) -> ScriptedReply:
        before = self.requests[-1].body if self.requests else None
        body = _copy_onto(before, request.body)
        self.requests.append(replace(request, body=body, headers=dict(request.headers)))
        if self._choose is not None:
            found = self._choose(request)
            if inspect.isawaitable(found):
                found = await found
        else:
            found = next(self._replies, UNSET)
        if found is UNSET:
            count = len(self.requests)
            raise invalid_config(
                f"The script has {count - 1} replies; request {count} arrived.",
                "Add a reply to the script, or find out why one more request was made.",
            )
        reply = _parse_reply(found)
        await asyncio.sleep(reply.delay_s)
        if not 200 <= reply.status < 300:
            body, headers = _render_body(reply)
            error = parse_error(reply.status, headers, body)
            error.retry_after_s = parse_retry_after(headers, time.time())
            raise error
        return reply


def _copy_onto(known: Any, value: Any) -> Any:
    """Return a copy of a JSON value, made of the parts of a known copy that are just the same.

    A conversation is sent whole with every turn: whole copies would grow with its square.
    """
    kind = value.__class__
    if kind is str or kind is int:
        return known if known.__class__ is kind and known == value else value
    if kind is list:
        old: list[Any] = known if known.__class__ is list else []
        items = [*map(_copy_onto, old, value)]
        items += [deepcopy(item) for item in value[len(items) :]]
        is_same = len(items) == len(old) and all(map(is_, items, old))
        return known if is_same and known.__class__ is list else items
    if kind is dict:
        fields: dict[str, Any] = known if known.__class__ is dict else {}
        copy = {key: _copy_onto(fields.get(key), item) for key, item in value.items()}
        is_same = list(copy) == list(fields) and all(copy[key] is fields[key] for key in copy)
        return known if is_same and known.__class__ is dict else copy
    return deepcopy(value)


def tool_call(name: str, arguments: Any = "{}", id: str = "call_1") -> dict[str, Any]:  # noqa: A002 - the wire's own name
    """Return one entry of `tool_calls`; arguments that are not text are encoded as JSON.

    For example:

        surecall.tool_call("add", {"a": 1})["function"]["arguments"]  # '{"a":1}'
    """
    text = arguments if isinstance(arguments, str) else encode_text(arguments)
    return {"id": id, "type": "function", "function": {"name": name, "arguments": text}}


def assistant(text: str | None = None, *calls: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an assistant message with text, calls, or both.

    For example:

        surecall.assistant("Hello.")  # {'role': 'assistant', 'content': 'Hello.'}
    """
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    return message | fields


def _parse_reply(found: Any) -> ScriptedReply:
    match found:
        case ScriptedReply():
            return found
        case BaseException():
            raise found
        case str():
            return ScriptedReply(message=found)
        case bytes():
            return ScriptedReply(body=found)
        case dict():
            fields = cast("dict[str, Any]", found)
            is_body = any(key in fields for key in _BODY_KEYS)
            return ScriptedReply(body=fields) if is_body else ScriptedReply(message=fields)
        case _:
            raise invalid_config(
                f"A script cannot hold a reply of type {type(found).__name__}.",
                "Use text, a dict, bytes, an exception or a ScriptedReply.",
            )


def _completion(reply: ScriptedReply) -> dict[str, Any]:
    if isinstance(reply.body, dict):
        return reply.body
    message = reply.message if reply.message is not None else ""
    if reply.status >= 300 and isinstance(message, str):
        return {"error": {"message": message}}
    if isinstance(message, str):
        message = assistant(message)
    finish = reply.finish_reason
    if finish is UNSET:
        finish = "tool_calls" if message.get("tool_calls") else "stop"
    return render_completion({"role": "assistant"} | message, finish, reply.usage)


def _render_body(reply: ScriptedReply) -> tuple[bytes, dict[str, str]]:
    if reply.chunks is not None:
        events, headers = _render_events(reply)
        return b"".join(events), headers
    body = reply.body if isinstance(reply.body, bytes) else encode(_completion(reply))
    return body, _headers(reply, "application/json")


def _render_events(reply: ScriptedReply) -> tuple[list[bytes], dict[str, str]]:
    if isinstance(reply.body, bytes):
        return [reply.body], _headers(reply, "text/event-stream")
    chunks = reply.chunks
    if chunks is None:
        completion = _completion(reply)
        chunks = render_chunks(completion)
        if not chunks:
            return [encode(completion)], _headers(reply, "application/json")
    texts = (chunk if isinstance(chunk, str) else encode_text(chunk) for chunk in chunks)
    return [render_event(text) for text in texts], _headers(reply, "text/event-stream")


def _headers(reply: ScriptedReply, content_type: str) -> dict[str, str]:
    given = {name.lower(): value for name, value in reply.headers.items()}
    return {"content-type": content_type} | given


def _cut_after(pieces: list[bytes], size: int) -> list[bytes]:
    kept: list[bytes] = []
    for piece in pieces:
        if size <= 0:
            break
        kept.append(piece[:size])
        size -= len(piece)
    return kept


def _cut_into(data: bytes, sizes: int | Sequence[int]) -> list[bytes]:
    if isinstance(sizes, int):
        step = max(1, sizes)
        return [data[start : start + step] for start in range(0, len(data), step)]
    pieces: list[bytes] = []
    start = 0
    for size in sizes:
        pieces.append(data[start : start + size])
        start += size
    return [piece for piece in (*pieces, data[start:]) if piece]


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
    choices = as_list(completion.get("choices"))
    fields = as_fields(choices[0] if choices else None)
    if not isinstance(fields.get("message"), dict):
        return []
    about = {name: completion.get(name, value) for name, value in _ABOUT.items()}
    about["object"] = "chat.completion.chunk"
    events: list[Any] = [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in _split_message(fields["message"])
    ]
    finish = fields.get("finish_reason")
    if finish is not None:
        last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": finish}
        events.append({**about, "choices": [last]})
    if completion.get("usage") is not None:
        events.append({**about, "choices": [], "usage": completion["usage"]})
    return [*events, "[DONE]"]


def _split_message(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": message.get("role", "assistant")}
    for name in _TEXT_FIELDS:
        value = message.get(name)
        if isinstance(value, str):
            yield from ({name: piece} for piece in _split_text(value))
        elif value is not None:
            yield {name: value}
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        for index, call in enumerate(as_list(calls)):
            yield from ({"tool_calls": [delta]} for delta in _split_call(index, call))
    elif calls is not None:
        yield {"tool_calls": calls}
    known = {"role", "tool_calls", *_TEXT_FIELDS}
    rest = {name: value for name, value in message.items() if name not in known}
    if rest:
        yield rest


def _split_call(index: int, call: Any) -> Iterator[Any]:
    """Yield one call: everything but the text of its arguments, then that text in pieces."""
    fields = as_fields(call)
    function = as_fields(fields.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        yield {"index": index, **fields} if fields else call
        return
    yield {"index": index, **fields, "function": {**function, "arguments": ""}}
    for piece in _split_text(arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _split_text(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE_CHARS):
        yield text[start : start + _PIECE_CHARS]
