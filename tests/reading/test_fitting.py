"""Arguments and names, fitted to the tools that were offered."""

from dataclasses import dataclass
from typing import Any

import pytest

import surecall
from support.offered_tools import NOTE, OSLO, TOOLS, WEATHER
from surecall.base.errors import ToolDefinitionError
from surecall.base.records import RawCall, Reading, Reply, ToolSpec
from surecall.reading import ReplyReader, read_arguments, read_reply
from surecall.tools import ToolRegistry

INVALID = "ARGUMENTS_INVALID"
PARSE = "ARGUMENTS_JSON_PARSE_ERROR"


@dataclass(frozen=True)
class Fit:
    id: str
    raw: Any
    value: dict[str, Any] | None
    rules: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()


OSLO_ONLY = {"city": "Oslo"}
FITS = (
    Fit("fits", '{"city": "Oslo", "days": 3}', {"city": "Oslo", "days": 3}),
    Fit("object that fits", OSLO_ONLY, OSLO_ONLY),
    Fit(
        "number as text",
        '{"city":"Oslo","days":"3"}',
        {"city": "Oslo", "days": 3},
        ("parse_number_text",),
    ),
    Fit("text as number", '{"city": 3}', {"city": "3"}, ("write_as_text",)),
    Fit("other case", '{"City": "Oslo"}', OSLO_ONLY, ("rename_key",)),
    Fit("null for an optional field", '{"city":"Oslo","days":null}', OSLO_ONLY, ("drop_null",)),
    Fit(
        "wrapped in arguments", '{"arguments": {"city": "Oslo"}}', OSLO_ONLY, ("unwrap_arguments",)
    ),
    Fit("wrapped in the name", '{"weather": {"city": "Oslo"}}', OSLO_ONLY, ("unwrap_arguments",)),
    Fit(
        "repaired and fitted",
        '{"city": "Oslo", "days": "3",}',
        {"city": "Oslo", "days": 3},
        ("drop_trailing_comma", "parse_number_text"),
    ),
    Fit("array of several values", '["Oslo", 3]', None, (), (PARSE,)),
    Fit("array of one object", [OSLO_ONLY], OSLO_ONLY, ("unwrap_list",)),
    Fit("array without a meaning", "[1, 2, 3]", None, (), (PARSE,)),
    Fit("empty array", "[]", None, (), (PARSE,)),
    Fit("number", "3", None, (), (PARSE,)),
    Fit("boolean", "true", None, (), (PARSE,)),
    Fit("null text", "null", None, (), (PARSE,)),
    Fit("text", '"Oslo"', None, (), (PARSE,)),
    Fit("missing", "{}", {}, (), (INVALID,)),
    Fit("blank", "", {}, ("blank_to_empty_object",), (INVALID,)),
    Fit(
        "wrong value",
        '{"city":"Oslo","days":"soon"}',
        {"city": "Oslo", "days": "soon"},
        (),
        (INVALID,),
    ),
    Fit("unknown name", '{"town":"Oslo"}', {"town": "Oslo"}, (), (INVALID, INVALID)),
    Fit("cut", '{"city": "Os', None, (), ("ARGUMENTS_TRUNCATED",)),
)


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.id)
def test_arguments_are_fitted_to_the_schema_or_refused(fit: Fit) -> None:
    """Where the schema decides what is meant it is done with a receipt; else it is an error."""
    reading = read_arguments(fit.raw, WEATHER.parameters, tool_name="weather")
    assert reading.value == fit.value
    assert tuple(receipt.rule for receipt in reading.receipts) == fit.rules
    assert tuple(error.code for error in reading.errors) == fit.codes
    assert (reading.state == "whole") == (fit.value is not None)


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.id)
def test_a_reply_reads_arguments_the_same_way(fit: Fit) -> None:
    """What holds for arguments alone holds for those of a call."""
    (call,) = _read("weather", fit.raw).calls
    assert call.arguments == fit.value
    assert tuple(receipt.rule for receipt in call.receipts) == fit.rules
    assert tuple(error.code for error in call.errors) == fit.codes
    assert call.raw == fit.raw


def _read(name: str, arguments: Any = "{}", tools: Any = TOOLS) -> Reading:
    return read_reply(Reply(calls=(RawCall("c1", name, arguments),)), tools=tools)


def test_a_schema_that_cannot_be_used_is_told_to_the_caller_of_read_arguments() -> None:
    """It is a fault of the program, not of the model."""
    with pytest.raises(ToolDefinitionError):
        read_arguments('{"a": 1}', {"type": "nonsense"})


def test_a_schema_that_cannot_be_used_leaves_the_arguments_of_a_reply_alone() -> None:
    """Reading a reply raises nothing for what one of many tools is."""
    (call,) = _read("odd", '{"a": "1"}', [ToolSpec(name="odd", parameters={"type": 5})]).calls
    assert (call.arguments, call.errors, call.receipts) == ({"a": "1"}, (), ())


def test_a_tool_that_forbids_coercion_is_left_alone() -> None:
    """Its arguments are only repaired as JSON; the schema is checked when the call is run."""
    strict = ToolSpec(name="weather", parameters=WEATHER.parameters, coerce="off")
    (call,) = _read("weather", "{'days': '3'}", [strict]).calls
    assert call.arguments == {"days": "3"}
    assert {receipt.rule for receipt in call.receipts} == {"replace_quotes"}
    assert call.errors == ()
    (listed,) = _read("weather", '["Oslo"]', [strict]).calls
    assert (listed.state, listed.errors[0].code) == ("unreadable", PARSE)


def test_without_tools_nothing_is_fitted() -> None:
    """A reply alone says nothing about schemas."""
    (call,) = _read("weather", '{"city": 3}', None).calls
    assert (call.arguments, call.receipts) == ({"city": 3}, ())


# Names


def _named(*names: str) -> list[ToolSpec]:
    return [ToolSpec(name=name) for name in names]


@pytest.mark.parametrize(
    ("sent", "offered", "name"),
    [
        pytest.param("state.get", ["state_get"], "state_get", id="dots for underscores"),
        pytest.param("state-get", ["state_get"], "state_get", id="hyphen"),
        pytest.param("StateGet", ["state_get"], "state_get", id="camel case"),
        pytest.param("functions.state_get", ["state_get"], "state_get", id="namespace"),
        pytest.param("functions.state_get:0", ["state_get", "x"], "state_get", id="counter"),
        pytest.param("state_get()", ["state_get"], "state_get", id="brackets"),
        pytest.param("a.b", ["a.b", "a_b"], "a.b", id="exact name wins"),
    ],
)
def test_a_superficial_difference_finds_the_one_tool(
    sent: str, offered: list[str], name: str
) -> None:
    """The name is the tool's own, and a receipt says what was sent."""
    (call,) = _read(sent, tools=_named(*offered)).calls
    assert call.name == name
    shown = [(receipt.rule, receipt.before, receipt.after) for receipt in call.receipts]
    assert shown == ([] if sent == name else [("resolve_tool_name", sent, name)])


@pytest.mark.parametrize(
    ("sent", "offered"),
    [
        pytest.param("get.state", ["get_state", "get-state"], id="two tools match"),
        pytest.param("GetState", ["get_state", "getstate"], id="two tools match by case"),
        pytest.param("wether", ["weather"], id="misspelled"),
        pytest.param("weather_now", ["weather"], id="longer"),
        pytest.param("weath", ["weather"], id="shorter"),
        pytest.param("wеather", ["weather"], id="look-alike letter"),
        pytest.param("", ["weather"], id="no name"),
        pytest.param("../weather", ["weather"], id="path"),
    ],
)
def test_a_name_that_means_no_tool_or_two_is_left_alone(sent: str, offered: list[str]) -> None:
    """Nothing is guessed; the call is refused when it is to be run."""
    (call,) = _read(sent, '{"a": 1}', _named(*offered)).calls
    assert (call.name, call.receipts, call.arguments) == (sent, (), {"a": 1})


def test_the_schema_of_the_resolved_tool_is_used() -> None:
    """A call by another spelling is fitted like any other."""
    (call,) = _read("Weather", '{"city": "Oslo", "days": "3"}').calls
    assert call.arguments == {"city": "Oslo", "days": 3}
    assert [receipt.rule for receipt in call.receipts] == ["resolve_tool_name", "parse_number_text"]


# Tools in every form


@surecall.tool(effect="read")
def weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"{city} {days}"


OPENAI = {
    "type": "function",
    "function": {"name": "weather", "description": "w", "parameters": WEATHER.parameters},
}
FORMS = {
    "specs": [WEATHER],
    "a generator": None,
    "OpenAI objects": [OPENAI],
    "functions without a wrapper": [OPENAI["function"]],
    "Anthropic objects": [{"name": "weather", "input_schema": WEATHER.parameters}],
    "tools": [weather],
    "a registry": ToolRegistry([weather]),
    "a mixture": [NOTE, weather],
}


@pytest.mark.parametrize("form", FORMS)
def test_tools_are_accepted_in_every_form(form: str) -> None:
    """OpenAI objects, specs, decorated functions and a registry all mean the same tools."""
    tools: Any = FORMS[form] if FORMS[form] is not None else (tool for tool in [WEATHER])
    (call,) = read_reply(OSLO.replace('"Oslo"', '"Oslo", "days": "2"'), tools=tools).calls
    assert (call.name, call.arguments) == ("weather", {"city": "Oslo", "days": 2})


@pytest.mark.parametrize("tools", [[3], [{"type": "function"}], [{"function": {"name": 3}}]])
def test_what_is_no_tool_is_refused(tools: Any) -> None:
    """A wrong list is a fault of the program, told at once."""
    with pytest.raises(ToolDefinitionError) as caught:
        read_reply("hello", tools=tools)
    assert caught.value.code == "INVALID_TOOL"
    assert caught.value.hint is not None
    with pytest.raises(ToolDefinitionError):
        ReplyReader(tools)


# Clean replies, and which calls win


def test_a_clean_message_with_tools_leaves_no_receipt_and_the_same_bytes() -> None:
    """Neither arguments nor text are touched when nothing is wrong with them."""
    raw = '{ "city" : "Łódź",\n "days": 2 }'
    message = {
        "role": "assistant",
        "content": "  Let me see {x}.\n",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "weather", "arguments": raw}}
        ],
    }
    reading = read_reply(message, tools=TOOLS, finish_reason="tool_calls")
    (call,) = reading.calls
    assert (call.raw, call.arguments) == (raw, {"city": "Łódź", "days": 2})
    assert (call.receipts, call.errors, reading.receipts, reading.defects) == ((), (), (), ())
    assert reading.content == "  Let me see {x}.\n"


def test_calls_in_their_own_field_win_over_text() -> None:
    """Text that looks like a call is text when there are calls."""
    message = {
        "content": OSLO,
        "tool_calls": [{"id": "a", "function": {"name": "ping", "arguments": "{}"}}],
    }
    reading = read_reply(message, tools=TOOLS)
    assert [call.name for call in reading.calls] == ["ping"]
    assert reading.content == OSLO


def test_text_formats_can_be_off() -> None:
    """Then text is the answer, whatever it looks like."""
    reading = read_reply(f"<think>x</think>{OSLO}", tools=TOOLS, text_formats=False)
    assert (reading.calls, reading.content) == ((), f"<think>x</think>{OSLO}")
    assert read_reply(OSLO, tools=[]).calls == ()


def test_reasoning_from_both_places_is_kept() -> None:
    """The field for it comes first, then what stood in the text."""
    message = {"content": f"<think>two</think>Hi {OSLO}", "reasoning_content": "one"}
    reading = read_reply(message, tools=TOOLS)
    assert (reading.reasoning, reading.content) == ("one\ntwo", "Hi")
    assert len(reading.calls) == 1
