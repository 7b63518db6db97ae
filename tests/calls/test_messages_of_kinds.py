"""Solar Open and Inkling: messages that say by a token of what kind they are."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import TOOLS, check_splits
from surecall.base.records import ToolSpec
from surecall.calls.families.channels import INKLING, SOLAR

FORMATS = (SOLAR, INKLING)
SOLAR = "<|tool_call:begin|>a1<|tool_call:name|>ping<|tool_call:args|>{}<|tool_call:end|>"
INKLING = '<|message_model|>ping<|content_invoke_tool_json|>{"name": "ping", "args": {}}'

ACCEPTED = (
    FormatCase("solar: a call alone", SOLAR, (("ping", "{}"),)),
    FormatCase(
        "solar: no end of the call",
        f"<|tool_calls|>{SOLAR.removesuffix('<|tool_call:end|>')}<|calls|>",
        (("ping", "{}"),),
        ("missing_closer",),
    ),
    FormatCase(
        "solar: after an answer",
        f"<|content|>Wait.<|end|><|begin|>assistant<|tool_calls|>{SOLAR}<|calls|>",
        (("ping", "{}"),),
        content="Wait.",
    ),
    FormatCase("inkling: no end", INKLING, (("ping", {}),), ("missing_closer",)),
    FormatCase(
        "inkling: text after the call",
        f"{INKLING}<|end_message|><|message_model|><|content_text|>Done.<|end_message|>",
        (("ping", {}),),
        content="Done.",
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_with_a_receipt_for_damage(case: FormatCase) -> None:
    """Each form of the families is read."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "The token <|tool_call:begin|> begins a call.",
        "The token <|tool_calls|> begins them.",
        "The token <|begin|>assistant begins a message.",
        "The token <|message_model|> begins a message.",
        "The token <|content_invoke_tool_json|> names its kind.",
        "The token <|end_message|> ends one.",
    ],
)
def test_prose_about_the_tokens_is_shown(text: str) -> None:
    """Tokens that no message follows are text."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        '<|tool_call:begin|>a<|tool_call:name|>dim_lamp<|tool_call:args|>{"room": "ha',
        "<|tool_call:begin|>a<|tool_call:name|>dim_lamp<|tool_call:args|>",
        '<|content_invoke_tool_json|>{"name": "dim_lamp", "args": {"room": "ha',
        "<|message_model|>dim_lamp<|content_invoke_tool_text|>ha",
    ],
)
def test_a_call_that_ends_too_soon_is_cut(text: str) -> None:
    """A call without its end is reported, and never as whole."""
    check_cut(text, "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "<|begin|>assistant",
        "<|begin|>assistant<|tool_ca",
        "<|tool_call:begin|>a<|tool_call:name|>dim_l",
        "<|message_model|>dim_l",
        "<|content_invoke_tool_json|>",
    ],
)
def test_what_is_cut_before_the_name_is_dropped(text: str) -> None:
    """Without a complete name there is no call, and nothing of it is shown."""
    found = check_splits("Wait." + text, FORMATS)
    assert (found.content, found.calls) == ("Wait.", [])


@pytest.mark.parametrize(
    "text",
    [
        "<|begin|>assistant<|think|>Hm.<|end|><|begin|>assistant<|content|>Hello.<|end|>",
        "<|think|>Hm.<|begin|>assistant<|content|>Hello.<|end|>",
        "<|message_model|><|content_thinking|>Hm.<|end_message|><|content_text|>Hello.",
    ],
)
def test_messages_of_thoughts_are_reasoning(text: str) -> None:
    """What a message of thoughts says is reasoning, and the rest is shown."""
    found = check_splits(text, FORMATS)
    assert (found.reasoning, found.content) == ("Hm.", "Hello.")


def test_solar_ids_are_kept() -> None:
    """The id that precedes the name is that of the call."""
    assert [call.id for call in check_splits(SOLAR, FORMATS).calls] == ["a1"]


def test_raw_text_is_the_only_parameter() -> None:
    """A tool with one parameter gets the text as its value; others get it as it is."""
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    tools = (*TOOLS, ToolSpec(name="find", parameters=schema))
    text = "<|message_model|>{}<|content_invoke_tool_text|>12<|end_message|>"
    calls = [
        check_splits(text.format(name), FORMATS, tools).calls[0] for name in ("find", "dim_lamp")
    ]
    assert [call.arguments for call in calls] == [{"query": "12"}, "12"]
