"""Reading, whatever arrived."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.protocols.chat_completions import render_message
from surecall.reading import read_arguments, read_reply
from surecall.records import Message, RawCall, Reply

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


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
@given(value=clean_arguments, data=st.data())
def test_a_start_of_clean_text_is_always_cut(value: dict[str, Any], data: st.DataObject) -> None:
    """Truncation is told apart from bad JSON."""
    text = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    end = data.draw(st.integers(1, len(text) - 1))
    reading = read_arguments(text[:end])
    assert (reading.state, reading.value) == ("cut", None)


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
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
    reading = read_reply(message, finish_reason=finish)
    wire = render_message(Message("assistant", "", reading.calls))
    for call in wire.get("tool_calls", ()):
        assert isinstance(json.loads(call["function"]["arguments"]), dict)
        assert 0 < len(call["function"]["name"]) <= 64
    if finish == "length":
        assert all(call.state == "cut" for call in reading.calls)
