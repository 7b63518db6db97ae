"""Whole replies."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from surecall.base.errors import ProviderError, ProviderReplyError, ProviderStatusError
from surecall.base.records import RawCall, Reply, Usage
from surecall.reading import read_reply
from surecall.wire import RawReply, Responses

from .builders import call_item, response, text_item, thought_item

RESPONSES = Responses()


def parsed(*output: Any, **fields: Any) -> Reply:
    """Parse a response with these items, by way of its stored form."""
    raw = RESPONSES.parse_body(json.dumps(response(*output, **fields)).encode())
    stored = msgspec.json.decode(msgspec.json.encode(raw), type=RawReply)
    assert stored == raw
    return RESPONSES.parse_message(stored)


def codes(reply: Reply) -> list[str]:
    """Return the codes of what was odd."""
    return [defect.code for defect in reply.defects]


def test_text_usage_and_names_are_read() -> None:
    """A plain answer leaves nothing to note."""
    usage = {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 12,
    }
    assert parsed(text_item("Hello"), usage=usage) == Reply(
        content="Hello",
        finish_reason="stop",
        usage=Usage(7, 5, 12, reasoning_tokens=2, cached_tokens=3),
        model="m",
        id="resp_1",
    )


def test_a_call_has_the_id_that_its_result_must_name() -> None:
    """It is not the id of the item."""
    reply = parsed(call_item("c1"), call_item("c2", "{}", namespace="n", caller=None))
    assert reply.calls == (
        RawCall("c1", "look", '{"a":1}'),
        RawCall("c2", "look", "{}", extra={"namespace": "n"}),
    )
    assert (reply.content, reply.finish_reason, reply.defects) == (None, "tool_calls", ())


def test_reasoning_is_read_and_kept_for_the_way_back() -> None:
    """Each piece is a paragraph of its own; the item is kept as it is."""
    summed = thought_item("rs_1", "one", "two", encrypted_content="e")
    spoken = thought_item("rs_2", content=[{"type": "reasoning_text", "text": "three"}])
    reply = parsed(summed, spoken, text_item("Hi", phase="final_answer"))
    assert reply.reasoning == "one\n\ntwo\n\nthree"
    assert reply.extra == {"reasoning_items": [summed, spoken], "phase": "final_answer"}
    assert reply.defects == ()


@pytest.mark.parametrize(
    ("output", "places"),
    [
        pytest.param(("r", "c1"), [None], id="before the only call"),
        pytest.param(("r", "text", "c1"), [None], id="before text"),
        pytest.param(("r", "c1", "r", "c2"), [None, "c2"], id="before each call"),
        pytest.param(("r", "text", "r", "c1"), [None, "c1"], id="before text and call"),
        pytest.param(("r", "r", "c1"), [None, None], id="two in a row"),
        pytest.param(("c1", "c2", "r"), [None], id="at the end"),
        pytest.param(("r", "c1", "r", "text"), ["c1", None], id="text after a call"),
    ],
)
def test_reasoning_remembers_what_it_led_to(output: tuple[str, ...], places: list[Any]) -> None:
    """Only when that is not what stands first in the turn."""
    made = {"r": thought_item(), "text": text_item("Hm.")}
    reply = parsed(*(made.get(item) or call_item(item) for item in output))
    assert [item.get("_before") for item in reply.extra["reasoning_items"]] == places


def test_a_refusal_stands_where_text_would() -> None:
    """Text wins when there is some."""
    refusal = {"type": "refusal", "refusal": "No."}
    text = {"type": "output_text", "text": "Well", "annotations": []}
    assert parsed(text_item("", content=[refusal])).content == "No."
    assert parsed(text_item("", content=[text, refusal])).content == "Well"


def test_texts_of_several_messages_follow_each_other() -> None:
    """As the SDK's own `output_text` puts them."""
    assert parsed(text_item("a"), text_item("b", "msg_2")).content == "ab"


@pytest.mark.parametrize(
    ("fields", "finish"),
    [
        pytest.param({"incomplete_details": {"reason": "max_output_tokens"}}, "length", id="limit"),
        pytest.param(
            {"incomplete_details": {"reason": "content_filter"}}, "content_filter", id="filter"
        ),
        pytest.param({"incomplete_details": {"reason": "Steered"}}, "steered", id="other"),
        pytest.param({}, "length", id="no reason"),
        pytest.param({"output": None}, "length", id="no output"),
    ],
)
def test_an_incomplete_response_says_why(fields: dict[str, Any], finish: str) -> None:
    """Without a reason it counts as cut, so that no call of it runs."""
    assert parsed(call_item(), status="incomplete", **fields).finish_reason == finish


def test_a_call_that_says_it_is_incomplete_is_cut() -> None:
    """Also in a response that says it is complete."""
    reply = parsed(call_item(status="incomplete"))
    assert reply.finish_reason == "length"
    assert read_reply(reply).calls[0].state == "cut"


def test_a_response_without_a_status_has_no_finish() -> None:
    """A finish is never invented."""
    assert parsed(call_item(), status=None).finish_reason is None


@dataclass(frozen=True)
class OddCase:
    id: str
    output: list[Any]
    codes: tuple[str, ...]
    content: str | None = None
    calls: int = 0


ODD = (
    OddCase("other call", [{"type": "custom_tool_call", "input": "x"}], ("PART_NOT_KNOWN",)),
    OddCase(
        "others, noted once",
        [{"type": "web_search_call"}, {"type": "web_search_call"}, text_item("a")],
        ("PART_NOT_KNOWN",),
        "a",
    ),
    OddCase("no type", [{"a": 1}, text_item("a")], ("CONTENT_NOT_USABLE",), "a"),
    OddCase("no item", [None, 5, call_item()], ("CALL_ENTRY_DROPPED",) * 2, None, 1),
    OddCase("content as text", [text_item("", content="a")], ("CONTENT_AS_TEXT",), "a"),
    OddCase(
        "content as number",
        [text_item("", content=5), text_item("a")],
        ("CONTENT_NOT_USABLE",),
        "a",
    ),
    OddCase("no content", [text_item("", content=None)], ()),
    OddCase(
        "odd parts",
        [text_item("", content=[{"type": "image"}, 5, {"type": "text", "text": "a"}])],
        ("PART_NOT_KNOWN", "CONTENT_NOT_USABLE"),
        "a",
    ),
    OddCase("arguments as object", [call_item(arguments={})], ("ARGUMENTS_AS_OBJECT",), None, 1),
    OddCase("blank arguments", [call_item(arguments=" ")], ("ARGUMENTS_BLANK",), None, 1),
    OddCase("no arguments", [call_item(arguments=None)], (), None, 1),
    OddCase("odd reasoning", [{"type": "reasoning", "summary": 5, "content": ["x", {}]}], ()),
)


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.id)
def test_odd_items_are_noted_and_the_rest_is_read(case: OddCase) -> None:
    """What is not known stays in the raw message."""
    reply = parsed(*case.output)
    assert tuple(codes(reply)) == case.codes
    assert (reply.content, len(reply.calls)) == (case.content, case.calls)


def test_an_output_of_another_shape_is_noted() -> None:
    """A stored message may hold anything."""
    reply = RESPONSES.parse_message(RawReply(message={"output": "x", "status": "completed"}))
    assert codes(reply) == ["CONTENT_NOT_USABLE"]
    assert (reply.content, reply.calls, reply.finish_reason) == (None, (), "stop")


def test_a_repeated_key_in_arguments_that_are_an_object_is_noted() -> None:
    """The codec keeps the last value, so it must be said here."""
    body = json.dumps(response(call_item(arguments={"a": 1})))
    body = body.replace('{"a": 1}', '{"a": 1, "a": 2}')
    reply = RESPONSES.parse_message(RESPONSES.parse_body(body.encode()))
    assert codes(reply) == ["DUPLICATE_KEY", "ARGUMENTS_AS_OBJECT"]
    assert read_reply(reply).calls[0].state == "unreadable"


@dataclass(frozen=True)
class RefusedCase:
    id: str
    body: Any
    code: str
    retryable: bool
    kind: type[ProviderError] = ProviderReplyError


REFUSED = (
    RefusedCase("empty", b"", "UPSTREAM_EMPTY", True),
    RefusedCase("page", b"<html><title>Hi</title>", "UPSTREAM_HTML", False),
    RefusedCase("not JSON", b"{", "UPSTREAM_INVALID_JSON", True),
    RefusedCase("array", [], "UPSTREAM_NOT_A_REPLY", False),
    RefusedCase("number", 5, "UPSTREAM_NOT_A_REPLY", False),
    RefusedCase("a completion", {"choices": []}, "UPSTREAM_NOT_A_REPLY", False),
    RefusedCase("null output", response(output=None), "UPSTREAM_NOT_A_REPLY", False),
    RefusedCase("still running", response(status="in_progress"), "UPSTREAM_NOT_A_REPLY", False),
    RefusedCase("cancelled", response(status="cancelled"), "UPSTREAM_NOT_A_REPLY", False),
    RefusedCase(
        "failed",
        response(status="failed", error={"code": "server_error", "message": "Oops."}),
        "UPSTREAM_ERROR_BODY",
        True,
        ProviderStatusError,
    ),
    RefusedCase(
        "failed by rate",
        response(status="failed", error={"code": "rate_limit_exceeded", "message": "Slow."}),
        "RATE_LIMIT",
        True,
        ProviderStatusError,
    ),
    RefusedCase(
        "failed silently", response(status="failed"), "UPSTREAM_ERROR_BODY", False, ProviderError
    ),
    RefusedCase(
        "error in a 200",
        {"error": {"type": "invalid_request_error", "message": "No."}},
        "BAD_REQUEST",
        False,
        ProviderStatusError,
    ),
    RefusedCase(
        "error object",
        {"object": "error", "message": "No.", "code": 404},
        "NOT_FOUND",
        False,
        ProviderStatusError,
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_reply_is_refused_with_a_code(case: RefusedCase) -> None:
    """It is never taken for an empty answer of the model."""
    body = case.body if isinstance(case.body, bytes) else json.dumps(case.body).encode()
    with pytest.raises(case.kind) as caught:
        RESPONSES.parse_body(body)
    assert (caught.value.code, caught.value.retryable) == (case.code, case.retryable)


def test_an_error_answer_is_understood() -> None:
    """The shape is the one of the other OpenAI format."""
    body = b'{"error": {"message": "No quota.", "code": "insufficient_quota"}}'
    error = RESPONSES.parse_error(429, {}, body)
    assert (error.code, error.retryable) == ("QUOTA_EXCEEDED", False)
