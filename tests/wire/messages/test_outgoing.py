"""Replies and errors as a server answers them."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderReplyError,
    ProviderStatusError,
    ProviderTimeoutError,
    RequestError,
    RunError,
    SurecallError,
)
from surecall.base.records import RawCall, Reply, Usage
from surecall.text import SSEReader
from surecall.wire.messages import Messages
from surecall.wire.records import StreamWriter

from .wire import fold

PROTOCOL = Messages()
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
CALL = RawCall("a", "look_up", {"q": "x"})
FULL = Reply(
    content="Hi.",
    reasoning="Hm.",
    calls=(CALL, RawCall("b", "g", {})),
    finish_reason="tool_calls",
    usage=Usage(14, 7, 21, 3, 4),
    model="m",
    id="msg_1",
    extra={"thinking_blocks": [THOUGHT, HIDDEN]},
)


def _written(reply: Reply, size: int = 2) -> bytes:
    writer: StreamWriter = PROTOCOL.open_writer(model=reply.model or "m", reply_id=reply.id)
    data = writer.begin()
    for start in range(0, len(reply.reasoning or ""), size):
        data += writer.reasoning((reply.reasoning or "")[start : start + size])
    data += writer.reasoning("", reply.extra)
    for start in range(0, len(reply.content or ""), size):
        data += writer.text((reply.content or "")[start : start + size])
    for call in reply.calls:
        data += writer.call(call)
    return data + writer.end(reply)


def _events(data: bytes) -> list[tuple[str, Any]]:
    return [(event.event, json.loads(event.data)) for event in SSEReader().feed(data)]


def test_a_whole_reply_has_the_shape_of_the_format() -> None:
    """Thoughts first, then text, then calls."""
    assert PROTOCOL.render_reply(FULL) == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [
            THOUGHT,
            HIDDEN,
            {"type": "text", "text": "Hi."},
            {"type": "tool_use", "id": "a", "name": "look_up", "input": {"q": "x"}},
            {"type": "tool_use", "id": "b", "name": "g", "input": {}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 4,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 3},
        },
    }


REPLIES = {
    "full": FULL,
    "text": Reply(
        content="Grüße 😀", finish_reason="stop", usage=Usage(1, 2, 3), model="m", id="i"
    ),
    "cut": Reply(content="Hi", calls=(CALL,), finish_reason="length", usage=Usage(1, 2, 3), id="i"),
    "filtered": Reply(content="No", finish_reason="content_filter", usage=Usage(1, 2, 3), id="i"),
    "paused": Reply(content="Wait", finish_reason="pause_turn", usage=Usage(1, 2, 3), id="i"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_client_reads_what_the_server_meant(name: str) -> None:
    """Whole or streamed, with calls, text, reasoning, finish and usage."""
    reply = REPLIES[name]
    whole = PROTOCOL.parse_message(
        PROTOCOL.parse_body(json.dumps(PROTOCOL.render_reply(reply)).encode())
    )
    raw, text, reasoning = fold(_written(reply))
    streamed = PROTOCOL.parse_message(raw)
    for read in (whole, streamed):
        assert (read.content, read.reasoning, read.calls) == (
            reply.content,
            reply.reasoning,
            reply.calls,
        )
        assert (read.finish_reason, read.usage, read.id) == (
            reply.finish_reason,
            reply.usage,
            reply.id,
        )
        assert read.extra == reply.extra
        codes = [Code.TURN_PAUSED] if reply.finish_reason == "pause_turn" else []
        assert [defect.code for defect in read.defects] == codes
    assert (text, reasoning) == (reply.content or "", reply.reasoning or "")


def test_a_stream_has_the_events_of_the_format() -> None:
    """Each is named, blocks are numbered, and a call comes whole."""
    data = _written(FULL, size=9)
    names = [name for name, _ in _events(data)]
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert names == [
        "message_start",
        *[block[0], block[1], block[1], block[2]],
        *[block[0], block[2]],
        *block,
        *block,
        *block,
        "message_delta",
        "message_stop",
    ]
    assert all(name == value["type"] for name, value in _events(data))
    assert [value["index"] for _, value in _events(data) if "index" in value] == [
        *[0, 0, 0, 0],
        *[1, 1],
        *[2, 2, 2],
        *[3, 3, 3],
        *[4, 4, 4],
    ]


@dataclass(frozen=True)
class Thoughts:
    id: str
    steps: tuple[tuple[str, list[dict[str, Any]]], ...]
    """Pieces of reasoning, each with the thoughts that end there; then follow the text and the end.
    """
    blocks: list[dict[str, Any]]
    """What a client then has."""
    late: tuple[dict[str, Any], ...] = ()
    """Thoughts that only the end tells of."""


def _thought(words: str, signature: str = "") -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": signature}


TEXT = {"type": "text", "text": "Hi."}
THOUGHTS = (
    Thoughts("in one piece", (("Hm.", [THOUGHT]),), [THOUGHT, TEXT]),
    Thoughts("in pieces", (("H", []), ("m.", []), ("", [THOUGHT])), [THOUGHT, TEXT]),
    Thoughts("the rest with the signature", (("H", []), ("m.", [THOUGHT])), [THOUGHT, TEXT]),
    Thoughts(
        "two",
        (("Hm.", []), ("", [THOUGHT]), ("So.", []), ("", [_thought("So.", "s")])),
        [THOUGHT, _thought("So.", "s"), TEXT],
    ),
    Thoughts(
        "two at once",
        (("Hm.So.", [THOUGHT, _thought("So.", "s")]),),
        [THOUGHT, _thought("So.", "s"), TEXT],
    ),
    Thoughts(
        "unsigned before signed",
        (("So.", []), ("", [_thought("So.")]), ("Hm.", []), ("", [THOUGHT])),
        [_thought("So."), THOUGHT, TEXT],
    ),
    Thoughts(
        "without words", (("", [_thought("", "sig"), HIDDEN]),), [_thought("", "sig"), HIDDEN, TEXT]
    ),
    Thoughts("hidden behind words", (("Hm.", [HIDDEN]),), [_thought("Hm."), HIDDEN, TEXT]),
    Thoughts("other words", (("Ah.", [THOUGHT]),), [_thought("Ah."), THOUGHT, TEXT]),
    Thoughts("told too late", (("Hm.", []),), [_thought("Hm."), TEXT], (THOUGHT,)),
    Thoughts(
        "told too late, two in one",
        (("Hm.So.", []),),
        [_thought("Hm.So."), TEXT],
        (THOUGHT, _thought("So.", "s")),
    ),
    Thoughts("told at the end, without words", (), [TEXT, HIDDEN], (HIDDEN,)),
    Thoughts("told twice", (("Hm.", [THOUGHT]),), [THOUGHT, TEXT], (THOUGHT,)),
)


@pytest.mark.parametrize("case", THOUGHTS, ids=lambda case: case.id)
def test_a_thought_is_signed_inside_its_block(case: Thoughts) -> None:
    """Blocks follow each other; none gets anything after it was closed."""
    writer = PROTOCOL.open_writer(model="m")
    data = writer.begin()
    for text, blocks in case.steps:
        data += writer.reasoning(text, {"thinking_blocks": blocks})
    extra = {"thinking_blocks": list(case.late)}
    data += writer.text("Hi.") + writer.end(Reply(finish_reason="stop", extra=extra))
    place, is_open = -1, False
    for name, event in _events(data):
        if name == "content_block_start":
            assert (event["index"], is_open) == (place + 1, False)
            place, is_open = event["index"], True
        elif name.startswith("content_block"):
            assert (event["index"], is_open) == (place, True)
            is_open = name != "content_block_stop"
    assert fold(data)[0].message["content"] == case.blocks


def test_a_thought_at_the_very_end_is_signed_by_the_end() -> None:
    """Nothing came between its words and its signature."""
    writer = PROTOCOL.open_writer(model="m")
    data = writer.begin() + writer.reasoning("Hm.")
    data += writer.end(Reply(reasoning="Hm.", extra={"thinking_blocks": [THOUGHT]}))
    assert fold(data)[0].message["content"] == [THOUGHT]


def test_reasoning_without_a_signature_gets_an_empty_one() -> None:
    """None is invented."""
    reply = Reply(content="Hi.", reasoning="Hm.", finish_reason="stop")
    unsigned = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    assert PROTOCOL.render_reply(reply)["content"][0] == unsigned
    assert fold(_written(reply))[0].message["content"][0] == unsigned
    bare = Reply(extra={"thinking_blocks": [{"type": "thinking", "thinking": "Hm."}]})
    assert PROTOCOL.render_reply(bare)["content"] == [unsigned]


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (None, {}),
        (" ", {}),
        ('{"q": 1}', {"q": 1}),
        ({"q": 1}, {"q": 1}),
        ("[]", {"_unreadable_arguments": "[]"}),
        ([], {"_unreadable_arguments": "[]"}),
        ('{"q"', {"_unreadable_arguments": '{"q"'}),
        ('{"q":1,"q":2}', {"_unreadable_arguments": '{"q":1,"q":2}'}),
    ],
)
def test_arguments_become_an_object(arguments: Any, sent: dict[str, Any]) -> None:
    """What cannot be read is shown to the client, and never made empty."""
    reply = Reply(calls=(RawCall("a", "f", arguments),), finish_reason="tool_calls")
    assert PROTOCOL.render_reply(reply)["content"][0]["input"] == sent
    assert fold(_written(reply))[0].message["content"][0]["input"] == sent


@pytest.mark.parametrize("call_id", [None, "", 3, "functions.f:0"])
def test_a_client_always_gets_a_usable_id(call_id: Any) -> None:
    """Letters, digits, dashes and underlines, and a name as well."""
    reply = Reply(calls=(RawCall(call_id, None, {}),), finish_reason="tool_calls")
    block = PROTOCOL.render_reply(reply)["content"][0]
    assert block["id"].replace("_", "").replace("-", "").isalnum()
    assert block["name"] == "unnamed"


@pytest.mark.parametrize(
    ("finish", "calls", "sent"),
    [
        ("stop", (), "end_turn"),
        ("stop", (CALL,), "tool_use"),
        ("tool_calls", (CALL,), "tool_use"),
        ("tool_calls", (), "end_turn"),
        ("length", (CALL,), "max_tokens"),
        ("content_filter", (), "refusal"),
        ("pause_turn", (), "pause_turn"),
        (None, (CALL,), "tool_use"),
        (None, (), "end_turn"),
    ],
)
def test_a_client_looks_for_calls_where_there_are_some(
    finish: str | None, calls: tuple[RawCall, ...], sent: str | None
) -> None:
    """Many look at the stop reason only."""
    reply = Reply(content="x", calls=calls, finish_reason=finish)
    assert PROTOCOL.render_reply(reply)["stop_reason"] == sent
    delta = next(value for name, value in _events(_written(reply)) if name == "message_delta")
    assert delta["delta"]["stop_reason"] == sent


def test_what_is_not_known_has_a_usable_place() -> None:
    """A client reads an id, a model and usage from every reply."""
    body = PROTOCOL.render_reply(Reply())
    assert body["id"].startswith("msg_")
    assert (body["model"], body["content"], body["usage"]["output_tokens"]) == ("", [], 0)


def test_empty_pieces_write_nothing() -> None:
    """No block is begun for them."""
    writer = PROTOCOL.open_writer(model="m")
    assert writer.text("") == writer.reasoning("") == b""


def test_half_a_character_can_be_written() -> None:
    """It is replaced, since UTF-8 has none."""
    assert (
        "\ufffd" in _events(PROTOCOL.open_writer(model="m").text("\ud83d"))[1][1]["delta"]["text"]
    )


@dataclass(frozen=True)
class Fault:
    error: SurecallError
    status: int
    kind: str


def _status(code: Code, status: int | None = None) -> ProviderStatusError:
    return ProviderStatusError(code, "Why.", hint="Do this.", status=status)


FAULTS = (
    Fault(
        RequestError(Code.INVALID_REQUEST, "Why.", hint="Do this."), 400, "invalid_request_error"
    ),
    Fault(_status(Code.AUTH), 401, "authentication_error"),
    Fault(_status(Code.PAYMENT_REQUIRED), 402, "billing_error"),
    Fault(_status(Code.FORBIDDEN), 403, "permission_error"),
    Fault(_status(Code.NOT_FOUND), 404, "not_found_error"),
    Fault(_status(Code.CONFLICT), 409, "conflict_error"),
    Fault(_status(Code.REQUEST_TOO_LARGE), 413, "request_too_large"),
    Fault(_status(Code.UNPROCESSABLE), 422, "invalid_request_error"),
    Fault(_status(Code.RATE_LIMIT), 429, "rate_limit_error"),
    Fault(_status(Code.UPSTREAM_5XX, 500), 500, "api_error"),
    Fault(_status(Code.OVERLOADED), 529, "overloaded_error"),
    Fault(ProviderTimeoutError(Code.IDLE_TIMEOUT, "Why.", hint="Do this."), 504, "timeout_error"),
    Fault(ProviderConnectionError(Code.DNS_FAILURE, "Why.", hint="Do this."), 503, "api_error"),
    Fault(ProviderReplyError(Code.STREAM_TRUNCATED, "Why.", hint="Do this."), 502, "api_error"),
    Fault(RunError(Code.NO_TOOL_CALLS, "Why.", hint="Do this."), 500, "api_error"),
)


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.error.code)
def test_errors_have_the_names_of_the_format(case: Fault) -> None:
    """Whole or in the middle of a stream."""
    fault = PROTOCOL.render_error(case.error)
    body = {"type": "error", "error": {"type": case.kind, "message": "Why. Do this."}}
    assert (fault.status, fault.body) == (case.status, body)
    assert _events(PROTOCOL.open_writer(model="m").fail(case.error)) == [("error", body)]
