"""LangChain's XML agent."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits
from surecall.base.records import ToolSpec
from surecall.calls.families.elements import LANGCHAIN_XML

FORMATS = (LANGCHAIN_XML,)

ACCEPTED = (
    FormatCase(
        "json",
        'Looking.\n<tool>dim_lamp</tool><tool_input>{"room": "</tool_input>"}</tool_input>',
        (("dim_lamp", '{"room": "</tool_input>"}'),),
        content="Looking.",
    ),
    FormatCase("no_input", "<tool>ping</tool>\n<tool_input></tool_input>", (("ping", None),)),
    FormatCase(
        "text_for_several_parameters",
        "<tool>dim_lamp</tool><tool_input>hall</tool_input>",
        (("dim_lamp", {"room": "hall"}),),
        ("only_parameter",),
    ),
    FormatCase(
        "an_object_behind_a_stray_tag",
        '<tool>dim_lamp</tool><tool_input><tool_input>{"room": "hall"}</tool_input>',
        (("dim_lamp", '<tool_input>{"room": "hall"}'),),
    ),
    FormatCase(
        "text_for_no_parameter",
        "<tool>ping</tool><tool_input>hall</tool_input>",
        (("ping", "hall"),),
    ),
    FormatCase(
        "escaped_tags",
        '<tool>dim_lamp</tool><tool_input>{"room": "[[tool]]x[[/tool]]"}</tool_input>',
        (("dim_lamp", '{"room": "<tool>x</tool>"}'),),
        ("unescape_tags",),
    ),
    FormatCase(
        "made_up_result",
        "<tool>ping</tool><tool_input></tool_input>\n<observation>pong</observation>",
        (("ping", None),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """The input is JSON, or text that is refused unless it can mean one parameter."""
    check_accepted(case, FORMATS)


def test_text_is_the_only_parameter() -> None:
    """A tool with one parameter may be called with plain text."""
    tool = ToolSpec(name="seek", parameters={"properties": {"query": {"type": "string"}}})
    text = "<tool>seek</tool><tool_input>Pier 4</tool_input>"
    (call,) = check_splits(text, FORMATS, [tool]).calls
    assert call.arguments == {"query": "Pier 4"}
    assert [receipt.rule for receipt in call.receipts] == ["only_parameter"]


@pytest.mark.parametrize("rest", ["", "Pier", '{"origin": "Pier"}', "Pier 4</tool_in"])
def test_an_input_without_its_end_is_cut(rest: str) -> None:
    """The closing tag is a stop sequence for some, but nothing tells a stop from a cut."""
    check_cut(f"<tool>ferry_times</tool><tool_input>{rest}", "ferry_times", FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<tool>hammer</tool><tool_input>x</tool_input>", id="unknown"),
        pytest.param("A <tool>ping</tool> element.", id="no_input"),
        pytest.param("Use a <tool> tag.", id="prose"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Other elements of that name are shown as they are."""
    check_refused(text, FORMATS)
