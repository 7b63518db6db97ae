"""gpt-oss harmony, with its tokens and without them."""

import pytest

from support.read_text import check_splits, read
from support.text_cases import EVERY, TextCase, check_case, check_no_call
from surecall.base.records import ToolSpec

START = "<|start|>assistant"
CASES = (
    TextCase(
        "analysis, preamble, call",
        "<|channel|>analysis<|message|>It is dark.<|end|>"
        f"{START}<|channel|>commentary<|message|>One moment.<|end|>"
        f"{START}<|channel|>commentary to=functions.ping <|constrain|>json<|message|>{{}}<|call|>",
        (("ping", {}),),
        "One moment.",
        "It is dark.",
    ),
    TextCase(
        "a call with a recipient on the analysis channel",
        " to=functions.ping<|channel|>analysis json<|message|>{}<|call|>",
        (("ping", {}),),
    ),
    TextCase(
        "the constrained type glued to the name",
        "<|channel|>commentary to=functions.pingjson<|message|>{}<|call|>",
        (("pingjson", {}),),
    ),
    TextCase(
        "no space before the type, a stray word behind the call",
        "<|channel|>commentary to=functions.ping<|constrain|>json<|message|>{}<|call|>commentary",
        (("ping", {}),),
    ),
    TextCase(
        "a stray header before the real one",
        "<|channel|>commentary to=assistant<|channel|>analysis<|message|>Hm.<|end|>"
        f"{START}<|channel|>final<|message|>Hi.<|return|>",
        (),
        "Hi.",
        "Hm.",
    ),
    TextCase(
        "no namespace",
        "<|channel|>commentary to=ping <|constrain|>json<|message|>{}<|call|>",
        (("ping", {}),),
        rules=("add_namespace",),
    ),
    TextCase(
        "repeated message token",
        '<|channel|>commentary to=functions.dim_lamp<|message|><|message|>{"room": "a"}',
        (("dim_lamp", {"room": "a"}),),
    ),
    TextCase(
        "empty body",
        "<|channel|>commentary to=functions.ping<|message|><|call|>",
        (("ping", None),),
    ),
    TextCase(
        "Python for a body",
        "<|channel|>commentary to=functions.dim_lamp<|message|>{'room': 'hall'}<|call|>",
        (("dim_lamp", {"room": "hall"}),),
    ),
    TextCase(
        "an unknown tool is reported",
        "<|channel|>commentary to=functions.nope<|message|>{}<|call|>",
        (("nope", {}),),
    ),
    TextCase(
        "a tool of the model's own is not",
        "<|channel|>commentary to=browser.open<|message|>{}<|call|>",
    ),
    TextCase(
        "made-up wrapper for parallel calls",
        "<|channel|>commentary to=multi_tool_use.parallel<|message|>"
        '{"tool_uses": [{"recipient_name": "functions.ping", "parameters": {}}]}<|call|>',
        (("functions.ping", {}),),
    ),
    TextCase(
        "analysis without its end, then a call",
        "<|channel|>analysis<|message|>plan<|channel|>commentary to=functions.ping<|message|>{}",
        (("ping", {}),),
        reasoning="plan",
    ),
    TextCase(
        "analysis without its end, then the answer",
        "<|channel|>analysis<|message|>plan<|channel|>final<|message|>Done",
        content="Done",
        reasoning="plan",
    ),
    TextCase(
        "header without a message token",
        f"{START}<|channel|>final {{1}}",
        content=" {1}",
    ),
    TextCase(
        "garbage in a header",
        f"<|channel|>??<|end|>{START}<|channel|>analysis<|message|>Hm.",
        reasoning="??\nHm.",
    ),
    TextCase(
        "unknown channel",
        "<|channel|>comment<|message|>some text<|end|>",
        content="some text",
    ),
    TextCase("header cut in the name", "<|channel|>commentary to=functions.ping"),
    TextCase(
        "header cut behind the name",
        "<|channel|>commentary to=functions.ping <|constrain|>js",
        (("ping", ""),),
        states=("cut",),
    ),
    TextCase(
        "body cut",
        '<|channel|>commentary to=functions.dim_lamp<|message|>{"room": "ha',
        (("dim_lamp", '{"room": "ha'),),
        states=("cut",),
    ),
    TextCase(
        "nothing in an answer is a call",
        "<|channel|>final<|message|>Write it so:\n[ping()]<|return|>",
        content="Write it so:\n[ping()]",
    ),
    TextCase(
        "an answer that looks like a call",
        '<|channel|>final<|message|>{"name": "ping", "arguments": {}}',
        content='{"name": "ping", "arguments": {}}',
    ),
    TextCase(
        "tokens mentioned in analysis",
        "<|channel|>analysis<|message|>No <|call|> and no <|channel|>final yet.<|end|>"
        f"{START} to=functions.ping<|channel|>commentary<|message|>{{}}",
        (("ping", {}),),
        reasoning="No <|call|> and no <|channel|>final yet.",
    ),
    TextCase(
        "tokens stripped, a call",
        "analysisIt is dark.assistantcommentary to=functions.ping json{}",
        (("ping", {}),),
        reasoning="It is dark.",
        rules=("restore_header",),
    ),
    TextCase(
        "tokens stripped, a call and an answer",
        'commentary to=functions.dim_lamp json{"room": "a"}assistantfinalDone.',
        (("dim_lamp", {"room": "a"}),),
        "Done.",
        rules=("restore_header",),
    ),
    TextCase(
        "tokens stripped, an answer",
        "analysisNothing to call.assistantfinalHello.",
        content="Hello.",
        reasoning="Nothing to call.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_messages_are_told_apart_by_their_headers(case: TextCase) -> None:
    """Reasoning, text and calls are told apart, damaged headers included."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "Write to=functions.ping into the config.",
        "The <|channel|> token is followed by <|message|> in harmony.",
        "Send `<|channel|>commentary to=functions.ping<|message|>{}<|call|>` to me.",
        "analysis of the text shows assistantfinal and more",
        "commentary to=functions.unknown json{}",
        "It ends with <|end|> and goes on.",
        "to=ping<|message|>{}",
    ],
)
def test_prose_about_headers_stays_prose(text: str) -> None:
    """Words and tokens of headers in prose are not headers."""
    check_no_call(text)


def test_raw_code_goes_to_the_tool_that_runs_it() -> None:
    """A body that is no JSON is the one parameter of a code tool."""
    schema = {"type": "object", "properties": {"code": {"type": "string"}}}
    tools = (ToolSpec(name="python", parameters=schema),)
    text = "<|channel|>analysis to=python code<|message|>print({1})\n<|call|>"
    found = check_splits(text, EVERY, tools)
    assert [(call.name, call.arguments) for call in found.calls] == [
        ("python", {"code": "print({1})"})
    ]


def test_end_token_cut_in_the_middle_belongs_to_no_argument() -> None:
    """The beginning of a token behind complete arguments is dropped."""
    found = read("<|channel|>commentary to=functions.ping<|message|>{}<|ca", EVERY)
    assert [(call.arguments, call.state) for call in found.calls] == [("{}", "whole")]
    assert found.content == ""
