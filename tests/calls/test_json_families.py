"""What holds for every family whose arguments are JSON."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import render_formats_json as render
from support.read_text import check_cuts, check_splits, read, read_pieces
from surecall.calls.families.channels import INKLING, SOLAR
from surecall.calls.families.marked_json import (
    APERTUS,
    COHERE_ACTION,
    FUNCTOOLS,
    GIGACHAT,
    INTERNLM,
    TAGGED_JSON,
    TOKEN_JSON,
)
from surecall.calls.families.named_json import (
    DEEPSEEK,
    KIMI,
    KIMI_STRIPPED,
    MISTRAL,
    MISTRAL_STRIPPED,
)
from surecall.calls.formats import CallFormat, TextCall
from surecall.text import decode

FORMATS: tuple[CallFormat, ...] = (
    KIMI,
    DEEPSEEK,
    MISTRAL,
    SOLAR,
    INKLING,
    COHERE_ACTION,
    APERTUS,
    TOKEN_JSON,
    GIGACHAT,
    INTERNLM,
    TAGGED_JSON,
    FUNCTOOLS,
    MISTRAL_STRIPPED,
    KIMI_STRIPPED,
)


@dataclass(frozen=True)
class Family:
    """A family, how it is written, and what of it a flood may consist of."""

    id: str
    render: render.Renderer
    floods: tuple[str, ...]
    format: str = "tagged_json"


FAMILIES = (
    Family(
        "hermes",
        render.render_hermes,
        (
            "<tool_call>",
            '<tool_call>{"',
            '<tool_call>{"name":"x","arguments":{"a":1}</tool_call>',
            '<tool_call>{"name":"x","arguments":{"a":"1}}</tool_call>',
        ),
    ),
    Family("granite_function", render.render_granite_function, ("<function_call> {",)),
    Family("minimax_m1", render.render_minimax_m1, ('<tool_calls>{"name":"x"}\n',)),
    Family("apriel", render.render_apriel, ("<tool_calls>[", "<tool_calls>- name: x\n")),
    Family("nemotron", render.render_nemotron, ("<TOOLCALL>[{",)),
    Family("lmstudio", render.render_lmstudio, ("[TOOL_REQUEST]", '[TOOL_REQUEST]{"')),
    Family("granite", render.render_granite, ("<|tool_call|>[{",), "token_json"),
    Family("phi", render.render_phi, ('<|tool_call|>["',), "token_json"),
    Family("gigachat", render.render_gigachat, ('<|function_call|>{"',), "token_json"),
    Family("internlm", render.render_internlm, ("<|action_start|><|plugin|>{",), "token_json"),
    Family("functools", render.render_functools, ("functools[{", 'functools[{"'), "functools"),
    Family("cohere", render.render_cohere, ("<|START_ACTION|>[{", "<co>"), "cohere_action"),
    Family("apertus", render.render_apertus, ('<|tools_prefix|>[{"',), "apertus"),
    Family("mistral_array", render.render_mistral_array, ("[TOOL_CALLS] [",), "mistral"),
    Family("mistral", render.render_mistral_compact, ('[TOOL_CALLS]x[ARGS]{"',), "mistral"),
    Family("mistral_ids", render.render_mistral_ids, ("[TOOL_CALLS]x[CALL_ID]",), "mistral"),
    Family(
        "deepseek_v3",
        render.render_deepseek_v3,
        ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
        "deepseek",
    ),
    Family(
        "deepseek_v31",
        render.render_deepseek_v31,
        ("<｜tool▁call▁begin｜>x<｜tool▁sep｜>{}", '<｜tool▁call▁begin｜>x<｜tool▁sep｜>{"'),
        "deepseek",
    ),
    Family(
        "kimi",
        render.render_kimi,
        ("<|tool_calls_section_begin|>", '<|tool_call_begin|>x<|tool_call_argument_begin|>{"'),
        "kimi",
    ),
    Family("solar", render.render_solar, ("<|tool_call:begin|>", "<|begin|>assistant"), "solar"),
    Family("inkling", render.render_inkling, ("<|message_model|>", "<|end_message|>"), "inkling"),
)

MARKERS = (
    "<tool_call>",
    "</tool_call>",
    "</tool_calls>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<｜tool▁call▁end｜>",
    "<|tool_call_end|>",
    "<|END_ACTION|>",
    "<|end_message|>",
    "<|tool_call:end|>",
    "<|tools_suffix|>",
    "functools[",
    "```",
    "</think>",
    '"}}',
    "\\",
    '"',
    "'",
    "{",
    "}",
    "[",
    "]",
    "\n",
    "\t",
    "é",
    "東京",
    "🌸",
    "</s>",
)
TEXTS = st.lists(
    st.one_of(st.sampled_from(MARKERS), st.text(st.characters(exclude_categories=["Cs"])))
).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["room", "level", "name", "arguments", "title", "body"]), VALUES, max_size=4
)
NAMES = st.sampled_from(["dim_lamp", "save_note", "ping", "calendar.list", "not-known"])
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=3)
NOTE = {"title": 'say "hi" {there} [x]', "body": "a\\b\n</tool_call><｜tool▁call▁end｜> ```🌸"}

families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)


def values_of(call: TextCall) -> Any:
    """Return the arguments as an object."""
    return decode(call.arguments) if isinstance(call.arguments, str) else call.arguments


@families
@given(calls=CALLS)
@settings(max_examples=40, deadline=None)
def test_what_a_model_writes_is_read_back(family: Family, calls: list[Any]) -> None:
    """Calls with any names and arguments come back as they were, without a receipt."""
    found = read(family.render(calls, "Checking.", ""), FORMATS, generation_prompt="")
    assert [(call.name, values_of(call)) for call in found.calls] == calls
    assert [call.state for call in found.calls] == ["whole"] * len(calls)
    assert [call.receipts for call in found.calls] == [()] * len(calls)
    assert found.content == "Checking."


@families
@given(calls=CALLS, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=20))
@settings(max_examples=20, deadline=None)
def test_pieces_of_any_size_read_as_the_whole(
    family: Family, calls: list[Any], sizes: list[int]
) -> None:
    """However a text is split, its calls, its text and its receipts are the same."""
    text = family.render(calls, "Checking.\n", "")
    pieces, at = list[str](), 0
    while at < len(text):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(text[at : at + size])
        at += size
    assert read_pieces(pieces, FORMATS) == read(text, FORMATS)


@families
def test_every_split_reads_the_same(family: Family) -> None:
    """A text in two pieces, or character by character, reads as the whole."""
    text = family.render([("save_note", NOTE), ("ping", {})], "Wait. ", "")
    found = check_splits(text, FORMATS)
    assert [(call.name, values_of(call)) for call in found.calls] == [
        ("save_note", NOTE),
        ("ping", {}),
    ]


@families
def test_a_cut_call_is_never_whole(family: Family) -> None:
    """Wherever the text is cut, only calls that are complete by then are whole."""
    check_cuts(family.render([("save_note", NOTE), ("dim_lamp", {"level": 125})], "", ""), FORMATS)


@families
def test_the_markup_of_a_cut_call_is_not_shown(family: Family) -> None:
    """Wherever the text is cut inside a call, nothing of the call becomes visible text."""
    text = family.render([("save_note", NOTE)], "", "")
    start = text.index("save_note") + 4
    for at in range(start, len(text)):
        assert read(text[:at], FORMATS).content == "", text[:at]


@families
@pytest.mark.parametrize("quote", ["`{}`", "```\n{}\n```", "~~~\n{}\n~~~\n"])
def test_a_call_in_code_is_documentation(family: Family, quote: str) -> None:
    """A call in inline code or in a fence is shown and not called."""
    shown = family.render([("dim_lamp", {"room": "hall"})], "", "")
    text = "It looks like this: " + shown if quote == "`{}`" else shown
    text = quote.replace("{}", text.replace("```", "'''"))
    found = read(text, FORMATS)
    assert found.calls == []
    assert found.content.strip() == text.strip()


@families
def test_a_flood_of_openers_is_read_to_its_end(family: Family) -> None:
    """40 KB of openers that lead nowhere are read, whole and in pieces, with the same result."""
    for unit in family.floods:
        text = unit * (40_000 // len(unit))
        pieces = [text[at : at + 5003] for at in range(0, len(text), 5003)]
        assert read_pieces(pieces, FORMATS, generation_prompt="") == read(
            text, FORMATS, generation_prompt=""
        )


@families
def test_the_family_says_its_name(family: Family) -> None:
    """Only the format of the family reads what it is for."""
    text = family.render([("ping", {})], "", "")
    names = {form.name for form in FORMATS if read(text, [form]).calls}
    assert names == {family.format}
