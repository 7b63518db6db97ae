"""Streamed replies: pieces of calls."""

from dataclasses import dataclass
from typing import Any

import pytest

from support.streams import DONE, chunk, fold
from surecall.base.errors import ProviderReplyError
from surecall.wire import ChatCompletions, RawReply

PROTOCOL = ChatCompletions()
END = chunk({}, "tool_calls")


def _call(index: Any = 0, *, id: Any = None, name: Any = None, arguments: Any = None) -> Any:  # noqa: A002 - the field
    entry: dict[str, Any] = {"function": {}}
    if index is not None:
        entry["index"] = index
    if id is not None:
        entry["id"] = id
    if name is not None:
        entry["function"]["name"] = name
    if arguments is not None:
        entry["function"]["arguments"] = arguments
    return entry


def _calls(*entries: Any) -> bytes:
    return chunk({"tool_calls": list(entries)})


def _seen(reply: RawReply) -> tuple[tuple[Any, Any, Any], ...]:
    return tuple(
        (call.id, call.name, call.arguments) for call in PROTOCOL.parse_message(reply).calls
    )


@dataclass(frozen=True)
class CallCase:
    id: str
    events: tuple[bytes, ...]
    calls: tuple[tuple[Any, Any, Any], ...]
    codes: tuple[str, ...] = ()


INDEX = ("INDEX_NOT_USABLE",)
A, B = '{"a":1}', '{"b":2}'
CALLS = (
    CallCase(
        "normal",
        (
            _calls(_call(0, id="x", name="f", arguments="")),
            _calls(_call(0, arguments='{"a"')),
            _calls(_call(0, arguments=":1}")),
            _calls(_call(1, id="y", name="g", arguments=B)),
        ),
        (("x", "f", A), ("y", "g", B)),
    ),
    CallCase(
        "a piece that is text in the place of its function",
        (
            _calls(_call(0, id="x", name="f", arguments=A)),
            _calls({"index": 0, "function": "g"}),
            _calls(_call(1, id="y", name="g", arguments=B)),
        ),
        (("x", "f", A + '["g"]'), ("y", "g", B)),
        ("CALL_ENTRY_DROPPED",),
    ),
    CallCase(
        "nothing but text in the place of its function",
        (_calls(_call(0, id="x", name="f")), _calls({"index": 0, "function": "g"})),
        (("x", "f", '{}["g"]'),),
        ("CALL_ENTRY_DROPPED",),
    ),
    CallCase(
        "a piece with an empty list in the place of its function",
        (
            _calls(_call(0, id="x", name="f", arguments='{"a"')),
            _calls({"index": 0, "function": []}),
            _calls(_call(0, arguments=":1}")),
        ),
        (("x", "f", A),),
        ("CALL_ENTRY_DROPPED",),
    ),
    CallCase(
        "interleaved",
        (
            _calls(_call(0, id="x", name="f"), _call(1, id="y", name="g")),
            _calls(_call(1, arguments='{"b"'), _call(0, arguments='{"a"')),
            _calls(_call(0, arguments=":1}"), _call(1, arguments=":2}")),
        ),
        (("x", "f", A), ("y", "g", B)),
    ),
    CallCase(
        "indexes out of order",
        (
            _calls(_call(2, id="z", name="h", arguments="{}")),
            _calls(_call(0, id="x", name="f", arguments=A)),
            _calls(_call(1, id="y", name="g", arguments=B)),
        ),
        (("x", "f", A), ("y", "g", B), ("z", "h", "{}")),
    ),
    CallCase(
        "no index, by id",
        (
            _calls(_call(None, id="x", name="f", arguments='{"a"')),
            _calls(_call(None, id="y", name="g", arguments='{"b"')),
            _calls(_call(None, id="x", arguments=":1}")),
            _calls(_call(None, id="y", arguments=":2}")),
        ),
        (("x", "f", A), ("y", "g", B)),
        INDEX,
    ),
    CallCase(
        "no index, appended to the last",
        (
            _calls(_call(None, id="x", name="f")),
            _calls(_call(None, arguments='{"a"')),
            _calls(_call(None, arguments=":1}")),
            _calls(_call(None, id="y", name="g", arguments=B)),
        ),
        (("x", "f", A), ("y", "g", B)),
        INDEX,
    ),
    CallCase(
        "no index, no id, by name",
        (
            _calls(_call(None, name="f", arguments='{"a"')),
            _calls(_call(None, name="f", arguments=":1}")),
            _calls(_call(None, name="g", arguments=B)),
        ),
        ((None, "f", A), (None, "g", B)),
        INDEX,
    ),
    CallCase(
        "no index, several calls to one tool in one event",
        (_calls(_call(None, name="f", arguments=A), _call(None, name="f", arguments=B)),),
        ((None, "f", A), (None, "f", B)),
        INDEX,
    ),
    CallCase(
        "no index, one id for two calls in one event",
        (
            _calls(
                _call(None, id="x", name="f", arguments=A),
                _call(None, id="x", name="f", arguments=B),
            ),
        ),
        (("x", "f", A), ("x", "f", B)),
        INDEX,
    ),
    CallCase(
        "no index, id after the start",
        (_calls(_call(None, name="f")), _calls(_call(None, id="x", arguments=A))),
        (("x", "f", A),),
        INDEX,
    ),
    CallCase(
        "index of another type",
        (_calls(_call("0", id="x", name="f", arguments=A)),),
        (("x", "f", A),),
        INDEX,
    ),
    CallCase(
        "index shared, ids differ",
        (
            _calls(_call(0, id="x", name="f", arguments=A)),
            _calls(_call(0, id="y", name="f", arguments='{"b"')),
            _calls(_call(0, arguments=":2}")),
        ),
        (("x", "f", A), ("y", "f", B)),
        INDEX,
    ),
    CallCase(
        "index shared, ids in each piece, interleaved",
        (
            _calls(_call(0, id="x", name="f", arguments='{"a"')),
            _calls(_call(0, id="y", name="g", arguments='{"b"')),
            _calls(_call(0, id="x", arguments=":")),
            _calls(_call(0, arguments="1}")),
            _calls(_call(0, id="y", arguments=":2}")),
        ),
        (("x", "f", A), ("y", "g", B)),
        INDEX,
    ),
    CallCase(
        "index shared, no ids, names differ",
        (
            _calls(_call(0, name="f", arguments=A)),
            _calls(_call(0, name="g", arguments=B)),
        ),
        ((None, "f", A), (None, "g", B)),
        INDEX,
    ),
    CallCase(
        "index shared, no ids, one tool, whole objects",
        (
            _calls(_call(0, id="", name="f", arguments=A)),
            _calls(_call(0, id="", name="f", arguments=B)),
        ),
        ((None, "f", A), (None, "f", B)),
        INDEX,
    ),
    CallCase(
        "id shared by two indexes",
        (
            _calls(_call(0, id="x", name="f", arguments=A)),
            _calls(_call(1, id="x", name="f", arguments=B)),
        ),
        (("x", "f", A), ("x", "f", B)),
    ),
    CallCase(
        "id only later",
        (_calls(_call(0, name="f", arguments='{"a"')), _calls(_call(0, id="x", arguments=":1}"))),
        (("x", "f", A),),
    ),
    CallCase(
        "id is a number",
        (_calls(_call(0, id=5, name="f", arguments=A)),),
        ((5, "f", A),),
    ),
    CallCase(
        "name only later",
        (_calls(_call(0, id="x", arguments='{"a"')), _calls(_call(0, name="f", arguments=":1}"))),
        (("x", "f", A),),
    ),
    CallCase(
        "name repeated in each piece",
        (
            _calls(_call(0, id="x", name="f", arguments='{"a"')),
            _calls(_call(0, id="x", name="f", arguments=":")),
            _calls(_call(0, id="x", name="f", arguments="1}")),
        ),
        (("x", "f", A),),
    ),
    CallCase(
        "name in pieces",
        (
            _calls(_call(0, id="x", name="look_", arguments="")),
            _calls(_call(0, name="up", arguments="")),
            _calls(_call(0, arguments=A)),
        ),
        (("x", "look_up", A),),
    ),
    CallCase(
        "empty names between",
        (_calls(_call(0, id="x", name="f")), _calls(_call(0, name="", arguments=A))),
        (("x", "f", A),),
    ),
    CallCase(
        "no arguments",
        (_calls(_call(0, id="x", name="f")),),
        (("x", "f", None),),
    ),
    CallCase(
        "arguments as an object",
        (_calls(_call(0, id="x", name="f", arguments={"a": 1})),),
        (("x", "f", {"a": 1}),),
    ),
    CallCase(
        "arguments as an object, repeated alike, and empty text",
        (
            _calls(_call(0, id="x", name="f", arguments="")),
            _calls(_call(0, arguments={"a": 1})),
            _calls(_call(0, arguments={"a": 1})),
        ),
        (("x", "f", {"a": 1}),),
    ),
    CallCase(
        "empty object before text",
        (_calls(_call(0, id="x", name="f", arguments={})), _calls(_call(0, arguments=A))),
        (("x", "f", A),),
    ),
    CallCase(
        "two objects that differ are not one",
        (
            _calls(_call(0, id="x", name="f", arguments={"a": 1})),
            _calls(_call(0, arguments={"b": 2})),
        ),
        (("x", "f", A + B),),
    ),
    CallCase(
        "an object and text are not one",
        (
            _calls(_call(0, id="x", name="f", arguments={"a": 1})),
            _calls(_call(0, arguments="x")),
        ),
        (("x", "f", A + "x"),),
    ),
    CallCase(
        "flat entries",
        (chunk({"tool_calls": [{"index": 0, "id": "x", "name": "f", "arguments": A}]}),),
        (("x", "f", A),),
    ),
    CallCase(
        "one object for the list",
        (chunk({"tool_calls": _call(0, id="x", name="f", arguments=A)}),),
        (("x", "f", A),),
        ("CALLS_AS_OBJECT",),
    ),
    CallCase(
        "other entries",
        (chunk({"tool_calls": [None, 3, _call(0, id="x", name="f", arguments=A)]}),),
        (("x", "f", A),),
        ("CALL_ENTRY_DROPPED",),
    ),
    CallCase(
        "legacy",
        (
            chunk({"function_call": {"name": "f", "arguments": ""}}),
            chunk({"function_call": {"arguments": '{"a"'}}),
            chunk({"function_call": {"arguments": ":1}"}}),
        ),
        ((None, "f", A),),
    ),
)


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
def test_pieces_of_calls_are_put_together(case: CallCase) -> None:
    """Every way of sending pieces gives the calls that were meant, or what will be refused."""
    reply, text, _ = fold(b"".join(case.events) + END + DONE)
    assert _seen(reply) == case.calls
    assert tuple(defect.code for defect in reply.defects) == case.codes
    assert text == ""


def test_fields_of_calls_to_echo_are_kept() -> None:
    """A signature that comes with any piece stays with its call."""
    entry = _call(0, id="x", name="f", arguments="{}")
    data = _calls(entry) + _calls({"index": 0, "signature": "s", "other": None}) + END
    (call,) = PROTOCOL.parse_message(fold(data)[0]).calls
    assert call.extra == {"signature": "s"}


def test_a_repeated_key_inside_an_object_is_a_finding() -> None:
    """As in a whole reply."""
    text = (
        'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x",'
        '"function":{"name":"f","arguments":{"a":1,"a":2}}}]}}]}\n\n'
    )
    reply, _, _ = fold(text.encode() + END)
    assert [defect.code for defect in reply.defects] == ["DUPLICATE_KEY"]


def test_characters_cut_inside_arguments_are_mended() -> None:
    """Also in fields to echo."""
    data = (
        _calls(_call(0, id="x", name="f", arguments='{"a":"\ud83d'))
        + _calls({**_call(0, arguments='\ude00"}'), "signature": {"s": ["\ud800"]}})
        + END
    )
    (call,) = PROTOCOL.parse_message(fold(data)[0]).calls
    assert call.arguments == '{"a":"😀"}'
    assert call.extra == {"signature": {"s": ["\ufffd"]}}


def test_a_stream_cut_inside_a_call_is_truncated_even_after_valid_json() -> None:
    """Arguments that parse prove nothing."""
    data = _calls(_call(0, id="x", name="f", arguments="{}"))
    with pytest.raises(ProviderReplyError, match="1 begun calls") as caught:
        fold(data)
    assert caught.value.code == "STREAM_TRUNCATED"
    assert caught.value.body is None
