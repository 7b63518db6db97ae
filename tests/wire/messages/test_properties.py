"""What holds for any history and any stream."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.messages_rules import broken_rules
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.wire.messages import Messages

from .wire import body, fold, stream

PROTOCOL = Messages()

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
words = texts.filter(str.strip)
names = st.text("abcdefgh_", min_size=1, max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)
hints = st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}])
few_ids = st.sampled_from(["a", "b", "a.b", "a:b", "", "имя", "a__2"])


@st.composite
def parts(draw: st.DrawFn) -> dict[str, Any]:
    """Text or an image, with or without a hint."""
    if draw(st.booleans()):
        return {"type": "text", "text": draw(texts), **draw(hints)}
    url = draw(st.sampled_from(["data:image/png;base64,iVBO", "https://x.test/a.png"]))
    return {"type": "image_url", "image_url": {"url": url}, **draw(hints)}


contents = st.none() | texts | st.lists(parts(), max_size=3)
thoughts = st.lists(
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, texts)
    | st.just({"type": "redacted_thinking", "data": "x"})
    | st.just({"type": "thinking", "thinking": "unsigned"}),
    max_size=2,
)


@st.composite
def any_message(draw: st.DrawFn) -> Message:
    """Any message at all, in no order: calls without results, results without calls."""
    role = draw(st.sampled_from(["system", "developer", "user", "assistant", "assistant", "tool"]))
    if role == "tool":
        extra = {"is_error": True} if draw(st.booleans()) else {}
        return Message("tool", draw(contents), tool_call_id=draw(few_ids), extra=extra)
    if role != "assistant":
        return Message(role, draw(contents))
    calls = draw(
        st.lists(
            st.builds(
                ToolCall,
                id=few_ids,
                name=st.sampled_from(["f", "", "a b", "n" * 200]),
                arguments=st.none() | objects,
                raw=values,
            ),
            max_size=3,
        )
    )
    extra = {"thinking_blocks": draw(thoughts), "reasoning_content": "r"}
    return Message("assistant", draw(contents), tuple(calls), extra=extra)


@settings(max_examples=200, deadline=None)
@given(
    history=st.lists(any_message(), max_size=9),
    tools=st.sampled_from([(), (ToolSpec(name="f"),)]),
    parallel=st.sampled_from([None, False]),
)
def test_any_history_becomes_a_request_in_order(
    history: list[Message], tools: tuple[ToolSpec, ...], parallel: bool | None
) -> None:
    """Whatever happened before, the API accepts the next request, and it can be read back."""
    messages = (Message("user", "Begin."), *history, Message("user", "Go on."))
    request = ModelRequest(model="m", messages=messages, tools=tools, parallel_tool_calls=parallel)
    wire = PROTOCOL.render_request(request)
    assert broken_rules(wire.body) == []
    assert wire == PROTOCOL.render_request(request)
    again = PROTOCOL.parse_request(wire)
    assert PROTOCOL.parse_request(PROTOCOL.render_request(again)).messages == again.messages


@settings(max_examples=100, deadline=None)
@given(history=st.lists(any_message(), max_size=6), last=any_message())
def test_an_assistant_may_begin_and_end(history: list[Message], last: Message) -> None:
    """The same holds when nothing is known about the first and the last message."""
    messages = (Message("assistant", "Well, \n"), *history, last)
    body = PROTOCOL.render_request(ModelRequest(model="m", messages=messages)).body
    assert broken_rules(body) == []


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """A proper conversation: each call has its result, and every message says something."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Message("system", draw(words)))
    messages.append(Message("user", draw(words)))
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        calls: list[ToolCall] = []
        for _ in range(draw(st.integers(1, 3))):
            number += 1
            arguments = draw(objects)
            calls.append(
                ToolCall(id=f"c{number}", name=draw(names), arguments=arguments, raw=arguments)
            )
        signed = [{"type": "thinking", "thinking": draw(texts), "signature": "s"}]
        extra = {"thinking_blocks": signed} if draw(st.booleans()) else {}
        messages.append(Message("assistant", draw(st.none() | words), tuple(calls), extra=extra))
        for call in calls:
            content = draw(
                words
                | st.just([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}])
                | st.just(
                    [
                        {"type": "text", "text": "x"},
                        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
                    ]
                )
            )
            failed = {"is_error": True} if draw(st.booleans()) else {}
            messages.append(Message("tool", content, tool_call_id=call.id, extra=failed))
    if len(messages) > 2:
        messages.append(Message("assistant", draw(words)))
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
        text = {"type": "text", "text": draw(words), "cache_control": {"type": "ephemeral"}}
        messages.append(Message("user", [image, text]))
    return tuple(messages)


@settings(max_examples=150, deadline=None)
@given(
    messages=conversations(),
    choice=st.sampled_from(
        [None, "auto", "required", {"type": "function", "function": {"name": "f"}}]
    ),
    parallel=st.sampled_from([None, False]),
    stream=st.booleans(),
)
def test_a_request_is_read_back_as_it_was(
    messages: tuple[Message, ...], choice: Any, parallel: bool | None, stream: bool
) -> None:
    """Calls, results, ids, text, images, hints, thoughts, tools and settings all survive."""
    if parallel is False and choice is None:
        choice = "auto"
    request = ModelRequest(
        model="m",
        messages=messages,
        tools=(
            ToolSpec(
                name="f",
                description="F.",
                parameters={"type": "object", "properties": {"q": {"type": "string"}}},
                extra={"cache_control": {"type": "ephemeral"}},
            ),
        ),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        params={"max_tokens": 5, "temperature": 0.5, "stop": ["END"], "user": "u"},
        stream=stream,
    )
    wire = PROTOCOL.render_request(request)
    assert broken_rules(wire.body) == []
    assert PROTOCOL.parse_request(wire) == request


@st.composite
def blocks(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Clean content of a reply."""
    found: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "thinking", "tool_use", "redacted_thinking"]))
        if kind == "text":
            found.append({"type": kind, "text": draw(texts)})
        elif kind == "thinking":
            found.append({"type": kind, "thinking": draw(texts), "signature": draw(names)})
        elif kind == "redacted_thinking":
            found.append({"type": kind, "data": draw(names)})
        else:
            call = {"type": kind, "id": f"toolu_{number}", "name": draw(names)}
            found.append({**call, "input": draw(objects)})
    return found


@settings(max_examples=200, deadline=None)
@given(
    content=blocks(),
    stop_reason=st.sampled_from(["end_turn", "tool_use", "max_tokens"]),
    step=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 400), max_size=40),
)
def test_a_folded_stream_is_the_whole_reply(
    content: list[dict[str, Any]], stop_reason: str, step: int, sizes: list[int]
) -> None:
    """However the text is cut into events and the events into chunks."""
    whole = PROTOCOL.parse_body(body(content, stop_reason))
    folded, text, reasoning = fold(stream(content, stop_reason, step), sizes)
    assert folded == whole
    reply = PROTOCOL.parse_message(whole)
    assert PROTOCOL.parse_message(folded) == reply
    assert reply.defects == ()
    assert (text, reasoning) == (reply.content or "", reply.reasoning or "")


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "thinking", "input", "name", "id", "content"]) | texts,
            inner | st.sampled_from(["text", "tool_use", "thinking"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(content=anything, reason=anything, usage=anything)
def test_any_message_is_understood_without_an_exception(
    content: Any, reason: Any, usage: Any
) -> None:
    """Whatever shape it has, and always the same."""
    said = [{"type": "text", "text": "a"}, *(content if isinstance(content, list) else [content])]
    data = {"content": said, "stop_reason": reason, "usage": usage}
    raw = PROTOCOL.parse_body(json.dumps(data).encode())
    assert PROTOCOL.parse_message(raw) == PROTOCOL.parse_message(raw)


@settings(max_examples=200, deadline=None)
@given(values=st.lists(anything, max_size=5), sizes=st.lists(st.integers(1, 60), max_size=9))
def test_any_events_fold_the_same_however_they_are_cut(values: list[Any], sizes: list[int]) -> None:
    """Odd blocks and pieces neither raise nor depend on where the bytes were cut."""
    said = {
        "type": "content_block_start",
        "index": 9,
        "content_block": {"type": "text", "text": "a"},
    }
    events: list[dict[str, Any]] = [said]
    for index, value in enumerate(values):
        block = value if isinstance(value, dict) else {"type": "text", "text": ""}
        events.append({"type": "content_block_start", "index": index % 2, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": json.dumps(value)}
        events.append({"type": "content_block_delta", "index": index % 3, "delta": delta})
    events.append({"type": "message_stop"})
    data = b"".join(b"data: " + json.dumps(item).encode() + b"\n\n" for item in events)
    raw, _, _ = fold(data)
    assert fold(data, sizes)[0] == raw
    assert PROTOCOL.parse_message(raw).id is None
