"""Reading, whatever arrived."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.offered_tools import TEXTS, TOOLS, WEATHER
from surecall.base.records import Message, RawCall, Reply, ToolCall
from surecall.reading import (
    CallRead,
    ReplyReader,
    TextRead,
    TextWasReasoning,
    find_generation,
    read_arguments,
    read_reply,
)
from surecall.schema import SchemaChecker
from surecall.wire.chat_completions import render_message

CHECKER = SchemaChecker(WEATHER.parameters)

any_text = st.text(st.characters(), max_size=60)
clean_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text
any_value = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=8,
)
clean_value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | clean_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(clean_text, inner, max_size=3),
    max_leaves=8,
)
clean_arguments = st.dictionaries(clean_text, clean_value, max_size=4)
json_like = st.text('{}[]",:\\u0123abcdef \n`jsontrue.-+', max_size=40)


@settings(max_examples=100, deadline=None)
@given(value=any_value | json_like, max_bytes=st.integers(0, 60))
def test_any_arguments_are_read_or_refused_with_one_code(value: Any, max_bytes: int) -> None:
    """Nothing is raised, and a value goes with no error, an error with no value."""
    reading = read_arguments(value, max_bytes=max_bytes)
    assert (reading.value is None) == (len(reading.errors) == 1)
    assert (reading.state == "whole") == (reading.value is not None)
    assert reading.value is None or isinstance(reading.value, dict)
    if reading.value is not None and isinstance(value, str) and not reading.receipts:
        assert json.loads(value) == reading.value
    if reading.errors:
        assert reading.receipts == ()
        assert len(reading.errors[0].message) < 600


@settings(max_examples=100, deadline=None)
@given(value=clean_arguments, ascii_only=st.booleans(), indent=st.none() | st.integers(0, 3))
def test_clean_text_is_read_without_a_receipt(
    value: dict[str, Any], ascii_only: bool, indent: int | None
) -> None:
    """However the provider writes its JSON."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    reading = read_arguments(text)
    assert reading.value == value
    assert (reading.receipts, reading.errors) == ((), ())
    assert reading.bytes == len(text.encode())


@settings(max_examples=100, deadline=None)
@given(value=clean_arguments, data=st.data())
def test_a_start_of_clean_text_is_always_cut(value: dict[str, Any], data: st.DataObject) -> None:
    """Truncation is told apart from bad JSON."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    end = data.draw(st.integers(1, len(text) - 1))
    reading = read_arguments(text[:end])
    assert (reading.state, reading.value) == ("cut", None)


@settings(max_examples=100, deadline=None)
@given(
    ids=st.lists(any_value | st.sampled_from(["a", "a__2", "tc_1", "tc_2", " a"]), max_size=8),
    used=st.lists(st.sampled_from(["a", "a__2", "tc_1", "tc_1__2"]), max_size=4),
)
def test_ids_are_unique_and_the_same_for_the_same_input(ids: list[Any], used: list[str]) -> None:
    """Within the reply and against the conversation."""
    reply = Reply(calls=tuple(RawCall(call_id, "t", "{}") for call_id in ids))
    reading = read_reply(reply, used_ids=used)
    given_ids = [call.id for call in reading.calls]
    assert len(set(given_ids)) == len(ids)
    assert not set(given_ids) & set(used)
    assert all(call_id.strip() == call_id != "" for call_id in given_ids)
    assert [call.id for call in read_reply(reply, used_ids=used).calls] == given_ids
    for call, sent in zip(reading.calls, ids, strict=True):
        assert bool(call.receipts) == (call.id != sent)


entries = st.dictionaries(
    st.sampled_from(["id", "type", "function", "name", "arguments", "signature", "text"]),
    any_value | st.dictionaries(st.sampled_from(["name", "arguments"]), any_value),
)


@settings(max_examples=100, deadline=None)
@given(
    message=st.dictionaries(
        st.sampled_from(["content", "tool_calls", "function_call", "reasoning", "refusal", "x"]),
        any_value | entries | st.lists(entries, max_size=3),
    ),
    finish=st.none() | st.sampled_from(["stop", "length"]),
)
def test_any_message_is_read_and_leaves_a_valid_history(
    message: dict[str, Any], finish: str | None
) -> None:
    """Every call can be sent back to providers that parse what they get."""
    message = {"role": "assistant", **message}
    reading = read_reply(message, finish_reason=finish)
    wire = render_message(Message("assistant", "", reading.calls))
    for call in wire.get("tool_calls", ()):
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
        assert 0 < len(call["function"]["name"]) <= 64
    if finish == "length":
        assert all(call.state == "cut" for call in reading.calls)


fragments = st.sampled_from(
    [
        *TEXTS.values(),
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "```",
        "`",
        "<",
        "{",
        '{"name": "weather",',
        '"arguments": {"city": "Oslo"}}',
        "weather(",
        "[TOOL_CALLS]",
        "<|im_end|>",
        "\n",
        " ",
    ]
)
odd_text = st.lists(fragments | any_text, max_size=6).map("".join)


def _cut_at(text: str, places: list[int]) -> list[str]:
    ends = sorted({place % (len(text) + 1) for place in places})
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


@settings(max_examples=100, deadline=None)
@given(
    text=odd_text,
    finish=st.sampled_from([None, "stop", "length"]),
    places=st.lists(st.integers(0, 10_000), max_size=8),
)
def test_any_text_is_read_the_same_in_any_split(
    text: str, finish: str | None, places: list[int]
) -> None:
    """Nothing is raised, and what was told on the way holds at the end."""
    whole = read_reply(text, tools=TOOLS, finish_reason=finish)
    reader = ReplyReader(TOOLS)
    shown, calls = "", list[ToolCall]()
    for piece in _cut_at(text, places):
        for event in reader.feed(piece):
            if isinstance(event, TextRead):
                shown += event.text
            elif isinstance(event, TextWasReasoning):
                shown = ""
            elif isinstance(event, CallRead):
                calls.append(event.call)
    reading = reader.close(finish)
    assert reading == whole
    # That it was reasoning may be known only at the end.
    assert reading.content.startswith(shown) or shown.strip() in (reading.reasoning or "")
    assert reading.calls[: len(calls)] == tuple(calls)
    for call in reading.calls:
        assert call.receipts[0].rule == "read_call_from_text"
        assert (call.arguments is None) == (call.state != "whole")
        assert call.state == "whole" or call.errors


@settings(max_examples=100, deadline=None)
@given(text=odd_text)
def test_text_without_an_offered_tool_stays_text(text: str) -> None:
    """With text formats off, or with no tools on offer, every text is the answer as it is."""
    assert read_reply(text, tools=TOOLS, text_formats=False).content == text
    assert read_reply(text, tools=[]).content == text


@settings(max_examples=100, deadline=None)
@given(
    value=any_value | json_like | st.text("[]{}\"',:.Oslo3 \n", max_size=30), ended=st.booleans()
)
def test_arguments_that_are_read_fit_their_schema_or_say_why(value: Any, ended: bool) -> None:
    """There is never a value that does not fit without an error, nor a cut call with a value."""
    reading = read_arguments(value, WEATHER.parameters, ended=ended, tool_name="weather")
    fits = reading.value is not None and CHECKER.is_valid(reading.value)
    assert fits == (not reading.errors)
    assert (reading.value is None) == (reading.state != "whole")
    if value == reading.value:
        assert reading.receipts == ()


@settings(max_examples=100, deadline=None)
@given(body=any_text | odd_text | any_value.map(lambda value: json.dumps({"error": value})))
def test_any_error_body_is_searched_without_an_error(body: str) -> None:
    """What is found is part of the body, as text or as JSON wrote it."""
    found = find_generation(body)
    assert found is None or found in body or json.dumps(found)[1:-1] in body
