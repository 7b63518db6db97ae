"""What every family with tagged text values must do."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.read_text import TOOLS, check_cuts, check_splits, read
from support.render_formats_tags import RENDERERS
from surecall.calls.families.channels import ATEM_BLOCK, KIMI_K3, MUSE
from surecall.calls.families.elements import (
    ANTHROPIC_XML,
    BARE_INVOKE,
    BARE_QWEN_XML,
    DOTS,
    DSML,
    GLM,
    HUNYUAN_V3,
    LANGCHAIN_XML,
    LONGCAT,
    MINICPM5,
    MINIMAX_M2,
    QWEN_XML,
    SEED_XML,
    STEP3,
)
from surecall.calls.families.named_json import FUNCTION_TAG
from surecall.calls.families.nested_tags import MINIMAX_M3, NAME_TAG
from surecall.calls.formats import CallFormat
from surecall.calls.names import ToolNames
from surecall.text import decode

FORMATS: tuple[CallFormat, ...] = (
    KIMI_K3,
    MUSE,
    DSML,
    STEP3,
    MINIMAX_M3,
    MINIMAX_M2,
    DOTS,
    LONGCAT,
    HUNYUAN_V3,
    QWEN_XML,
    SEED_XML,
    GLM,
    ANTHROPIC_XML,
    FUNCTION_TAG,
    BARE_QWEN_XML,
    MINICPM5,
    ATEM_BLOCK,
    BARE_INVOKE,
    LANGCHAIN_XML,
    NAME_TAG,
)
TRIMS_VALUES = {"dots"}
STRIPS_NEWLINES = {"name_tag"}
OPENERS = sorted(
    {
        "<tool_call>",
        "<seed:tool_call>",
        "<tool_call>ping",
        "<tool_call:opensource>",
        "<tool_calls>",
        "<longcat_tool_call>",
        "<minimax:tool_call>",
        "<function_calls>",
        "<dots_function_call>",
        "<function=ping>",
        '<function name="ping">',
        '<invoke name="ping">',
        "<atem:function_calls>",
        "<｜DSML｜tool_calls>",
        '<｜DSML｜invoke name="ping">',
        "<｜tool_calls_begin｜>",
        '<steptml:invoke name="ping">',
        "]<]minimax[>[<tool_call>",
        ']<]minimax[>[<invoke name="ping">',
        "<|open|>tools<|sep|>",
        '<|open|>call tool="ping" index="1"<|sep|>',
        "<|start|>assistant to=",
        "<tool>ping</tool><tool_input>",
        "<save_note><title>",
        "<tool_call><function=ping><parameter=a>",
        "<tool_call>ping<arg_key>a</arg_key><arg_value>",
        "<function_calls><invoke name='ping'><parameter name='a'>",
    }
)

_PIECES = st.sampled_from(
    [
        "a",
        " ",
        "\n",
        "\t",
        '"',
        "'",
        "{",
        "}",
        "[1]",
        "\\",
        "é",
        "格",
        "👩‍💻",
        "<b>",
        "</div>\n",
        "x < y && z > w",
        "</",
        "<",
        "null",
        "12",
    ]
)
_TEXTS = st.lists(_PIECES, max_size=8).map("".join)
_NOTES = st.builds(
    lambda title, body, tags: ("save_note", {"title": title, "body": body, "tags": tags}),
    _TEXTS,
    _TEXTS,
    st.lists(_TEXTS, max_size=3),
)
_LAMPS = st.builds(
    lambda room, level, fade: ("dim_lamp", {"room": room, "level": level, "fade": fade}),
    _TEXTS,
    st.integers(-999, 999),
    st.booleans(),
)
_CALLS = st.lists(st.one_of(_NOTES, _LAMPS, st.just(("ping", {}))), min_size=1, max_size=3)

TWO_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("save_note", {"title": "Trip", "body": 'a "b" < c\n{x}', "tags": ["sea", "7"]}),
    ("ping", {}),
]


def _formats_for(text: str) -> list[CallFormat]:
    """Return the families that look at the text at all."""
    tools = ToolNames(TOOLS)
    return [form for form in FORMATS if any(opener in text for opener in form.openers(tools))]


def _plain(name: str, arguments: Any) -> tuple[str, Any]:
    return name, decode(arguments) if isinstance(arguments, str) else (arguments or {})


@pytest.mark.parametrize("family", RENDERERS)
@settings(max_examples=60)
@given(calls=_CALLS)
def test_calls_are_read_as_they_were_written(
    family: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    """Names, order, types and every character of the values survive."""
    if family in TRIMS_VALUES:
        calls = [(name, _trimmed(arguments, None)) for name, arguments in calls]
    if family in STRIPS_NEWLINES:
        calls = [(name, _trimmed(arguments, "\n")) for name, arguments in calls]
    text = RENDERERS[family](calls, "", "")
    found = read(text, FORMATS)
    assert [call.state for call in found.calls] == ["whole"] * len(calls)
    assert [_plain(call.name, call.arguments) for call in found.calls] == calls
    assert found.content == ""


def _trimmed(arguments: dict[str, Any], characters: str | None) -> dict[str, Any]:
    return {k: v.strip(characters) if isinstance(v, str) else v for k, v in arguments.items()}


@pytest.mark.parametrize("family", RENDERERS)
def test_every_split_reads_the_same(family: str) -> None:
    """Where a stream is split does not matter, and text around calls stays."""
    text = RENDERERS[family](TWO_CALLS, "Saving it.", "")
    found = check_splits(text, _formats_for(text))
    assert [_plain(call.name, call.arguments) for call in found.calls] == TWO_CALLS
    assert found.content == "Saving it."


@pytest.mark.parametrize("family", RENDERERS)
def test_a_cut_call_is_never_whole(family: str) -> None:
    """Cutting anywhere gives the calls that were finished, and no other."""
    text = RENDERERS[family](TWO_CALLS, "", "")
    check_cuts(text, _formats_for(text))


@pytest.mark.parametrize("family", RENDERERS)
def test_a_cut_call_leaves_no_markup_in_the_text(family: str) -> None:
    """What was begun is not shown, once the opener is there."""
    text = RENDERERS[family]([("save_note", {"title": "Trip"})], "", "")
    begin = text.index("save_note") + len("save_note")
    formats = _formats_for(text)
    for at in range(begin + 1, len(text)):
        assert read(text[:at], formats).content == "", text[:at]


@pytest.mark.parametrize("opener", OPENERS)
def test_many_openers_are_read_in_one_go(opener: str) -> None:
    """A long text of nothing but openers comes to an end, and calls nothing as a whole."""
    text = opener * (100_000 // len(opener))
    assert not [call for call in read(text, FORMATS).calls if call.state == "whole"]
