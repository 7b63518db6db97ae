"""Replies as models of many families write them when something in their format is damaged."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall import read_reply
from surecall.base.records import Reading
from surecall.reading import ReplyReader

_TEXT = {"type": "string"}


def _tool(name: str, properties: dict[str, Any]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


LAMP = _tool("dim_lamp", {"room": _TEXT, "level": {"type": "integer"}})
NOTE = _tool("save_note", {"title": _TEXT, "body": _TEXT})
PING = _tool("ping", {})
PYTHON = _tool("python", {"code": _TEXT})
TOOLS = [LAMP, NOTE, PING]

DIMMED = ("dim_lamp", {"room": "hall", "level": 3})
PINGED: tuple[str, Any] = ("ping", {})
LEVEL = '"room": "hall", "level": 3'


@dataclass(frozen=True)
class Case:
    """A reply that came to its end, and what it says."""

    id: str
    text: str
    calls: tuple[tuple[str, Any], ...] = (DIMMED,)
    content: str = ""
    reasoning: str | None = None
    tools: tuple[dict[str, Any], ...] = (LAMP, NOTE, PING)


def _minimax(name: str, parameters: str = "") -> str:
    invoke = f'<invoke name="{name}">\n{parameters}</invoke>'
    return f"<minimax:tool_call>\n{invoke}\n</minimax:tool_call>"


CASES = (
    Case(
        "a thought between calls is opened, so the call before it was no thought",
        f"{_minimax('ping')}\n<think>next</think>\n{_minimax('ping')}",
        (PINGED, PINGED),
        reasoning="next",
    ),
    Case(
        "a parameter closed as a function is",
        "<tool_call>\n<function=dim_lamp>\n<parameter=room>\nhall\n</function>\n"
        "<parameter=level>\n3\n</parameter>\n</function>\n</tool_call>",
    ),
    Case(
        "a key without its equals sign",
        "<tool_call>\n<function=dim_lamp>\n<parameter=room>\nhall\n</parameter>\n"
        "<parameter level>\n3\n</parameter>\n</function>\n</tool_call>",
    ),
    Case(
        "quotes around a number",
        "<tool_call>dim_lamp\n<arg_key>room</arg_key>\n<arg_value>hall</arg_value>\n"
        '<arg_key>level</arg_key>\n<arg_value>"3"</arg_value>\n</tool_call>',
    ),
    Case(
        "tools in the reasoning of Apertus, which goes on",
        f'<|inner_prefix|>one <|tools_prefix|>[{{"dim_lamp": {{{LEVEL}}}}}]<|tools_suffix|>'
        "two<|inner_suffix|>Done.",
        content="Done.",
        reasoning="one two",
    ),
    Case(
        "arguments of Apertus as text",
        '<|tools_prefix|>[{"dim_lamp": "{\\"room\\": \\"hall\\", \\"level\\": 3}"}]'
        "<|tools_suffix|>",
    ),
    Case(
        "arguments of DeepSeek as text",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>dim_lamp<｜tool▁sep｜>"
        '"{\\"room\\": \\"hall\\", \\"level\\": 3}"<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    ),
    Case(
        "DSML without bars",
        '<DSMLtool_calls>\n<DSMLinvoke name="dim_lamp">\n'
        '<DSMLparameter name="room" string="true">hall</DSMLparameter>\n'
        '<DSMLparameter name="level" string="false">3</DSMLparameter>\n'
        "</DSMLinvoke>\n</DSMLtool_calls>",
    ),
    Case(
        "reasoning that is told in words",
        "Here is my thought process:\nThe lamp.\n\nHere's my response:\n"
        f'<|tool_call|>[{{"name": "dim_lamp", "arguments": {{{LEVEL}}}}}]',
        reasoning="The lamp.",
    ),
    Case(
        "words about reasoning without an end",
        "Here is my thought process: I like lamps.",
        (),
        content="Here is my thought process: I like lamps.",
    ),
    Case(
        "an answer of Cohere before its action",
        "<|START_RESPONSE|>Let me see.<|END_RESPONSE|><|START_ACTION|>"
        f'[{{"tool_name": "dim_lamp", "parameters": {{{LEVEL}}}}}]<|END_ACTION|>',
        content="Let me see.",
    ),
    Case(
        "an echo with a closer",
        f'<tool_call>{{"name": "dim_lamp", "arguments": {{{LEVEL}}}}}</tool_call>\n'
        f'{{"name": "dim_lamp", "arguments": {{{LEVEL}}}}}</tool_call>',
    ),
    Case(
        "an echo as JSON",
        '<|tool_call_start|>[dim_lamp(room="hall", level=3)]<|tool_call_end|>'
        f'{{"name": "dim_lamp", "arguments": {{{LEVEL}}}}}<|tool_call_end|>',
    ),
    Case("lists in a row", '[ping()]\n[dim_lamp(room="hall", level=3)]', (PINGED, DIMMED)),
    Case("a list without its bracket", '[dim_lamp(room="hall", level=3)'),
    Case(
        "code as a JSON string",
        '<|python_tag|>"print(1)\\nprint(2)"<|eom_id|>',
        (("python", {"code": "print(1)\nprint(2)"}),),
        tools=(PYTHON,),
    ),
    Case(
        "code to the end of the message",
        ">>>python\nprint(a > b)",
        (("python", {"code": "print(a > b)"}),),
        tools=(PYTHON,),
    ),
    Case("a call in Python syntax behind the tag", '<|python_tag|>dim_lamp(room="hall", level=3)'),
    Case(
        "tokens that end the turn of Hunyuan, GLM and Llama",
        '<|start_header_id|>assistant<|end_header_id|>\n\n{"name": "ping", "parameters": {}}'
        "<eop><｜hy_eos:opensource｜><SPECIAL_12>",
        (PINGED,),
    ),
)


def _whole(reading: Reading) -> tuple[tuple[str, Any], ...]:
    return tuple((call.name, call.arguments) for call in reading.calls if call.state == "whole")


def test_quotes_in_quotes_are_only_likely() -> None:
    """They may as well end the text."""
    text = "[save_note(title='t', body='say 'hi' twice')]"
    reading = read_reply(text, tools=CASES[0].tools, finish_reason="stop")
    assert (reading.calls, len(reading.seen)) == ((), 1)
    likely = read_reply(text, tools=CASES[0].tools, finish_reason="stop", accept="likely")
    assert _whole(likely) == (("save_note", {"title": "t", "body": "say 'hi' twice"}),)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_damage_is_read_as_what_it_stands_for(case: Case) -> None:
    """The calls, the visible text and the reasoning are told apart, whole and in a stream."""
    reading = read_reply(case.text, tools=case.tools, finish_reason="stop")
    assert (_whole(reading), len(reading.calls)) == (case.calls, len(case.calls))
    assert (reading.content.strip(), reading.reasoning) == (case.content, case.reasoning)
    reader = ReplyReader(case.tools)
    for character in case.text:
        reader.feed(character)
    assert reader.close("stop") == reading


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_beginning_of_damaged_text_is_another_call(case: Case) -> None:
    """A reply that was cut off at its limit has no call that the whole of it has not."""
    for end in range(len(case.text)):
        cut = read_reply(case.text[:end], tools=case.tools, finish_reason="length")
        assert all(call in case.calls for call in _whole(cut)), case.text[:end]


@pytest.mark.parametrize(
    "text",
    [
        "<|python_tag|>print(a >",
        ">>>python\nprint(a >",
        "<|recipient|>python\n<|content|>print(a >",
        "<|channel|>analysis to=python code<|message|>print(a >",
    ],
    ids=["llama", "functionary", "functionary_v2", "harmony"],
)
def test_code_without_an_end_is_whole_only_if_the_model_stopped(text: str) -> None:
    """Code has no end of its own, and one that ends in a bracket ends in no marker."""
    for reason in ("length", None):
        assert [
            it.state for it in read_reply(text, tools=[PYTHON], finish_reason=reason).calls
        ] == ["cut"]
    (call,) = read_reply(text, tools=[PYTHON], finish_reason="stop").calls
    assert (call.state, call.arguments) == ("whole", {"code": "print(a >"})


MENTIONS = {
    "glm": "<tool_call>save_note\n<arg_key>title</arg_key>\n<arg_value>x</arg_value>\n"
    '<arg_key>body</arg_key>\n<arg_value>use <tool_call>{"title": "y"}</tool_call>',
    "qwen_xml": "<tool_call>\n<function=save_note>\n<parameter=title>\nx\n</parameter>\n"
    '<parameter=body>\nuse <tool_call>\n{"title": "y"}\n</tool_call>',
    "without a wrapper": "<function=save_note>\n<parameter=title>\nx\n</parameter>\n"
    '<parameter=body>\nuse <function=ping>{"title": "y"}\n</function>',
}


@pytest.mark.parametrize("text", MENTIONS.values(), ids=MENTIONS)
@pytest.mark.parametrize("finish_reason", ["stop", None, "length"])
def test_a_closer_that_a_value_opened_ends_no_call(text: str, finish_reason: str | None) -> None:
    """It may belong to the text of the value, and JSON in that text is not taken as arguments."""
    reading = read_reply(text, tools=TOOLS, finish_reason=finish_reason)
    assert _whole(reading) == ()
    assert [call.name for call in reading.calls] == ["save_note"]


def test_code_that_should_follow_an_empty_argument_is_missed() -> None:
    """A call whose code stands behind its JSON is cut when the text ends before the code."""
    text = '<tool_call>\n{"name": "python", "arguments": {"code": ""}}\n<co'
    (call,) = read_reply(text, tools=[PYTHON], finish_reason="length").calls
    assert call.state == "cut"
