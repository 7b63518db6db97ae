"""Muse Glimmer's messages and blocks of calls."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_refused
from support.read_text import check_splits
from surecall.calls.families.channels import ATEM_BLOCK, MUSE
from surecall.calls.names import ToolNames
from surecall.calls.source import Source

FORMATS = (MUSE, ATEM_BLOCK)
HALL = ("dim_lamp", {"room": "hall"})
BLOCK = (
    '<atem:function_calls>\n<atem:invoke name="dim_lamp">\n'
    '<atem:parameter name="room">hall</atem:parameter>\n</atem:invoke>\n</atem:function_calls>'
)
TO_LAMP = "<|start|>assistant to=dim_lamp<|message|>"

ACCEPTED = (
    FormatCase("first_header", f" to=dim_lamp<|message|>{BLOCK}<|eom|>", (HALL,)),
    FormatCase(
        "after_an_answer",
        f" to=user<|message|>One moment.<|eom|>{TO_LAMP}{BLOCK}<|eot|>",
        (HALL,),
        content="One moment.",
    ),
    FormatCase("several", f"{TO_LAMP}{BLOCK}<|eom|>{TO_LAMP}{BLOCK}<|eom|>", (HALL, HALL)),
    FormatCase("to_the_user_by_mistake", f" to=user<|message|>{BLOCK}<|eot|>", (HALL,)),
    FormatCase("header_missing", f"{BLOCK}<|eom|>", (HALL,)),
    FormatCase(
        "header_token_in_the_name",
        f"{TO_LAMP}{BLOCK.replace('dim_lamp', 'dim_lamp<|message|>')}",
        (("dim_lamp<|message|>", {"room": "hall"}),),
    ),
    FormatCase(
        "name_doubled",
        f"{TO_LAMP}{BLOCK.replace('dim_lamp', 'dim_lamp.dim_lamp')}",
        (("dim_lamp.dim_lamp", {"room": "hall"}),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """Messages for a tool are calls wherever a stream is split."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize("end", ["<|eom|>", ""])
def test_messages_to_self_are_reasoning(end: str) -> None:
    """A block in reasoning is no call, and the next header ends reasoning left open."""
    text = f" to=self<|message|>lamp first {BLOCK}{end}{TO_LAMP}{BLOCK}<|eom|>"
    found = check_splits(text, FORMATS)
    assert found.reasoning == f"lamp first {BLOCK}"
    assert [(call.name, call.arguments) for call in found.calls] == [HALL]
    assert found.content == ""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"An example:\n{BLOCK}\nThat is all.", id="block_within_an_answer"),
        pytest.param("Write to=user in the header.", id="prose"),
        pytest.param(f"{BLOCK.replace('dim_lamp', 'fly')}", id="unknown_without_header"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Echoes and prose are shown as they are."""
    check_refused(text, FORMATS)


def test_harmony_headers_are_left_alone() -> None:
    """Another format has the same beginning of a header."""
    text = "<|start|>assistant to=functions.ping<|channel|>commentary<|message|>{}"
    assert MUSE.read(Source(text, ToolNames(()), final=True), 0) is None
