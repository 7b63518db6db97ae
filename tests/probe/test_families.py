"""The questions are the same in every wire format; what a format cannot carry is found out."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from support.capability_upstream import CapabilityUpstream, Truth
from surecall.base.records import WireReply, WireRequest
from surecall.models.probe import probe_model, select_questions
from surecall.models.transport import HttpTransport, WireStream
from surecall.text import encode
from surecall.wire import ChatCompletions, WireProtocol, find_protocol

QUESTIONS = (
    "tools",
    "tools_seen",
    "tool_choice",
    "parallel_calls",
    "parallel_false",
    "call_ids",
    "empty_arguments",
    "strict_tools",
    "json_object",
    "json_schema",
    "grammar",
)
ALL = {
    "supports_tool_use": True,
    "tool_choices": ("auto", "none", "required", "named"),
    "supports_parallel_tools": True,
    "honours_parallel_false": True,
    "unique_call_ids": True,
    "empty_arguments": "object",
    "strict_tools": True,
    "json_object": True,
    "json_schema": True,
    "grammar": False,
}


class FamilyTransport:
    """Answers requests of one wire format with what a chat completions upstream says."""

    def __init__(self, inner: HttpTransport, family: WireProtocol) -> None:
        self._inner = inner
        self._family = family

    async def send(self, request: WireRequest) -> WireReply:
        """Translate the request, ask, and translate the reply back."""
        chat = ChatCompletions()
        answer = await self._inner.send(chat.render_request(self._family.parse_request(request)))
        reply = chat.parse_message(chat.parse_body(answer.body))
        body = encode(self._family.render_reply(reply))
        return WireReply(status=200, headers={"content-type": "application/json"}, body=body)

    def stream(self, request: WireRequest) -> AbstractAsyncContextManager[WireStream]:
        """Streams are compared in the tests of each format."""
        raise AssertionError("no question here is streamed")

    async def aclose(self) -> None:
        """The inner transport is closed by whoever opened it."""


async def fields_of(name: str, truth: Truth) -> dict[str, Any]:
    """Probe a provider that speaks a wire format."""
    family = find_protocol(name)
    async with CapabilityUpstream(truth) as upstream, HttpTransport(upstream.url) as inner:
        transport = FamilyTransport(inner, family)
        report = await probe_model(transport, family, "m", questions=select_questions(QUESTIONS))
    assert report.error is None
    return report.fields


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("responses", {}),
        ("messages", {"json_object": False}),
        ("gemini", {"honours_parallel_false": False, "strict_tools": False}),
    ],
)
async def test_a_capable_provider_is_known_in_every_format(
    name: str, differs: dict[str, Any]
) -> None:
    """Everything is found out, but for what the format has no field for."""
    assert await fields_of(name, Truth()) == ALL | differs


@pytest.mark.parametrize("name", ["responses", "messages", "gemini"])
async def test_dropped_tools_are_noticed_in_every_format(name: str) -> None:
    """The count of tokens in the prompt gives it away wherever it is written."""
    fields = await fields_of(name, Truth(tools="dropped"))
    assert fields["supports_tool_use"] is False
