"""The caller's messages."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from surecall.base.errors import RequestError
from surecall.base.records import Message, ToolCall
from surecall.wire.chat_completions import parse_history_message, render_message

CALL = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"a": 1}'}}


def test_a_message_is_taken_as_it_is() -> None:
    """Nothing is copied."""
    message = Message("user", "Hi")
    assert parse_history_message(message) is message


def test_plain_text_is_the_users() -> None:
    """A string needs no role."""
    assert parse_history_message("Hi") == Message("user", "Hi")


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param({"role": "developer", "content": "x"}, id="developer"),
        pytest.param({"role": "user", "content": [{"type": "text", "text": "x"}]}, id="parts"),
        pytest.param({"role": "user", "content": "x", "name": "Ann"}, id="name"),
        pytest.param({"role": "tool", "content": "{}", "tool_call_id": "c1"}, id="tool"),
        pytest.param({"role": "assistant", "content": None, "tool_calls": [CALL]}, id="calls"),
        pytest.param(
            {"role": "assistant", "content": "", "tool_calls": [{**CALL, "signature": "s"}]},
            id="signature of a call",
        ),
        pytest.param(
            {"role": "assistant", "content": "x", "reasoning_details": [{"text": "r"}]},
            id="unknown field",
        ),
    ],
)
def test_a_message_on_the_wire_survives_the_round_trip(wire: dict[str, Any]) -> None:
    """What the caller has is what is sent."""
    assert render_message(parse_history_message(wire)) == wire


def test_a_call_in_the_history_is_understood() -> None:
    """Its arguments are read once, and its text kept."""
    message = parse_history_message({"role": "assistant", "tool_calls": [CALL]})
    assert message.tool_calls == (ToolCall(id="c1", name="t", arguments={"a": 1}, raw='{"a": 1}'),)


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        pytest.param({"a": 1}, '{"a":1}', id="object"),
        pytest.param(None, "{}", id="null"),
        pytest.param(" ", "{}", id="blank"),
        pytest.param('{"a"', '{"_unreadable_arguments":"{\\"a\\""}', id="cut"),
        pytest.param("[]", '{"_unreadable_arguments":"[]"}', id="array"),
    ],
)
def test_arguments_in_the_history_are_sent_as_valid_text(arguments: Any, sent: str) -> None:
    """A history from elsewhere cannot poison the request."""
    call = {"id": "c1", "function": {"name": "t", "arguments": arguments}}
    wire = render_message(parse_history_message({"role": "assistant", "tool_calls": [call]}))
    assert wire["tool_calls"][0]["function"]["arguments"] == sent


def test_null_fields_are_left_out() -> None:
    """A dump of a client's own object is full of them."""
    message = parse_history_message({"role": "assistant", "content": "x", "refusal": None})
    assert message == Message("assistant", "x")


def test_an_object_with_attributes_is_understood() -> None:
    """Objects of other libraries need no conversion."""
    function = SimpleNamespace(name="t", arguments="{}")
    call = SimpleNamespace(id="c1", function=function)
    item = SimpleNamespace(role="assistant", content=None, tool_calls=[call])
    message = parse_history_message(item)
    assert message.role == "assistant"
    assert message.tool_calls == (ToolCall(id="c1", name="t", arguments={}, raw="{}"),)


def test_an_object_that_can_dump_itself_keeps_its_other_fields() -> None:
    """Unknown fields come along."""

    class Dumped:
        def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
            assert exclude_none
            return {"role": "assistant", "content": "x", "reasoning_content": "r"}

    assert parse_history_message(Dumped()) == Message(
        "assistant", "x", extra={"reasoning_content": "r"}
    )


@dataclass(frozen=True)
class Refused:
    id: str
    item: Any
    words: str


REFUSED = (
    Refused("unknown role", {"role": "usr", "content": "x"}, "Did you mean 'user'"),
    Refused("no role", {"content": "x"}, "A message has no role"),
    Refused("role of another type", {"role": 3, "content": "x"}, "type int"),
    Refused("content of another type", {"role": "user", "content": 3}, "of type int"),
    Refused("parts of another type", {"role": "user", "content": ["x"]}, "of type list"),
    Refused("tool without id", {"role": "tool", "content": "x"}, "no tool_call_id"),
    Refused("tool with an empty id", {"role": "tool", "tool_call_id": ""}, "no tool_call_id"),
    Refused("id of another type", {"role": "tool", "tool_call_id": 3}, "tool_call_id of the tool"),
    Refused("name of another type", {"role": "user", "name": 3}, "The name of the user"),
    Refused("calls of a user", {"role": "user", "tool_calls": [CALL]}, "Only an assistant"),
    Refused("calls not a list", {"role": "assistant", "tool_calls": CALL}, "as a list"),
    Refused("call without id", {"role": "assistant", "tool_calls": [{"function": {}}]}, "an id"),
    Refused("call of another type", {"role": "assistant", "tool_calls": [3]}, "of type int"),
    Refused("number", 3, "type int is not a message"),
    Refused("null", None, "type NoneType is not a message"),
)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_no_message_is_refused_before_it_is_sent(case: Refused) -> None:
    """The error has one code and says what was wrong."""
    with pytest.raises(RequestError) as caught:
        parse_history_message(case.item)
    assert caught.value.code == "INVALID_MESSAGE"
    assert case.words in str(caught.value)
