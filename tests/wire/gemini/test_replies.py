"""Whole replies of Gemini, and its errors."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code, ProviderError, ProviderReplyError, ProviderStatusError
from surecall.base.records import RawCall, Reply, Usage
from surecall.wire import RawReply

from .wire import GEMINI, chunk, parse


def test_a_whole_reply_is_understood() -> None:
    """Thoughts, text, calls with their signatures, usage, model and id."""
    usage = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 2,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 4,
        "totalTokenCount": 20,
    }
    body = chunk(
        {"text": "Hm. ", "thought": True},
        {"text": "Let me "},
        {"text": "look.", "thoughtSignature": "S0"},
        {"functionCall": {"id": "c1", "name": "look", "args": {"a": 1}}, "thoughtSignature": "S1"},
        {"functionCall": {"name": "_x_a_2f_b"}},
        finish="STOP",
        usageMetadata=usage,
    )
    assert parse(body) == Reply(
        content="Let me look.",
        reasoning="Hm. ",
        calls=(
            RawCall("c1", "look", {"a": 1}, "tool_calls", {"thought_signature": "S1"}),
            RawCall(None, "a/b", {}),
        ),
        finish_reason="tool_calls",
        usage=Usage(12, 8, 20, 3, 4),
        model="gemini-x",
        id="r1",
        extra={"thought_signature": "S0"},
    )


def test_snake_case_is_understood() -> None:
    """Some servers write what their own SDK writes."""
    reply = parse(
        {
            "candidates": [
                {
                    "content": {
                        "parts": [
                            {"function_call": {"name": "look"}, "thought_signature": "S"},
                        ]
                    },
                    "finish_reason": "STOP",
                }
            ],
            "usage_metadata": {"prompt_token_count": 1, "candidates_token_count": 2},
        }
    )
    assert reply.calls == (RawCall(None, "look", {}, "tool_calls", {"thought_signature": "S"}),)
    assert (reply.finish_reason, reply.usage) == ("tool_calls", Usage(1, 2, 3))


@pytest.mark.parametrize(
    ("finish", "canonical"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("PROHIBITED_CONTENT", "content_filter"),
        ("OTHER", "other"),
        ("UNEXPECTED_TOOL_CALL", "unexpected_tool_call"),
        ("FINISH_REASON_UNSPECIFIED", None),
        (None, None),
    ],
)
def test_finish_reasons_are_canonical(finish: str | None, canonical: str | None) -> None:
    """Unknown ones stay readable; none is invented."""
    assert parse(chunk({"text": "x"}, finish=finish)).finish_reason == canonical


def test_a_reply_with_calls_that_ran_into_its_limit_is_not_finished() -> None:
    """Its calls may be cut."""
    body = chunk({"functionCall": {"name": "look", "args": {}}}, finish="MAX_TOKENS")
    assert parse(body).finish_reason == "length"


def test_a_call_the_provider_could_not_read_is_kept_apart() -> None:
    """What the model wrote may still be read as a call, but it is not text to show."""
    body = chunk(finish="MALFORMED_FUNCTION_CALL")
    body["candidates"][0]["finishMessage"] = (
        'Malformed function call: print(default_api.look(what="a"))'
    )
    reply = parse(body)
    assert reply.finish_reason == "malformed_function_call"
    assert (reply.content, reply.malformed) == (None, 'look(what="a")')
    assert [defect.code for defect in reply.defects] == [Code.MALFORMED_FUNCTION_CALL]
    assert "default_api.look" in reply.defects[0].message
    del body["candidates"][0]["content"], body["candidates"][0]["finishMessage"]
    assert (parse(body).content, parse(body).malformed) == (None, "")


@dataclass(frozen=True)
class Odd:
    id: str
    part: Any
    code: Code | None
    calls: int = 0


ODD = (
    Odd("arguments as text", {"functionCall": {"name": "a", "args": "{}"}}, "ARGUMENTS_AS_TEXT", 1),
    Odd("unknown kind", {"hologram": {}}, Code.PART_NOT_KNOWN),
    Odd("no part", "text", Code.CONTENT_NOT_USABLE),
    Odd("call as text", {"functionCall": "look()"}, Code.CALL_ENTRY_DROPPED),
    Odd("image", {"inlineData": {"mimeType": "image/png", "data": "AA=="}}, Code.PART_NOT_KNOWN),
    Odd("code", {"executableCode": {"code": "1"}}, None),
    Odd("only a signature", {"thoughtSignature": "S"}, None),
    Odd("name of another type", {"functionCall": {"name": 3}}, None, 1),
)


@pytest.mark.parametrize("case", ODD, ids=lambda case: case.id)
def test_odd_parts_are_noted(case: Odd) -> None:
    """And never stop the rest from being understood."""
    reply = parse(chunk(case.part, {"text": "Hi"}, finish="STOP"))
    assert [defect.code for defect in reply.defects] == ([case.code] if case.code else [])
    assert (reply.content, len(reply.calls)) == ("Hi", case.calls)


def test_other_candidates_are_left_alone() -> None:
    """The first is used, and the finding counts the rest."""
    body = chunk({"text": "a"}, finish="STOP")
    body["candidates"].append({"content": {"parts": [{"text": "b"}]}, "index": 1})
    reply = parse(body)
    assert reply.content == "a"
    assert [defect.code for defect in reply.defects] == [Code.CHOICES_IGNORED]


def test_a_key_with_two_values_is_noted() -> None:
    """Which of them is meant cannot be known."""
    call = b'{"functionCall":{"name":"a","args":{"k":1,"k":2}}}'
    body = b'{"candidates":[{"content":{"parts":[' + call + b']},"finishReason":"STOP"}]}'
    raw = GEMINI.parse_body(body)
    assert [defect.code for defect in raw.defects] == [Code.DUPLICATE_KEY]


@dataclass(frozen=True)
class Refused:
    id: str
    body: Any
    code: str
    error: type[ProviderError] = ProviderReplyError


REFUSED = (
    Refused("empty", b"", "UPSTREAM_EMPTY"),
    Refused("page", b"<html><title>x</title>", "UPSTREAM_HTML"),
    Refused("cut", b'{"candidates": [', "UPSTREAM_INVALID_JSON"),
    Refused("number", b"3", "UPSTREAM_NOT_A_REPLY"),
    Refused("list of numbers", b"[3]", "UPSTREAM_NOT_A_REPLY"),
    Refused("empty list", b"[]", "UPSTREAM_NO_CHOICES"),
    Refused("no candidates", b"{}", "UPSTREAM_NO_CHOICES"),
    Refused("empty candidates", b'{"candidates": []}', "UPSTREAM_NO_CHOICES"),
    Refused("candidate of another type", b'{"candidates": [3]}', "UPSTREAM_NOT_A_REPLY"),
    Refused("empty candidate", b'{"candidates": [{}]}', "UPSTREAM_NOT_A_REPLY"),
    Refused("chat completion", b'{"choices": [{"message": {}}]}', "UPSTREAM_NO_CHOICES"),
    Refused("list without a finish", json.dumps([chunk({"text": "a"})]), "STREAM_TRUNCATED"),
    Refused(
        "error with 200",
        b'{"error": {"code": 429, "message": "slow"}}',
        "RATE_LIMIT",
        ProviderStatusError,
    ),
    Refused(
        "error in a list",
        b'[{"error": {"code": 500, "message": "boom", "status": "INTERNAL"}}]',
        "UPSTREAM_5XX",
        ProviderStatusError,
    ),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_reply_is_refused_with_its_own_code(case: Refused) -> None:
    """None of these reaches the loop as a message."""
    body = case.body.encode() if isinstance(case.body, str) else case.body
    with pytest.raises(case.error) as caught:
        GEMINI.parse_body(body)
    assert caught.value.code == case.code


def test_a_blocked_prompt_is_an_error_of_its_own() -> None:
    """It is neither an empty answer nor worth another try."""
    body = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []}}
    with pytest.raises(ProviderReplyError) as caught:
        parse(body)
    error = caught.value
    assert (error.code, error.provider_code, error.retryable) == ("PROMPT_BLOCKED", "SAFETY", False)


@pytest.mark.parametrize(
    "message",
    [{}, {"parts": None}, {"parts": 3}, {"parts": [None, 3, {}]}, {"parts": [{"text": 3}]}],
)
def test_a_message_of_any_shape_is_read(message: dict[str, Any]) -> None:
    """Nothing is raised."""
    assert GEMINI.parse_message(RawReply(message=message)).content is None


def _fault(status: int, message: str, *details: dict[str, Any]) -> ProviderError:
    error = {"code": status, "message": message, "status": "X", "details": list(details)}
    return GEMINI.parse_error(status, {}, json.dumps({"error": error}).encode())


QUOTA_TEXT = "You exceeded your current quota, please check your plan and billing details."
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12.5s"}


def test_a_bad_key_is_told_from_a_bad_request() -> None:
    """Both come as 400."""
    bad_key = _fault(400, "API key not valid.", {"reason": "API_KEY_INVALID"})
    assert (bad_key.code, _fault(400, "Bad schema.").code) == ("AUTH", "BAD_REQUEST")


def test_a_short_pause_is_told_from_a_quota_that_is_used_up() -> None:
    """The text is the same; the details are not."""
    minute = {"violations": [{"quotaId": "RequestsPerMinutePerProject-FreeTier"}]}
    day = {"violations": [{"quotaId": "RequestsPerDayPerProject-FreeTier"}]}
    pause = _fault(429, QUOTA_TEXT, minute, RETRY)
    assert (pause.code, pause.retryable, pause.retry_after_s) == ("RATE_LIMIT", True, 12.5)
    used_up = _fault(429, QUOTA_TEXT, day, RETRY)
    assert (used_up.code, used_up.retryable) == ("QUOTA_EXCEEDED", False)
    assert _fault(429, QUOTA_TEXT).code == "QUOTA_EXCEEDED"


@pytest.mark.parametrize("delay", ["12", "s", "x12s", "1e9s", 12, "1" * 30 + "s", "1.2.3s"])
def test_an_odd_delay_is_not_used(delay: Any) -> None:
    """Only plain seconds count."""
    assert _fault(503, "Busy.", {"retryDelay": delay}).retry_after_s is None


def test_a_fault_that_is_no_json_is_understood() -> None:
    """A proxy may answer for the provider."""
    assert GEMINI.parse_error(502, {}, b"bad gateway").code == "UPSTREAM_5XX"
