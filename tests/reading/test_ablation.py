"""Reading with rules switched off."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.records import RawCall, Reading, Reply, ToolSpec
from surecall.calls import ToolNames
from surecall.reading import read_reply, without_rules

TOOLS: list[dict[str, Any]] = [
    {
        "name": "set_timer",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer"}},
            "required": ["minutes"],
        },
    }
]


NAMES = ToolNames([ToolSpec(**TOOLS[0])])


def read(arguments: str, disabled: set[str], name: str = "set_timer") -> Reading:
    """Read one structured call and switch rules off."""
    reply = Reply(calls=(RawCall("c1", name, arguments),), finish_reason="tool_calls")
    return without_rules(read_reply(reply, tools=TOOLS), reply, frozenset(disabled), NAMES)


@pytest.mark.parametrize("disabled", [set(), {"*"}, {"strip_code_fence"}])
def test_a_clean_call_needs_no_rule(disabled: set[str]) -> None:
    """A call without receipts is the same whatever is switched off."""
    assert read('{"minutes": 5}', disabled).calls[0].arguments == {"minutes": 5}


def test_a_repaired_call_is_refused_without_its_rule() -> None:
    """What only the rule made readable is unreadable again, and JSON says why."""
    fenced = '```json\n{"minutes": 5}\n```'
    assert read(fenced, set()).calls[0].arguments == {"minutes": 5}

    call = read(fenced, {"strip_code_fence"}).calls[0]
    assert call.arguments is None
    assert call.state == "unreadable"
    assert call.errors[0].message.startswith("The arguments are not valid JSON: ")


@pytest.mark.parametrize("disabled", [{"*"}, {"parse_number_text"}])
def test_sound_json_is_refused_by_its_schema(disabled: set[str]) -> None:
    """The error is the one that a plain client meets, and no rule is named in it."""
    call = read('{"minutes": "5"}', disabled).calls[0]
    assert (call.arguments, call.state) == ({"minutes": "5"}, "whole")
    assert [error.message for error in call.errors] == [
        '/minutes must be an integer, got the string "5"'
    ]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ('{"minutes": 4, "minutes": 5}', {"minutes": 5}),
        (' {"minutes": 5}\n', {"minutes": 5}),
        ("{}", {}),
        ("", None),
        ("[]", None),
        ('"{\\"minutes\\": 5}"', None),
        ("{'minutes': 5}", None),
        ('{"minutes": 5', None),
        ('\ufeff{"minutes": 5}', None),
    ],
)
def test_without_rules_a_call_is_what_json_says(arguments: str, value: Any) -> None:
    """As a plain client decodes it: the last of two keys, and nothing that is not an object."""
    assert read(arguments, {"*"}).calls[0].arguments == value


@given(st.text(alphabet="{}[]\"minutes: 5,\\'`\n\ufeff", max_size=30))
def test_any_text_without_rules_is_what_json_says(arguments: str) -> None:
    """Whatever arrives, only an object is arguments, and it is the one that was written."""
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    expected = value if isinstance(value, dict) else None
    assert read(arguments, {"*"}).calls[0].arguments == expected


def test_another_rule_being_off_changes_nothing() -> None:
    """Only the rules that were used matter."""
    fenced = '```json\n{"minutes": 5}\n```'
    assert read(fenced, {"quote_keys"}) == read(fenced, set())


def test_a_corrected_name_is_as_it_was_written() -> None:
    """Without the rule, the tool is not found under its real name."""
    assert read('{"minutes": 5}', set(), "functions.set_timer").calls[0].name == "set_timer"
    call = read('{"minutes": 5}', {"resolve_tool_name"}, "functions.set_timer").calls[0]
    assert call.name == "functions.set_timer"
    assert call.arguments == {"minutes": 5}


def test_a_call_found_in_text_is_text_again() -> None:
    """The content is what arrived, and nothing is called."""
    text = '<tool_call>{"name": "set_timer", "arguments": {"minutes": 5}}</tool_call>'
    reply = Reply(content=text, finish_reason="stop")
    reading = read_reply(reply, tools=TOOLS)
    assert len(reading.calls) == 1

    plain = without_rules(reading, reply, frozenset({"*"}), NAMES)
    assert plain.calls == ()
    assert plain.content == text


def test_rules_about_ids_stay_on() -> None:
    """A call without an id gets one, so that its result can be sent back."""
    reply = Reply(calls=(RawCall(None, "set_timer", '{"minutes": 5}'),), finish_reason="tool_calls")
    call = without_rules(read_reply(reply, tools=TOOLS), reply, frozenset({"*"}), NAMES).calls[0]
    assert call.id
    assert call.arguments == {"minutes": 5}
