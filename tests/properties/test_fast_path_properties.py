"""Quick ways through reading give what the long ways give."""

import json
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from surecall.base.errors import JSONTextError
from surecall.base.records import RawCall, Reading, ToolCall, ToolSpec
from surecall.calls import ToolNames
from surecall.reading import ReadingLimits, read_arguments, read_reply
from surecall.reading.calls import CallReader, ReplyShape, read_clean_calls
from surecall.text import decode_noting, decode_plain, repair_json
from surecall.wire import ChatCompletions, RawReply

quick = settings(max_examples=100, deadline=None)
protocol = ChatCompletions()
UNSURE = object()

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.sampled_from(["a", "b", ":", "a:b", "", "é", "\\u003a"]) | texts
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["10:30", "https://example.org/", "{", "[[", '"'])
    | texts
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(keys, values, max_size=5)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """Write a value as a model might: escaped or not, with or without space."""
    escaped = draw(st.booleans())
    text = json.dumps(value, ensure_ascii=escaped, indent=draw(st.sampled_from([None, 0, 2])))
    return text.replace(":", "\\u003a", 1) if draw(st.integers(0, 9)) == 0 else text


@st.composite
def repeating(draw: st.DrawFn) -> str:
    """Write an object that may give a key more than once, at any depth."""
    members = draw(st.lists(st.tuples(st.sampled_from("ab:"), values), min_size=1, max_size=4))
    text = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in members)
    for _ in range(draw(st.integers(0, 3))):
        text = f'"n":{{{text}}}' if draw(st.booleans()) else f'"l":[0,{{{text}}}]'
    return f"{{{text}}}"


object_texts = objects.flatmap(written) | repeating()
broken_texts = st.builds(
    lambda text, at, put: text[:at] + put + text[at:],
    object_texts,
    st.integers(0, 40),
    st.sampled_from([",", "}", "'", '"', "\\", "{", "\ufeff", "\x00", " ", "1e999", "\ud800"]),
)
json_texts = object_texts | broken_texts | values.map(json.dumps)


def nested(depth: int) -> str:
    """Return an object with as many objects in one another."""
    return '{"a":' * depth + "0" + "}" * depth


@quick
@given(text=json_texts)
@example(text=nested(128))
@example(text=nested(129))
@example(text='{"a":' + "[" * 127 + "]" * 127 + "}")
@example(text='{"a":' + "[" * 128 + "]" * 128 + "}")
@example(text='{"a\\u003a":1,"a":":"}')
@example(text='{"a":1,"\\u0061":"\\u003a"}')
@example(text='{"a":"x:y","a":":"}')
@example(text='{"a":":","b":1,"a":"::"}')
@example(text='{"a":1,"a":"\\u003A","b":"\\n:"}')
@example(text='{"a:b":1,"a:b":[":"]}')
@example(text=nested(7))
@example(text=nested(8))
@example(text=json.dumps({f"k{number}": [number, {}] for number in range(200)}))
@example(text=json.dumps({"k": [{"a": ":"}] * 200}))
def test_what_is_decoded_the_quick_way_is_what_is_decoded_with_care(text: str) -> None:
    """A value given at once has the same value, and no key that says two things."""
    for data in (text, text.encode("utf-8", "surrogatepass")):
        plain = decode_plain(data, UNSURE)
        try:
            # A limit that is never reached keeps the careful way from trying the quick one.
            value, repeated = decode_noting(data, max_bytes=1_000_000)
        except JSONTextError:
            assert plain is UNSURE
            continue
        if plain is not UNSURE:
            assert (json.dumps(plain), repeated) == (json.dumps(value), ())
        assert decode_noting(data).duplicates == repeated


@quick
@given(value=objects, indent=st.sampled_from([None, 2]))
def test_clean_objects_are_decoded_the_quick_way(value: dict[str, Any], indent: int | None) -> None:
    """The quick way is taken whatever is in the values, unless a colon may be escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assume("\\u003a" not in text)
    assert decode_plain(text) == value
    assert decode_plain(text.encode()) == value


@quick
@given(text=json_texts, ended=st.booleans())
@example(text="null", ended=True)
@example(text="~~~\n{}\n~~~", ended=True)
@example(text='{"a":1,"a":2}', ended=True)
def test_a_limit_that_is_not_reached_changes_no_repair(text: str, ended: bool) -> None:
    """With a limit the quick way is not taken, and the outcome is the same."""
    assert repr(repair_json(text, ended=ended)) == repr(
        repair_json(text, ended=ended, max_bytes=1_000_000)
    )


@quick
@given(text=object_texts | broken_texts, max_bytes=st.integers(0, 200), ended=st.booleans())
@example(text=nested(128), max_bytes=10_000, ended=True)
@example(text=nested(129), max_bytes=10_000, ended=True)
@example(text='{"é":1}', max_bytes=8, ended=True)
@example(text='{"é":1}', max_bytes=7, ended=True)
def test_space_before_arguments_changes_nothing_but_their_size(
    text: str, max_bytes: int, ended: bool
) -> None:
    """Text with space before it goes the long way, to the same value, receipts and errors."""
    short = read_arguments(text, max_bytes=max_bytes, ended=ended)
    long = read_arguments(f" {text}", max_bytes=max_bytes, ended=ended)
    assert short.bytes == long.bytes - 1
    assert json.dumps(short.value) == json.dumps(long.value)
    assert (short.state, short.receipts, short.errors) == (long.state, long.receipts, long.errors)


names = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,20}", fullmatch=True)
extras = st.dictionaries(
    st.sampled_from(["signature", "extra_content", "x"]), scalars.filter(bool), max_size=2
)


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    """Build an entry of `tool_calls` as the format says, and perhaps fields beside."""
    function = {"name": draw(names), "arguments": json.dumps(draw(objects))}
    return {"id": draw(names), "type": "function", "function": function, **draw(extras)}


def expected_call(entry: dict[str, Any]) -> ToolCall:
    """Return the call that a well-formed entry stands for."""
    function = entry["function"]
    return ToolCall(
        id=entry["id"],
        name=function["name"],
        arguments=json.loads(function["arguments"]),
        raw=function["arguments"],
        extra={key: entry[key] for key in entry if key not in {"id", "type", "function"}},
        arguments_bytes=len(function["arguments"]),
    )


@quick
@given(
    calls=st.lists(entries(), min_size=1, max_size=4, unique_by=lambda entry: entry["id"]),
    content=st.none() | texts,
    reasoning=st.none() | texts,
    beside=extras,
)
def test_well_formed_calls_are_read_as_they_are(
    calls: list[dict[str, Any]], content: str | None, reasoning: str | None, beside: dict[str, Any]
) -> None:
    """A reply in the form the format asks for is read without a receipt or a defect."""
    message = {
        "role": "assistant",
        "content": content,
        "reasoning_content": reasoning,
        "tool_calls": calls,
        **beside,
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "x", "model": "m", "choices": [choice]}).encode()
    reply = protocol.parse_message(protocol.parse_body(body))
    echoed = {"reasoning_content": reasoning} if reasoning is not None else {}
    assert reply.extra == {**echoed, **beside}
    assert read_reply(reply) == Reading(
        calls=tuple(expected_call(entry) for entry in calls),
        content=content or "",
        reasoning=reasoning or None,
        finish_reason="tool_calls",
    )


odd_fields = st.sampled_from(
    [
        {"id": None},
        {"id": ""},
        {"id": " padded "},
        {"id": 7},
        {"id": "same"},
        {"function": {"name": " padded ", "arguments": "{}"}},
        {"function": {"name": "", "arguments": "{}"}},
        {"function": {"name": "f", "arguments": {"a": 1}}},
        {"function": {"name": "f", "arguments": ""}},
        {"function": {"name": "f", "arguments": "{'a': 1}"}},
        {"function": {"name": "f", "arguments": '{"a":1,"a":2}'}},
        {"function": None},
    ]
)


@quick
@given(clean=entries(), odd=entries(), change=odd_fields)
def test_an_odd_call_does_not_change_how_the_next_is_read(
    clean: dict[str, Any], odd: dict[str, Any], change: dict[str, Any]
) -> None:
    """What is odd shows as a receipt, an error or a defect, and only on its own call."""
    clean["id"], odd["id"] = "clean", "odd"
    message = {"role": "assistant", "tool_calls": [{**odd, **change}, clean]}
    reading = read_reply(message, finish_reason="tool_calls", used_ids={"same"})
    first, second = reading.calls
    assert second == expected_call(clean)
    assert first.receipts or first.errors or reading.defects


TOOL_NAMES = ToolNames(
    [
        ToolSpec(
            name="f",
            parameters={"type": "object", "properties": {"a": {"type": "integer"}}},
        ),
        ToolSpec(name="g", parameters={"type": "object"}, coerce="off"),
    ]
)
call_ids = st.sampled_from(["c1", "c2", "c3", " c4", "", None, 7])
call_names = st.sampled_from(["f", "g", "F", "other", " f", "", None])
call_arguments = st.sampled_from(
    ['{"a":1}', '{"a":"1"}', '{"a":1,"a":2}', '{"b":"x:y"}', " {}", "", "{'a':1}", "[]", None]
) | objects.map(json.dumps)
raw_calls = st.builds(
    RawCall, call_ids, call_names, call_arguments, st.just("tool_calls"), extras
) | st.builds(RawCall, st.just("c5"), st.just("f"), objects.map(json.dumps))


@quick
@given(
    calls=st.lists(raw_calls, max_size=3),
    used_ids=st.sampled_from([(), ("c1",)]),
    total=st.integers(0, 60),
    tools=st.sampled_from([ToolNames(), TOOL_NAMES]),
)
def test_calls_read_as_clean_are_read_the_same_one_by_one(
    calls: list[RawCall], used_ids: tuple[str, ...], total: int, tools: ToolNames
) -> None:
    """What the quick way accepts, the careful way reads without a receipt, error or defect."""
    limits = ReadingLimits(max_arguments_bytes=40, max_total_arguments_bytes=total)
    clean = read_clean_calls(calls, tools, used_ids, limits)
    reader = CallReader(tools, used_ids=used_ids, limits=limits, shape=ReplyShape(ended=True))
    careful = tuple(reader.read(call) for call in calls)
    if clean is not None:
        assert repr(clean) == repr(careful)
        assert not reader.defects
        assert not any(call.receipts or call.errors for call in careful)


def test_usual_calls_take_the_quick_way() -> None:
    """Calls as the format asks for them are read at once, with and without tools."""
    calls = [RawCall("c1", "f", '{"a":1}'), RawCall("c2", "g", '{"b":{"c":"10:30"}}')]
    for tools in (ToolNames(is_unknown=True), TOOL_NAMES):
        read = read_clean_calls(calls, tools, (), ReadingLimits())
        assert read is not None
        assert [call.arguments for call in read] == [{"a": 1}, {"b": {"c": "10:30"}}]


contents = st.none() | texts | st.sampled_from([[{"type": "text", "text": "x"}], 5, {}])


@quick
@given(
    content=contents,
    refusal=st.none() | texts,
    calls=st.none() | st.lists(entries(), max_size=2) | st.just({}) | st.just([5]),
    legacy=st.none() | st.just({"name": "f", "arguments": "{}"}),
)
def test_a_message_with_only_known_fields_is_understood_as_any_other(
    content: Any, refusal: str | None, calls: Any, legacy: Any
) -> None:
    """A field that says nothing sends a message the long way, to the same reply."""
    message = {"content": content, "tool_calls": calls, "refusal": refusal, "function_call": legacy}
    short = protocol.parse_message(RawReply(message=message, finish_reason="stop"))
    long = protocol.parse_message(
        RawReply(message={**message, "reasoning": None}, finish_reason="stop")
    )
    assert short == long
