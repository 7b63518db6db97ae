"""Streamed replies of Gemini."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import Code, ProviderError, ProviderReplyError, ProviderStatusError

from .wire import GEMINI, chunk, event, fold, parse, stream

CHUNKS = (
    chunk({"text": "Hm", "thought": True}),
    chunk({"text": ". ", "thought": True}, {"text": "Grüße "}),
    chunk({"text": "🌍"}, usageMetadata={"promptTokenCount": 1}),
    chunk({"functionCall": {"name": "look", "args": {"a": "ü"}}, "thoughtSignature": "S1"}),
    chunk({"text": "", "thoughtSignature": "S0"}, finish="STOP"),
    {"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}},
)
WHOLE = chunk(
    {"text": "Hm. ", "thought": True},
    {"text": "Grüße 🌍"},
    {"functionCall": {"name": "look", "args": {"a": "ü"}}, "thoughtSignature": "S1"},
    {"text": "", "thoughtSignature": "S0"},
    finish="STOP",
    usageMetadata={"promptTokenCount": 1, "candidatesTokenCount": 2},
)


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(1, 40), max_size=60), is_ascii=st.booleans())
def test_a_stream_folds_to_the_whole_reply_however_it_is_cut(
    sizes: list[int], is_ascii: bool
) -> None:
    """Also inside a character; usage after the finish is still taken."""
    data = b"".join(
        b"data: " + json.dumps(item, ensure_ascii=is_ascii).encode() + b"\n\n" for item in CHUNKS
    )
    raw, shown = fold(data, sizes)
    assert raw == GEMINI.parse_body(json.dumps(WHOLE).encode())
    assert GEMINI.parse_message(raw) == parse(WHOLE)
    assert shown == {"text": "Grüße 🌍", "reasoning": "Hm. "}


def test_a_list_of_chunks_is_a_stream_too() -> None:
    """So it comes without `alt=sse`."""
    raw, _ = fold(json.dumps(CHUNKS, indent=1).encode(), [3, 50])
    assert raw == GEMINI.parse_body(json.dumps(WHOLE).encode())


def test_a_whole_body_is_taken_where_a_stream_was_asked_for() -> None:
    """Some proxies do not stream."""
    assert fold(json.dumps(WHOLE).encode())[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("count", range(1, 5))
def test_a_stream_without_a_finish_is_truncated(count: int) -> None:
    """Nothing of it is used, and the text so far is told."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(stream(*CHUNKS[:count]))
    assert caught.value.code == Code.STREAM_TRUNCATED
    assert caught.value.retryable
    assert (caught.value.body or "") == ("", "Grüße ", "Grüße 🌍", "Grüße 🌍")[count - 1]


def test_the_last_event_may_be_cut_after_the_finish() -> None:
    """The reply was whole before."""
    data = stream(chunk({"text": "Hi"}, finish="STOP")) + b'data: {"usageMeta'
    assert fold(data)[0].finish_reason == "stop"


def test_an_empty_stream_says_so() -> None:
    """Nothing came at all."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(b"")
    assert caught.value.code == Code.UPSTREAM_EMPTY


def test_an_error_inside_a_stream_has_its_code_and_the_text_so_far() -> None:
    """The status was 200 before it went wrong."""
    error = {"error": {"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}}
    with pytest.raises(ProviderStatusError) as caught:
        fold(stream(chunk({"text": "Par"}), error))
    assert (caught.value.code, caught.value.body) == (Code.RATE_LIMIT, "Par")


def test_an_error_event_that_is_no_json_is_an_error() -> None:
    """Its name says what it is."""
    with pytest.raises(ProviderError) as caught:
        fold(b"event: error\ndata: broken\n\n")
    assert "broken" in caught.value.message


def test_a_blocked_prompt_ends_a_stream() -> None:
    """As it ends a whole reply."""
    with pytest.raises(ProviderReplyError) as caught:
        fold(stream({"promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": "No."}}))
    assert caught.value.code == Code.PROMPT_BLOCKED


@pytest.mark.parametrize("bad", [b"data: {oops\n\n", b"data: 3\n\n"])
def test_a_bad_event_is_refused_or_passed_over_on_wish(bad: bytes) -> None:
    """Passed over, it leaves a finding, so that no call of the reply runs."""
    data = stream(CHUNKS[0]) + bad + stream(chunk({"text": "a"}, finish="STOP"))
    with pytest.raises(ProviderReplyError) as caught:
        fold(data)
    assert caught.value.code == Code.UPSTREAM_BAD_EVENT
    raw, _ = fold(data, skip_bad_events=True)
    assert [defect.code for defect in raw.defects] == [Code.UPSTREAM_BAD_EVENT]


def test_half_a_character_waits_for_the_other_half() -> None:
    """A pair of escapes may be split over two chunks; a lone half is replaced."""
    data = b'data: {"candidates":[{"content":{"parts":[{"text":"a\\ud83c"}]}}]}\n\n'
    data += b'data: {"candidates":[{"content":{"parts":[{"text":"\\udf0d!\\ud83c"}]}}]}\n\n'
    raw, shown = fold(data + event(chunk(finish="STOP")))
    assert raw.message["parts"] == [{"text": "a🌍!\ufffd"}]
    assert shown["text"] == "a🌍!\ufffd"


def test_other_candidates_of_a_stream_are_left_alone() -> None:
    """One reply is one candidate."""
    other: dict[str, Any] = {"content": {"parts": [{"text": "b"}]}, "index": 1}
    both = chunk({"text": "a"})
    both["candidates"].append(other)
    raw, shown = fold(stream(both, chunk(finish="STOP")))
    assert shown["text"] == "a"
    assert [defect.code for defect in raw.defects] == [Code.CHOICES_IGNORED]


def test_a_key_with_two_values_in_a_stream_is_noted() -> None:
    """As in a whole reply."""
    data = b'data: {"candidates":[{"content":{"parts":[{"functionCall":'
    data += b'{"name":"a","args":{"k":1,"k":2}}}]},"finishReason":"STOP"}]}\n\n'
    assert [defect.code for defect in fold(data)[0].defects] == [Code.DUPLICATE_KEY]


# Arguments in pieces, as Gemini 3 sends them where `streamFunctionCallArguments` is set

_LEAF = st.text(max_size=12) | st.integers(-99, 99) | st.booleans()
_NAME = st.text(st.characters(exclude_characters=".[]'\"\\", categories=["L", "N"]), min_size=1)
_VALUE = st.recursive(
    _LEAF,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(_NAME, inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def pieces_of(value: Any, path: str = "$", size: int = 3) -> list[dict[str, Any]]:
    """Return the pieces of a value, long texts in several."""
    if isinstance(value, dict):
        named = [(f"{path}.{name}", item) for name, item in value.items()]
        return [piece for at, item in named for piece in pieces_of(item, at, size)]
    if isinstance(value, list):
        items = enumerate(value)
        return [piece for at, item in items for piece in pieces_of(item, f"{path}[{at}]", size)]
    kinds = {str: "stringValue", bool: "boolValue", int: "numberValue"}
    if not isinstance(value, str):
        return [{"jsonPath": path, kinds[type(value)]: value}]
    texts = [value[at : at + size] for at in range(0, len(value), size)] or [""]
    return [
        {"jsonPath": path, "stringValue": text, "willContinue": number < len(texts)}
        for number, text in enumerate(texts, 1)
    ]


def call_in_pieces(*pieces: Any, is_ended: bool = True) -> bytes:
    """Return a stream with one call, an event for each piece."""
    begin = {"name": "look", "id": "c1", "willContinue": True}
    more = [{"partialArgs": [piece], "willContinue": True} for piece in pieces]
    parts = [begin, *more, *([{}] if is_ended else [])]
    events = [chunk({"functionCall": part}) for part in parts]
    return stream(*events, chunk(finish="STOP"))


@settings(max_examples=100, deadline=None)
@given(
    arguments=st.dictionaries(_NAME, _VALUE, max_size=4),
    sizes=st.lists(st.integers(1, 60), max_size=40),
)
def test_arguments_in_pieces_are_those_of_a_whole_call(
    arguments: dict[str, Any], sizes: list[int]
) -> None:
    """Whatever they are, and however the stream is cut."""
    raw, _ = fold(call_in_pieces(*pieces_of(arguments)), sizes)
    whole = {"functionCall": {"name": "look", "id": "c1", "args": arguments}}
    assert raw.message["parts"] == [whole]
    (call,) = GEMINI.parse_message(raw).calls
    assert (call.name, call.id, call.arguments) == ("look", "c1", arguments)


def test_pieces_come_in_one_part_as_well_and_several_calls_may_follow() -> None:
    """A whole body has them so; what is beside a piece, such as a signature, is kept."""
    signed = {"functionCall": {"partial_args": []}, "thoughtSignature": "S"}
    one = {"name": "look", "partialArgs": pieces_of({"a": "x"})}
    raw, _ = fold(
        stream(
            chunk({"functionCall": one}, {"functionCall": {"name": "a", "will_continue": True}}),
            chunk({"functionCall": {"partial_args": pieces_of({"b": [1]}), "willContinue": True}}),
            chunk(signed, {"functionCall": {"name": "b", "args": {}}}, finish="STOP"),
        )
    )
    calls = GEMINI.parse_message(raw).calls
    assert [(call.name, call.arguments) for call in calls] == [
        ("look", {"a": "x"}),
        ("a", {"b": [1]}),
        ("b", {}),
    ]
    assert calls[1].extra == {"thought_signature": "S"}
    assert parse(chunk({"functionCall": one}, finish="STOP")).calls[0].arguments == {"a": "x"}


@pytest.mark.parametrize(
    "pieces",
    [
        [{"jsonPath": "a", "stringValue": "x"}],
        [{"stringValue": "x"}],
        [{"jsonPath": "$.a[1]", "stringValue": "x"}],
        [{"jsonPath": "$.a", "numberValue": 1}, {"jsonPath": "$.a", "numberValue": 2}],
        [{"jsonPath": "$.a", "numberValue": 1}, {"jsonPath": "$.a.b", "numberValue": 2}],
        [*pieces_of({"a": "x"}), *pieces_of({"b": 1}), *pieces_of({"a": "y"})],
        [{"jsonPath": "$" + ".a" * 400, "stringValue": "x"}],
        ["no piece"],
    ],
)
def test_a_piece_that_has_no_place_is_never_left_out(pieces: list[Any]) -> None:
    """The arguments are unreadable, and the other pieces do not stand in for them."""
    raw, _ = fold(call_in_pieces(*pieces_of({"z": 1}), *pieces))
    (call,) = GEMINI.parse_message(raw).calls
    assert call.arguments == "{"


@pytest.mark.parametrize("count", range(4))
def test_a_call_that_does_not_end_has_no_arguments(count: int) -> None:
    """Also where the reply says that it stopped."""
    pieces = pieces_of({"a": "x", "b": "y", "c": 1})[:count]
    raw, _ = fold(call_in_pieces(*pieces, is_ended=False))
    (call,) = GEMINI.parse_message(raw).calls
    assert call.arguments == "{"
