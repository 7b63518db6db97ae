"""Reading with rules switched off."""

import pytest

from surecall.reading import read_reply, without_rules
from surecall.records import RawCall, Reading, Reply

TOOLS = [
    {
        "name": "set_timer",
        "parameters": {
            "type": "object",
            "properties": {"minutes": {"type": "integer"}},
            "required": ["minutes"],
        },
    }
]


def read(arguments: str, disabled: set[str], name: str = "set_timer") -> Reading:
    """Read one structured call and switch rules off."""
    reply = Reply(calls=(RawCall("c1", name, arguments),), finish_reason="tool_calls")
    return without_rules(read_reply(reply, tools=TOOLS), reply, frozenset(disabled))


@pytest.mark.parametrize("disabled", [set(), {"*"}, {"strip_code_fence"}])
def test_a_clean_call_needs_no_rule(disabled: set[str]) -> None:
    """A call without receipts is the same whatever is switched off."""
    assert read('{"minutes": 5}', disabled).calls[0].arguments == {"minutes": 5}


def test_a_repaired_call_is_refused_without_its_rule() -> None:
    """What only the rule made readable is unreadable again, and says so."""
    fenced = '```json\n{"minutes": 5}\n```'
    assert read(fenced, set()).calls[0].arguments == {"minutes": 5}

    call = read(fenced, {"strip_code_fence"}).calls[0]
    assert call.arguments is None
    assert call.state == "unreadable"
    assert "strip_code_fence" in call.errors[0].message


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

    plain = without_rules(reading, reply, frozenset({"*"}))
    assert plain.calls == ()
    assert plain.content == text


def test_rules_about_ids_stay_on() -> None:
    """A call without an id gets one, so that its result can be sent back."""
    reply = Reply(calls=(RawCall(None, "set_timer", '{"minutes": 5}'),), finish_reason="tool_calls")
    call = without_rules(read_reply(reply, tools=TOOLS), reply, frozenset({"*"})).calls[0]
    assert call.id
    assert call.arguments == {"minutes": 5}
