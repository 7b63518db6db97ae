"""Requests and replies that every wire format can carry, and what must survive the way."""

from typing import Any

from hypothesis import strategies as st

from surecall.base.errors import JSONTextError
from surecall.base.records import (
    Message,
    ModelRequest,
    RawCall,
    Reply,
    ToolCall,
    ToolSpec,
    Usage,
)
from surecall.text import decode

__all__ = ["CONVERSATION", "essence_of_reply", "essence_of_request", "replies", "requests", "words"]

_CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"])
words = st.text(_CHARACTERS, min_size=1, max_size=20).filter(str.strip)
"""Text that says something."""
names = st.from_regex(r"[a-z][a-z0-9_]{0,15}", fullmatch=True)
ids = st.from_regex(r"call_[A-Za-z0-9]{4,12}", fullmatch=True)
_scalars = st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(_CHARACTERS)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(words, _values, max_size=3)
PARAMETERS = {"type": "object", "properties": {"what": {"type": "string"}}}

CONVERSATION = ModelRequest(
    model="m",
    messages=(
        Message("system", "Be brief."),
        Message("user", "What is in a and b?"),
        Message(
            "assistant",
            "Let me look.",
            (
                ToolCall(id="call_1", name="look", arguments={"what": "a"}),
                ToolCall(id="call_2", name="look", arguments={"what": "b", "deep": [1, None]}),
            ),
        ),
        Message("tool", "one", tool_call_id="call_1"),
        Message("tool", '{"two":2}', tool_call_id="call_2"),
        Message("assistant", "One and two."),
        Message("user", "Thanks. And c?"),
    ),
    tools=(ToolSpec(name="look", description="Looks.", parameters=PARAMETERS),),
    tool_choice={"type": "function", "function": {"name": "look"}},
    params={"temperature": 0.5, "max_tokens": 100},
)
"""One conversation in which everything occurs that all formats have."""


@st.composite
def requests(draw: st.DrawFn) -> ModelRequest:
    """Make a conversation of one to three rounds, with calls and their results."""
    messages = [Message("system", draw(words))] if draw(st.booleans()) else []
    call_ids = iter(draw(st.lists(ids, min_size=9, max_size=9, unique=True)))
    tools = draw(st.lists(names, min_size=1, max_size=3, unique=True))
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message("user", draw(words)))
        calls = tuple(
            ToolCall(id=next(call_ids), name=draw(st.sampled_from(tools)), arguments=given)
            for given in draw(st.lists(arguments, max_size=3))
        )
        if calls:
            messages.append(Message("assistant", draw(st.none() | words), calls))
            messages += [Message("tool", draw(words), tool_call_id=call.id) for call in calls]
        messages.append(Message("assistant", draw(words)))
    messages.append(Message("user", draw(words)))
    return ModelRequest(
        model="m",
        messages=tuple(messages),
        tools=tuple(
            ToolSpec(name=name, description="Does it.", parameters=PARAMETERS) for name in tools
        ),
        stream=draw(st.booleans()),
    )


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Make a reply with text, reasoning and calls, each of which may be missing."""
    given = draw(st.lists(arguments, max_size=3))
    call_ids = draw(st.lists(ids, min_size=len(given), max_size=len(given), unique=True))
    calls = tuple(
        RawCall(call_id, draw(names), value) for call_id, value in zip(call_ids, given, strict=True)
    )
    content = draw(words if not calls else st.none() | words)
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length", "content_filter"]))
    made, taken = draw(st.integers(0, 10**6)), draw(st.integers(0, 10**6))
    usage = Usage(taken, made, taken + made, cached_tokens=draw(st.integers(0, taken)))
    return Reply(
        content=content,
        reasoning=draw(st.none() | words),
        calls=calls,
        finish_reason=finish,
        usage=draw(st.sampled_from([None, usage])),
        model="m",
        id="reply_1",
    )


def essence_of_reply(reply: Reply) -> dict[str, Any]:
    """Return what a reply says, whichever way arguments were written."""
    return {
        "content": reply.content or "",
        "reasoning": reply.reasoning or "",
        "calls": [(call.id, call.name, _meant(call.arguments)) for call in reply.calls],
        "finish_reason": reply.finish_reason,
        "usage": reply.usage or Usage(),  # some formats cannot leave it out
    }


def essence_of_request(request: ModelRequest) -> dict[str, Any]:
    """Return what a request says: who said what, which calls were made, and their results."""
    said: list[tuple[str, str]] = []
    calls: list[tuple[str, str, Any]] = []
    results: list[tuple[str | None, Any]] = []
    for message in request.messages:
        if message.role == "tool":
            results.append((message.tool_call_id, _meant(message.text)))
            continue
        if message.text:
            said.append((message.role, message.text))
        calls += [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return {
        "model": request.model,
        "said": said,
        "calls": calls,
        "results": results,
        "tools": [(tool.name, tool.description) for tool in request.tools],
        "tool_choice": request.tool_choice,
        "stream": request.stream,
    }


def _meant(value: Any) -> Any:
    """Return the object that a text stands for; other text stands for itself."""
    if not isinstance(value, str):
        return value
    try:
        decoded = decode(value)
    except JSONTextError:
        return value
    return decoded if isinstance(decoded, dict) else value
