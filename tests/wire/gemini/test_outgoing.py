"""Replies and errors as a server of the format answers them."""

from typing import Any

import pytest

from surecall.base.errors import Code, ProviderStatusError, RequestError
from surecall.base.records import RawCall, Reply, Usage

from .wire import GEMINI, fold, parse

REPLY = Reply(
    content="Hi",
    reasoning="Hm.",
    calls=(RawCall("c1", "a/b", '{"x":1}', "tool_calls", {"thought_signature": "S1", "k": 1}),),
    finish_reason="tool_calls",
    usage=Usage(10, 8, 18, 3, 4),
    model="m",
    id="r",
    extra={"thought_signature": "S0", "thinking_blocks": []},
)


def test_a_reply_is_rendered_whole() -> None:
    """Text arguments become the object they say; foreign echo fields are left out."""
    assert GEMINI.render_reply(REPLY) == {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": "Hi", "thoughtSignature": "S0"},
                        {
                            "functionCall": {"id": "c1", "name": "_x_a_2f_b", "args": {"x": 1}},
                            "thoughtSignature": "S1",
                        },
                    ],
                },
                "index": 0,
                "finishReason": "STOP",
            }
        ],
        "modelVersion": "m",
        "responseId": "r",
        "usageMetadata": {
            "promptTokenCount": 10,
            "candidatesTokenCount": 5,
            "totalTokenCount": 18,
            "thoughtsTokenCount": 3,
            "cachedContentTokenCount": 4,
        },
    }


def test_a_streamed_reply_says_the_same() -> None:
    """Signatures travel with it."""
    writer = GEMINI.open_writer(model="m", reply_id="r")
    data = writer.begin() + writer.reasoning("Hm.") + writer.text("H") + writer.text("i")
    data += writer.text("") + writer.call(REPLY.calls[0]) + writer.end(REPLY)
    streamed = GEMINI.parse_message(fold(data)[0])
    assert streamed == parse(GEMINI.render_reply(REPLY))
    assert streamed.calls[0].extra == {"thought_signature": "S1"}
    assert streamed.extra == {"thought_signature": "S0"}


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        (None, {}),
        (" ", {}),
        ({"a": 1}, {"a": 1}),
        ('{"a": ', {"_unreadable_arguments": '{"a": '}),
        ([1], {"_unreadable_arguments": "[1]"}),
    ],
)
def test_arguments_are_always_an_object(arguments: Any, args: dict[str, Any]) -> None:
    """What could not be read is shown, never made up."""
    body = GEMINI.render_reply(Reply(calls=(RawCall(None, "a", arguments),)))
    (part,) = body["candidates"][0]["content"]["parts"]
    assert part == {"functionCall": {"name": "a", "args": args}}


@pytest.mark.parametrize(
    ("finish", "wire"),
    [("stop", "STOP"), ("length", "MAX_TOKENS"), ("content_filter", "SAFETY"), ("odd", "OTHER")],
)
def test_finish_reasons_are_those_of_the_format(finish: str, wire: str) -> None:
    """Clients check them against a list."""
    body = GEMINI.render_reply(Reply(content="x", finish_reason=finish))
    assert body["candidates"][0]["finishReason"] == wire


def test_errors_have_the_shape_of_the_format() -> None:
    """A number, a name and what to do."""
    fault = GEMINI.render_error(RequestError(Code.INVALID_REQUEST, "Wrong.", hint="Do right."))
    body = {"error": {"code": 400, "message": "Wrong. Do right.", "status": "INVALID_ARGUMENT"}}
    assert (fault.status, fault.body) == (400, body)
    fault = GEMINI.render_error(ProviderStatusError(Code.RATE_LIMIT, "Slow.", status=429))
    assert (fault.status, fault.body["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
    fault = GEMINI.render_error(ProviderStatusError(Code.UPSTREAM_5XX, "Boom.", status=500))
    assert fault.body["error"]["status"] == "INTERNAL"
