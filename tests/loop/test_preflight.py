"""Requests that must not be sent."""

from dataclasses import dataclass, field
from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, RequestError
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.loop.prompt_runner import check_request, find_excess
from surecall.models.profiles import RESERVED_REQUEST_KEYS, Capabilities
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.reading.transforms import TransformRegistry

TOOLS = (ToolSpec(name="look"),)
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}


@dataclass(frozen=True)
class Case:
    """A request, what the model can do, and the code of the refusal."""

    id: str
    code: str
    request: dict[str, Any] = field(default_factory=dict[str, Any])
    can: dict[str, Any] = field(default_factory=dict[str, Any])
    says: str = ""


NO = "CAPABILITY_UNSUPPORTED"
CASES = [
    Case("plain", ""),
    Case("tools", "", {"tools": TOOLS}),
    Case("stream", "", {"stream": True}),
    Case("json object", "", {"response_format": {"type": "json_object"}}, {"json_object": True}),
    Case("schema", "", {"response_format": SCHEMA}, {"json_schema": True}),
    Case("another format", "", {"response_format": {"type": "text"}}),
    Case(
        "tools and a format",
        Code.TOOLS_WITH_RESPONSE_FORMAT,
        {"tools": TOOLS, "response_format": SCHEMA},
        {"json_schema": True},
    ),
    Case("no tools", NO, {"tools": TOOLS}, {"supports_tool_use": False}, "supports_tool_use"),
    Case("no streaming", NO, {"stream": True}, {"streaming": False}, "stream=False"),
    Case(
        "no json object",
        NO,
        {"response_format": {"type": "json_object"}},
        {"json_object": False},
        "json_object",
    ),
    Case("no schema", NO, {"response_format": SCHEMA}, {"json_schema": False}, "json_schema"),
    *(
        Case(f"reserved {key}", Code.RESERVED_KEY, {"params": {key: 1}}, says=key)
        for key in sorted(RESERVED_REQUEST_KEYS)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_is_checked_before_it_costs_anything(case: Case) -> None:
    """What cannot be right is refused with a code and a way out."""
    request = ModelRequest(model="m", messages=(Message("user", "hi"),), **case.request)
    capabilities = Capabilities(**case.can)
    if not case.code:
        check_request(request, capabilities)
        return
    with pytest.raises(RequestError) as caught:
        check_request(request, capabilities)
    assert caught.value.code == case.code
    assert case.says in str(caught.value)
    assert caught.value.hint


def excess_of(
    *messages: Message, window: int, reserve: int = 0, tools: tuple[ToolSpec, ...] = ()
) -> RequestError | None:
    """Return the refusal of a prompt, if it is refused."""
    request = ModelRequest(model="m", messages=messages, tools=tools)
    capabilities = Capabilities(context_window_tokens=window, reserved_response_tokens=reserve)
    return find_excess(request, capabilities)


@dataclass(frozen=True)
class Prompt:
    """A text, and as few tokens as a frugal tokenizer makes of it."""

    id: str
    text: str
    tokens: int


PROMPTS = [
    Prompt("nothing", "", 0),
    Prompt("blanks", " " * 100_000, 782),
    Prompt("blanks that are trimmed", " \n\t\u3000" * 100_000, 0),
    Prompt("a ruled line", "=" * 100_000, 782),
    Prompt("wide characters", "\uff1d" * 100_000, 782),
    Prompt("four words in a token", "in the end of " * 10_000, 10_000),
    Prompt("a long name", ".translatesAutoresizingMaskIntoConstraints" * 1_000, 1_000),
    Prompt("one letter words", "a b c d " * 10_000, 1_250),
    Prompt("Chinese", "\u4f60\u597d\u4e16\u754c" * 10_000, 10_000),
]


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: case.id)
def test_a_prompt_that_may_fit_is_never_refused(case: Prompt) -> None:
    """However well a tokenizer packs the text, the estimate is not above it."""
    assert excess_of(Message("user", case.text), window=case.tokens) is None


def test_the_refusal_names_the_largest_parts() -> None:
    """Message and tool sizes stand in the text and, for programs, in the details."""
    call = ToolCall(id="c", name="save", arguments={"text": "note " * 4_000, "n": [1, {"a": "b"}]})
    error = excess_of(
        Message("system", "rule " * 800),
        Message("user", [{"type": "text", "text": "ask " * 8_000}, {"type": "image_url"}]),
        Message("assistant", None, (call,)),
        Message("tool", "x" * 1_280, tool_call_id="c"),
        window=1_000,
        reserve=200,
        tools=(ToolSpec(name="search", description="find " * 1_600),),
    )
    assert error is not None
    assert error.code == "PROMPT_TOO_LARGE"
    assert "at least 1810 tokens, but there is room for 800" in error.message
    assert "messages[1] (user) 1000, messages[2] (assistant) 500, tool search 200" in error.message
    assert error.details == {
        "context_window_tokens": 1_000,
        "reserved_response_tokens": 200,
        "min_prompt_tokens": 1_810,
        "largest": [
            {"part": "messages[1] (user)", "min_tokens": 1_000},
            {"part": "messages[2] (assistant)", "min_tokens": 500},
            {"part": "tool search", "min_tokens": 200},
            {"part": "messages[0] (system)", "min_tokens": 100},
            {"part": "messages[3] (tool)", "min_tokens": 10},
        ],
    }


def test_what_may_not_reach_the_model_is_not_counted() -> None:
    """Templates drop earlier thoughts, and images are not text."""
    thought = Message("assistant", f"<think>{'so ' * 9_000}</think>Yes.")
    image = Message("user", [{"type": "image_url", "image_url": {"url": "data:" + "ab " * 9_000}}])
    reasoned = Message("assistant", "Yes.", extra={"reasoning_content": "so " * 9_000})
    assert excess_of(thought, image, reasoned, window=10) is None


async def test_a_transform_may_make_a_prompt_fit() -> None:
    """What is measured is what is sent."""
    registry = TransformRegistry.builtin()
    registry.register("messages", "last_only", lambda messages: messages[-1:])
    history = [Message("user", "long " * 9_000), Message("assistant", "Yes.")]
    settings: dict[str, Any] = {
        "model": "m",
        "history": history,
        "transforms": registry,
        "capabilities": {"context_window_tokens": 100},
    }
    sent = ScriptedTransport(["done"])
    await surecall.run("hi", transport=sent, message_transforms=["last_only"], **settings)
    assert len(sent.requests[0].body["messages"]) == 1
    kept = ScriptedTransport(["done"])
    with pytest.raises(RequestError, match="PROMPT_TOO_LARGE"):
        await surecall.run("hi", transport=kept, **settings)
    assert kept.requests == []


async def test_a_run_that_outgrows_the_window_keeps_what_it_did() -> None:
    """The error has the trace and the history up to the request that was not sent."""

    @surecall.tool(effect="read")
    def fetch() -> str:
        """Fetch a page."""
        return "word " * 20_000

    transport = ScriptedTransport([assistant(None, tool_call("fetch")), "done"])
    with pytest.raises(RequestError, match=r"messages\[2\] \(tool\) 2501") as caught:
        await surecall.run(
            "hi",
            model="m",
            tools=[fetch],
            transport=transport,
            capabilities={"context_window_tokens": 2_000},
        )
    assert len(transport.requests) == 1
    assert [message.role for message in caught.value.history] == ["user", "assistant", "tool"]
    assert caught.value.trace.error.code == "PROMPT_TOO_LARGE"
    assert [call.name for turn in caught.value.trace.turns for call in turn.calls] == ["fetch"]
