"""Whole replies."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from surecall.base.errors import ProviderError
from surecall.base.records import Defect, RawCall, Reply, Usage
from surecall.reading import read_reply
from surecall.wire import RawReply
from surecall.wire.messages import Messages

from .wire import body

PROTOCOL = Messages()
TEXT = {"type": "text", "text": "Hi."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look_up", "input": {"q": "x"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "sig"}
HIDDEN = {"type": "redacted_thinking", "data": "xyz"}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}


def _parse(content: Any, stop_reason: str | None = "end_turn", **fields: Any) -> Reply:
    return PROTOCOL.parse_message(PROTOCOL.parse_body(body(content, stop_reason, **fields)))


def _codes(reply: Reply) -> list[str]:
    return [defect.code for defect in reply.defects]


def test_a_clean_reply_is_understood_without_defects() -> None:
    """Thoughts, text and calls each go where records have them."""
    reply = _parse([THOUGHT, HIDDEN, TEXT, USE], "tool_use")
    assert reply == Reply(
        content="Hi.",
        reasoning="Hm.",
        calls=(RawCall("toolu_1", "look_up", {"q": "x"}),),
        finish_reason="tool_calls",
        usage=Usage(14, 7, 21, 0, 4),
        model="m",
        id="msg_1",
        extra={"thinking_blocks": [THOUGHT, HIDDEN]},
    )


def test_the_message_alone_is_enough_after_a_round_trip() -> None:
    """A trace keeps the provider's own object, and replay reads that."""
    raw = PROTOCOL.parse_body(body([THOUGHT, TEXT, USE], "tool_use", stop_sequence="x"))
    again = msgspec.convert(json.loads(msgspec.json.encode(raw)), RawReply)
    assert again.message == {
        "type": "message",
        "role": "assistant",
        "content": [THOUGHT, TEXT, USE],
        "stop_sequence": "x",
    }
    assert PROTOCOL.parse_message(again) == PROTOCOL.parse_message(raw)


@pytest.mark.parametrize(
    ("stop_reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
        ("Something_New", "something_new"),
        (None, None),
    ],
)
def test_reasons_to_stop_have_one_name(stop_reason: str | None, finish: str | None) -> None:
    """The rest of the program knows one set of words."""
    assert _parse([TEXT], stop_reason).finish_reason == finish


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"input_tokens": 3, "output_tokens": 2}, Usage(3, 2, 5)),
        (
            {
                "input_tokens": 3,
                "cache_creation_input_tokens": 5,
                "cache_read_input_tokens": 7,
                "output_tokens": 2,
                "output_tokens_details": {"thinking_tokens": 1},
            },
            Usage(15, 2, 17, 1, 7, 5),
        ),
        ({"input_tokens": 3, "cache_read_input_tokens": None, "output_tokens": -1}, Usage(3, 0, 3)),
        ({}, None),
        ("x", None),
        (None, None),
    ],
)
def test_tokens_are_counted_with_those_of_the_cache(usage: Any, counts: Usage | None) -> None:
    """All input is input, wherever it came from."""
    assert _parse([TEXT], usage=usage).usage == counts


def test_blocks_of_the_providers_own_tools_stay_in_the_message() -> None:
    """They are no calls of ours, and nothing odd."""
    reply = _parse([{**TEXT, "text": "A "}, SEARCH, FOUND, {**TEXT, "text": "b."}])
    assert (reply.content, reply.calls, reply.defects) == ("A b.", (), ())


def test_fields_beside_a_call_are_kept() -> None:
    """The provider may want them back."""
    reply = _parse([{**USE, "caller": {"type": "direct"}, "toolset_name": None}], "tool_use")
    assert reply.calls[0].extra == {"caller": {"type": "direct"}}


@dataclass(frozen=True)
class Odd:
    id: str
    content: Any
    codes: list[str]
    text: str | None = None
    calls: tuple[RawCall, ...] = ()


ODD = (
    Odd("text", "Hi.", ["CONTENT_AS_TEXT"], "Hi."),
    Odd(
        "one block", USE, ["CONTENT_NOT_USABLE"], calls=(RawCall("toolu_1", "look_up", {"q": "x"}),)
    ),
    Odd("nothing", [], []),
    Odd("no block", ["Hi.", None, 3, TEXT], ["CONTENT_NOT_USABLE"] * 3, "Hi."),
    Odd("unknown block", [{"type": "hologram"}, TEXT], ["PART_NOT_KNOWN"], "Hi."),
    Odd("type of another kind", [{"type": {"a": []}}, {}, TEXT], ["CONTENT_NOT_USABLE"] * 2, "Hi."),
    Odd("text of another kind", [{"type": "text", "text": 3}, TEXT], ["CONTENT_NOT_USABLE"], "Hi."),
    Odd(
        "input as text",
        [{**USE, "input": '{"q": "x"}'}],
        ["ARGUMENTS_AS_TEXT"],
        calls=(RawCall("toolu_1", "look_up", '{"q": "x"}'),),
    ),
    Odd(
        "no input",
        [{"type": "tool_use", "id": "a", "name": "b"}],
        ["ARGUMENTS_BLANK"],
        calls=(RawCall("a", "b", None),),
    ),
    Odd(
        "blank input",
        [{**USE, "input": " "}],
        ["ARGUMENTS_BLANK"],
        calls=(RawCall("toolu_1", "look_up", " "),),
    ),
    Odd(
        "nothing but a type",
        [{"type": "tool_use"}],
        ["ARGUMENTS_BLANK"],
        calls=(RawCall(None, None, None),),
    ),
)


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.id)
def test_odd_shapes_are_understood_and_noted(case: Odd) -> None:
    """Nothing is raised, and nothing is dropped without a word."""
    reply = _parse(case.content)
    assert (reply.content, reply.calls, _codes(reply)) == (case.text, case.calls, case.codes)


def test_an_input_as_text_is_read_like_any_other() -> None:
    """A call with it runs."""
    reading = read_reply(_parse([{**USE, "input": '{"q": "x"}'}], "tool_use"))
    assert reading.calls[0].arguments == {"q": "x"}


def test_a_call_without_an_id_gets_one() -> None:
    """Reading gives it, and notes that it was missing."""
    reading = read_reply(_parse([{"type": "tool_use", "name": "look_up", "input": {}}], "tool_use"))
    assert (reading.calls[0].id, reading.calls[0].arguments) == ("tc_1", {})
    assert [defect.code for defect in reading.defects] == ["ID_NOT_USABLE"]


def test_a_call_of_a_reply_that_reached_its_limit_is_cut() -> None:
    """Its input may look whole, and is not trusted."""
    (call,) = read_reply(_parse([USE], "max_tokens")).calls
    assert (call.state, call.arguments) == ("cut", None)


def test_a_key_given_twice_in_an_input_is_refused() -> None:
    """Which of the two was meant cannot be known."""
    data = body([USE], "tool_use").replace(b'{"q": "x"}', b'{"q": "x", "q": "y"}')
    raw = PROTOCOL.parse_body(data)
    note = "A key inside arguments has differing values: /content/0/input/q"
    assert raw.defects == (Defect("DUPLICATE_KEY", note, "/content"),)
    (call,) = read_reply(PROTOCOL.parse_message(raw)).calls
    assert (call.state, call.arguments) == ("unreadable", None)


@dataclass(frozen=True)
class Refused:
    id: str
    body: bytes
    code: str
    retryable: bool = True


ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
REFUSED = (
    Refused("empty", b"", "UPSTREAM_EMPTY"),
    Refused("page", b"<html><title>x</title></html>", "UPSTREAM_HTML", False),
    Refused("no JSON", b"oops", "UPSTREAM_INVALID_JSON"),
    Refused("cut", body([TEXT])[:-9], "UPSTREAM_INVALID_JSON"),
    Refused("array", b"[]", "UPSTREAM_NOT_A_REPLY", False),
    Refused("another format", b'{"choices": []}', "UPSTREAM_NOT_A_REPLY", False),
    Refused("error inside a success", json.dumps(ERROR).encode(), "OVERLOADED"),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_reply_is_refused_with_a_code(case: Refused) -> None:
    """The code says in which way, and whether to try again."""
    with pytest.raises(ProviderError) as caught:
        PROTOCOL.parse_body(case.body)
    assert (caught.value.code, caught.value.retryable) == (case.code, case.retryable)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", "BAD_REQUEST"),
        (401, "authentication_error", "AUTH"),
        (403, "permission_error", "FORBIDDEN"),
        (404, "not_found_error", "NOT_FOUND"),
        (413, "request_too_large", "REQUEST_TOO_LARGE"),
        (429, "rate_limit_error", "RATE_LIMIT"),
        (500, "api_error", "UPSTREAM_5XX"),
        (529, "overloaded_error", "OVERLOADED"),
    ],
)
def test_error_answers_have_their_codes(status: int, kind: str, code: str) -> None:
    """What the API says is kept in the error."""
    data = {"type": "error", "error": {"type": kind, "message": "Why."}, "request_id": "req_1"}
    error = PROTOCOL.parse_error(status, {}, json.dumps(data).encode())
    assert (error.code, error.status, error.provider_code) == (code, status, kind)
    assert (error.provider_message, error.request_id) == ("Why.", "req_1")
