"""What is not a reply is a coded error in every wire format, never an empty answer."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code, ProviderError
from surecall.base.records import Reply
from surecall.reading import read_reply
from surecall.wire import find_protocol

CHAT = "chat_completions"


@dataclass(frozen=True)
class Case:
    id: str
    family: str
    sent: Any
    """A whole body, or the events of a stream."""
    code: Code = Code.UPSTREAM_NOT_A_REPLY


def _choice(message: Any, finish: Any = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _message(**fields: Any) -> dict[str, Any]:
    whole = {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
    return whole | fields


def _response(*output: Any, **fields: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(output), **fields}


def _candidate(content: Any = None, finish: Any = "STOP", **fields: Any) -> dict[str, Any]:
    found = {"index": 0, "content": content, "finishReason": finish}
    present = {key: value for key, value in found.items() if value is not None}
    return {"candidates": [present], **fields}


BODIES = (
    Case("empty message", CHAT, _choice({})),
    Case("empty message without a finish", CHAT, {"choices": [{"message": {}}]}),
    Case("no role", CHAT, _choice({"content": None})),
    Case("no finish", CHAT, _choice({"role": "assistant", "content": ""}, None)),
    Case("user", CHAT, _choice({"role": "user", "content": "Hi"})),
    Case("system", CHAT, _choice({"role": "system", "content": "Hi"})),
    Case("tool", CHAT, _choice({"role": "tool", "content": "Hi"})),
    Case("role of another type", CHAT, _choice({"role": [], "content": "Hi"})),
    Case("number as content", CHAT, _choice({"role": "assistant", "content": 5})),
    Case("numbers as calls", CHAT, _choice({"role": "assistant", "tool_calls": [5]})),
    Case("text as calls", CHAT, _choice({"role": "assistant", "tool_calls": "x"})),
    Case("null content alone", "messages", {"content": None}),
    Case("empty content alone", "messages", {"content": []}),
    Case("null content", "messages", _message(content=None)),
    Case("no stop reason", "messages", _message(stop_reason=None)),
    Case("no role", "messages", _message(role=None)),
    Case("no type", "messages", _message(type=None)),
    Case("another type", "messages", _message(type="completion", content="Hi")),
    Case("user", "messages", _message(role="user", content=[{"type": "text", "text": "Hi"}])),
    Case("number as content", "messages", _message(content=5)),
    Case("numbers as blocks", "messages", _message(content=[5])),
    Case("text that is a number", "messages", _message(content=[{"type": "text", "text": 5}])),
    Case("empty output alone", "responses", {"output": []}),
    Case("no status", "responses", _response(status=None)),
    Case("no object", "responses", _response(object=None)),
    Case("text as item", "responses", _response("Hi")),
    Case("item without a type", "responses", _response({"content": "Hi"})),
    Case(
        "user",
        "responses",
        _response({"type": "message", "role": "user", "content": [{"text": "Hi"}]}),
    ),
    Case("number as content", "responses", _response({"type": "message", "content": 5})),
    Case("empty candidate", "gemini", {"candidates": [{}]}),
    Case("nothing but a finish", "gemini", _candidate()),
    Case("no finish", "gemini", _candidate({"role": "model"}, None)),
    Case("user", "gemini", _candidate({"role": "user", "parts": [{"text": "Hi"}]})),
    Case("candidates as object", "gemini", {"candidates": {"content": {}}}),
    Case("text as content", "gemini", _candidate("Hi")),
    Case("object as parts", "gemini", _candidate({"role": "model", "parts": {"text": "Hi"}})),
    Case("text as part", "gemini", _candidate({"role": "model", "parts": ["Hi"]})),
    Case("text as call", "gemini", _candidate({"role": "model", "parts": [{"functionCall": "f"}]})),
)


def _id(case: Case) -> str:
    return f"{case.family}-{case.id}"


@pytest.mark.parametrize("case", BODIES, ids=_id)
def test_a_body_that_is_not_a_reply_is_refused(case: Case) -> None:
    """Also when it comes where a stream was asked for."""
    family, data = find_protocol(case.family), json.dumps(case.sent).encode()
    with pytest.raises(ProviderError) as caught:
        family.parse_body(data)
    assert caught.value.code in {case.code, Code.UPSTREAM_NO_CHOICES}
    folder = family.open_stream()
    folder.feed(data)
    with pytest.raises(ProviderError) as again:
        folder.close()
    assert again.value.code == caught.value.code


HONEST = (
    Case("null", CHAT, _choice({"role": "assistant", "content": None})),
    Case("no content", CHAT, _choice({"role": "assistant"})),
    Case("at the limit", CHAT, _choice({"role": "assistant"}, "length")),
    Case("no blocks", "messages", _message()),
    Case("paused", "messages", _message(content=[{"type": "server_tool_use"}])),
    Case("no items", "responses", _response()),
    Case("at the limit", "responses", _response(status="incomplete")),
    Case("an item of another kind", "responses", _response({"type": "mcp_approval_request"})),
    Case("no parts", "gemini", _candidate({"role": "model"})),
    Case("no content", "gemini", _candidate({}, usageMetadata={"promptTokenCount": 3})),
    Case("filtered", "gemini", _candidate(None, "SAFETY")),
)


@pytest.mark.parametrize("case", HONEST, ids=_id)
def test_an_empty_reply_with_every_mark_of_one_is_a_reply(case: Case) -> None:
    """Models do end without a word; the loop asks them once more."""
    family = find_protocol(case.family)
    reply = family.parse_message(family.parse_body(json.dumps(case.sent).encode()))
    assert (reply.content, reply.calls) == (None, ())
    assert reply.finish_reason is not None


def _delta(delta: Any = None, finish: Any = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **fields}


def _part(part: Any, finish: str | None = None) -> dict[str, Any]:
    return _candidate({"role": "model", "parts": [part]}, finish)


CALL = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
SAID = _delta({"role": "assistant", "content": "Hi"})
STOP = _delta(None, "stop")
BEGIN = {"type": "message_start", "message": _message(stop_reason=None)}
TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Hi"}}
USE = {
    "type": "content_block_start",
    "index": 1,
    "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}},
}
LATE_PIECE = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "!"},
}
ENDING = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}
CLOSE = {"type": "message_stop"}
CREATED = {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
BAD_EVENT = Code.UPSTREAM_BAD_EVENT

STREAMS = (
    Case("only a finish", CHAT, [STOP]),
    Case("user", CHAT, [_delta({"role": "user", "content": "Hi"}), STOP]),
    Case("user later", CHAT, [SAID, _delta({"role": "user", "content": "a"}), STOP]),
    Case("late call", CHAT, [SAID, STOP, _delta({"tool_calls": [CALL]})]),
    Case("late call with a finish", CHAT, [SAID, STOP, _delta({"tool_calls": [CALL]}, "stop")]),
    Case("late old call", CHAT, [SAID, STOP, _delta({"function_call": {"name": "f"}})]),
    Case("late text", CHAT, [SAID, STOP, _delta({"content": "!"})]),
    Case("late message", CHAT, [STOP, _choice({"tool_calls": [CALL]})]),
    Case("text as delta", CHAT, [SAID, _delta("Hi"), STOP], BAD_EVENT),
    Case("number as content", CHAT, [_delta({"role": "assistant", "content": 5}), STOP]),
    Case("only a finish", "messages", [ENDING, CLOSE]),
    Case("no message", "messages", [CLOSE]),
    Case(
        "user",
        "messages",
        [{"type": "message_start", "message": _message(role="user")}, TEXT, ENDING, CLOSE],
    ),
    Case("two messages", "messages", [BEGIN, TEXT, BEGIN, ENDING, CLOSE]),
    Case("late block", "messages", [BEGIN, TEXT, ENDING, USE, CLOSE]),
    Case("late piece", "messages", [BEGIN, TEXT, ENDING, LATE_PIECE, CLOSE]),
    Case("no stop reason", "messages", [BEGIN, CLOSE]),
    Case(
        "delta as text",
        "messages",
        [BEGIN, TEXT, {**ENDING, "delta": "end_turn"}, CLOSE],
        BAD_EVENT,
    ),
    Case(
        "piece without a type",
        "messages",
        [BEGIN, USE, {**LATE_PIECE, "delta": {}}, ENDING, CLOSE],
        BAD_EVENT,
    ),
    Case("type as object", "messages", [BEGIN, TEXT, {"type": {"a": 1}}, ENDING, CLOSE], BAD_EVENT),
    Case("empty output", "responses", [{"type": "response.completed", "response": {"output": []}}]),
    Case("two responses", "responses", [CREATED, CREATED]),
    Case("only a finish", "gemini", [_candidate()]),
    Case("user", "gemini", [_candidate({"role": "user", "parts": [{"text": "Hi"}]})]),
    Case(
        "late call",
        "gemini",
        [_part({"text": "Hi"}, "STOP"), _part({"functionCall": {"name": "f"}})],
    ),
    Case(
        "late call with a finish",
        "gemini",
        [_part({"text": "Hi"}, "STOP"), _part({"function_call": {"name": "f"}}, "STOP")],
    ),
    Case("late text", "gemini", [_part({"text": "Hi"}, "STOP"), _part({"text": "!"})]),
    Case("candidates as text", "gemini", [{"candidates": "Hi"}, _part({"text": "a"}, "STOP")]),
)


def _fold(case: Case) -> Reply:
    family = find_protocol(case.family)
    folder = family.open_stream()
    for event in case.sent:
        folder.feed(f"data: {json.dumps(event)}\n\n".encode())
    return family.parse_message(folder.close())


@pytest.mark.parametrize("case", STREAMS, ids=_id)
def test_a_stream_that_is_not_a_reply_is_refused(case: Case) -> None:
    """Somebody else's words, a finish alone, and whatever comes behind the finish."""
    with pytest.raises(ProviderError) as caught:
        _fold(case)
    assert caught.value.code == case.code


COMPLETED = {
    "type": "response.completed",
    "response": _response({"type": "message", "content": "Hi"}),
}
LATE_ITEM = {"type": "response.output_item.done", "item": {"type": "function_call", "name": "f"}}
USED = {"prompt_tokens": 1, "completion_tokens": 1}

HARMLESS = (
    Case("usage behind", CHAT, [SAID, STOP, {"choices": [], "usage": USED}]),
    Case("finish again", CHAT, [SAID, STOP, _delta({"content": ""}, "stop")]),
    Case("role again", CHAT, [SAID, STOP, _delta({"role": "assistant"})]),
    Case(
        "finish in every chunk",
        CHAT,
        [_delta({"content": "H"}, "stop"), _delta({"content": "i"}, "stop")],
    ),
    Case("ping behind", "messages", [BEGIN, TEXT, ENDING, {"type": "ping"}, CLOSE]),
    Case("finish again", "messages", [BEGIN, TEXT, ENDING, ENDING, CLOSE]),
    Case("behind the end", "messages", [BEGIN, TEXT, ENDING, CLOSE, USE]),
    Case("behind the end", "responses", [CREATED, COMPLETED, LATE_ITEM]),
    Case("usage behind", "gemini", [_part({"text": "Hi"}, "STOP"), {"usageMetadata": {}}]),
    Case("finish again", "gemini", [_part({"text": "Hi"}, "STOP"), _part({"text": ""}, "STOP")]),
    Case(
        "finish in every chunk",
        "gemini",
        [_part({"text": "H"}, "STOP"), _part({"text": "i"}, "STOP")],
    ),
)


@pytest.mark.parametrize("case", HARMLESS, ids=_id)
def test_what_servers_write_behind_the_finish_is_harmless(case: Case) -> None:
    """Usage, a finish said again, and what comes behind the end of the stream itself."""
    reply = _fold(case)
    assert (reply.content, reply.calls, reply.finish_reason) == ("Hi", (), "stop")


@pytest.mark.parametrize("first", ["length", "content_filter"])
def test_a_plain_stop_does_not_take_back_a_cut(first: str) -> None:
    """Two finishes that differ: the one that says less is believed."""
    case = Case("", CHAT, [SAID, _delta(None, first), STOP])
    assert _fold(case).finish_reason == first
    stated = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}[first]
    case = Case("", "gemini", [_part({"text": "Hi"}, stated), _candidate(None, "STOP")])
    assert _fold(case).finish_reason == first


@pytest.mark.parametrize("finish", [{"type": "length"}, 7, ["stop"], True])
def test_a_finish_reason_that_is_not_text_is_one_nobody_knows(finish: Any) -> None:
    """Its calls are only likely, so that they do not run on tools with effects."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    protocol = find_protocol(CHAT)
    body = json.dumps(_choice(message, finish)).encode()
    reply = protocol.parse_message(protocol.parse_body(body, {}))
    (read,) = read_reply(reply, tools=None).calls
    assert (read.state, read.certainty) == ("whole", "likely")
