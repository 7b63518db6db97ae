"""Quick ways through reading give what the long ways give."""

import json
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from surecall.errors import JSONTextError
from surecall.jsontext import decode_noting, decode_plain
from surecall.protocols import ChatCompletions
from surecall.reading import read_arguments, read_reply
from surecall.records import Reading, ToolCall

quick = settings(max_examples=200, deadline=None)
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
