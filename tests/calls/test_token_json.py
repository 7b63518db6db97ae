"""JSON after special tokens: Granite, Phi, GigaChat, InternLM, Cohere, Apertus, functools."""

from typing import Any

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import TOOLS, check_splits, read
from surecall.base.records import ToolSpec
from surecall.calls.families.marked_json import (
    APERTUS,
    COHERE_ACTION,
    FUNCTOOLS,
    GIGACHAT,
    INTERNLM,
    TOKEN_JSON,
)

FORMATS = (COHERE_ACTION, APERTUS, TOKEN_JSON, GIGACHAT, INTERNLM, FUNCTOOLS)
PING = '{"name": "ping", "arguments": {}}'
PINGED: tuple[str, Any] = ("ping", {})

ACCEPTED = (
    FormatCase("granite: one object", f"<|tool_call|>{PING}<|end_of_text|>", (PINGED,)),
    FormatCase(
        "granite: a parameter called name",
        '<|tool_call|>[{"arguments": {"name": "Ada"}, "name": "ping"}]',
        (("ping", {"name": "Ada"}),),
    ),
    FormatCase(
        "phi: objects as text",
        '<|tool_call|>["{\\"name\\": \\"ping\\", \\"arguments\\": {}}"]',
        (PINGED,),
    ),
    FormatCase(
        "phi: an extra type", '<|tool_call|>{"type": "function", "name": "ping"}', (("ping", None),)
    ),
    FormatCase(
        "gigachat: a message of its own",
        f"Sure.<|message_sep|>\n\nfunction call<|role_sep|>\n{PING}<|message_sep|>\n\n",
        (PINGED,),
        content="Sure.",
    ),
    FormatCase("gigachat: the role alone", f"function call<|role_sep|>\n{PING}</s>", (PINGED,)),
    FormatCase(
        "gigachat: control characters",
        '<|function_call|>{"name": "dim_lamp", "arguments": {"room": "a\tb"}}',
        (("dim_lamp", {"room": "a\tb"}),),
        ("escape_control_characters",),
    ),
    FormatCase(
        "internlm: space between tokens",
        f"Look.<|action_start|> <|plugin|>\n{PING}<|action_end|>\n",
        (PINGED,),
        content="Look.",
    ),
    FormatCase(
        "internlm: no end", f"<|action_start|><|plugin|>{PING}", (PINGED,), ("missing_closer",)
    ),
    FormatCase(
        "cohere: damage between objects",
        '<|START_ACTION|>[{"tool_name": "ping", "parameters": {}}\n'
        '{"tool_name": "dim_lamp", "parameters": {"room": "x"}}]<|END_ACTION|>',
        (PINGED, ("dim_lamp", {"room": "x"})),
        ("add_missing_comma", "add_missing_comma"),
    ),
    FormatCase(
        "cohere: no end",
        '<|START_ACTION|>[{"tool_name": "ping", "parameters": {}}]',
        (PINGED,),
        ("missing_closer",),
    ),
    FormatCase(
        "apertus: text on both sides",
        'a <|tools_prefix|>[{"ping": {}}]<|tools_suffix|>b',
        (PINGED,),
        content="a b",
    ),
    FormatCase(
        "apertus: two keys, no suffix",
        '<|tools_prefix|>[{"dim_lamp": {"room": "x"}, "ping": {}}] rest',
        (("dim_lamp", {"room": "x"}), PINGED),
        ("missing_closer", "missing_closer"),
        content=" rest",
    ),
    FormatCase("functools: after prose", f"Sure. functools[{PING}]", (PINGED,), content="Sure."),
    FormatCase(
        "functools: arrays inside",
        'functools[{"name": "save_note", "arguments": {"title": "]", "tags": ["a", "b"]}}]',
        (("save_note", {"title": "]", "tags": ["a", "b"]}),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_with_a_receipt_for_damage(case: FormatCase) -> None:
    """Each form that models of these families write is read."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "The token <|tool_call|> comes first.",
        "It writes <|START_ACTION|> and then an array.",
        "A <|tools_prefix|> token.",
        "Use functools[0], functools[name] or functools.reduce.",
        "<|action_start|> means that an action starts.",
        "The <|message_sep|> is between messages.",
        "Tags such as <co> are citations.",
    ],
)
def test_prose_about_the_tokens_is_shown(text: str) -> None:
    """A token that no JSON follows is text."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        '<|tool_call|>[{"name": "dim_lamp", "arguments": {"room": "ha',
        '<|function_call|>{"name": "dim_lamp", "arguments": {',
        '<|action_start|><|plugin|>{"name": "dim_lamp", "parameters": {"level": 12',
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "dim_lamp", "parameters": {"a',
        '<|tools_prefix|>[{"dim_lamp": {"room": "ha',
        'functools[{"name": "dim_lamp", "arguments": {"room": "ha',
    ],
)
def test_a_call_that_ends_too_soon_is_cut(text: str) -> None:
    """A call without its end is reported, and never as whole."""
    check_cut(text, "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text", ["<|tool_call|>", '<|START_ACTION|>[{"tool_na', '<|tools_prefix|>[{"dim', "functools["]
)
def test_what_is_cut_before_the_name_is_dropped(text: str) -> None:
    """Without a complete name there is no call, and nothing of it is shown."""
    found = check_splits("Wait. " + text, FORMATS)
    assert (found.content.strip(), found.calls) == ("Wait.", [])


def test_cohere_ids_are_kept() -> None:
    """The running number is the id of the call."""
    text = '<|START_ACTION|>[{"tool_call_id": "4", "tool_name": "ping", "parameters": {}}]'
    assert read(text, FORMATS).calls[0].id == "4"


def test_citations_leave_only_what_is_cited() -> None:
    """The tags of a citation are no text."""
    found = check_splits("The <co>moon</co: 0:[1]> and <co>sun</co>.", FORMATS)
    assert found.content == "The moon and sun."


def test_a_made_up_result_ends_the_message() -> None:
    """What a model invents after its call is not shown."""
    text = f"<|START_ACTION|>[{PING}]<|END_ACTION|><|START_TOOL_RESULT|>[...]"
    found = check_splits(text, FORMATS)
    assert ([call.name for call in found.calls], found.content) == (["ping"], "")


def test_interpreter_code_is_for_the_one_tool_that_runs_code() -> None:
    """Raw code has a reader only where exactly one tool can be meant."""
    text = "<|action_start|><|interpreter|>\nprint(1)\n<|action_end|>"
    tools = (*TOOLS, ToolSpec(name="python"))
    (call,) = check_splits(text, FORMATS, tools).calls
    assert (call.name, call.arguments, call.state) == ("python", {"code": "print(1)"}, "whole")
    assert check_splits(text.removesuffix("<|action_end|>"), FORMATS, tools).calls[0].state == "cut"
    assert check_splits(text, FORMATS).calls == []
    assert check_splits(text, FORMATS, (*tools, ToolSpec(name="ipython"))).calls == []
