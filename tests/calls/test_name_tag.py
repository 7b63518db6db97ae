"""The name of a tool as the tag."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import TOOLS, check_splits
from surecall.base.records import ToolSpec
from surecall.calls.families.nested_tags import NAME_TAG

FORMATS = (NAME_TAG,)
HALL = ("dim_lamp", {"room": "hall", "level": 2})
LAMP = "<dim_lamp>\n<room>hall</room>\n<level>2</level>\n</dim_lamp>"

ACCEPTED = (
    FormatCase("text_before", f"Dimming.\n\n{LAMP}", (HALL,), content="Dimming."),
    FormatCase("self_closed", "<ping/>", (("ping", {}),)),
    FormatCase("self_closed_with_space", "<ping />", (("ping", {}),)),
    FormatCase("empty", "<ping>\n</ping>", (("ping", {}),)),
    FormatCase("several", f"{LAMP}\n{LAMP}", (HALL, HALL)),
    FormatCase(
        "json_body",
        '<dim_lamp>{"room": "hall"}</dim_lamp>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("json_body",),
    ),
    FormatCase(
        "yaml_body",
        "<dim_lamp>\nroom: hall\nlevel: 2\n</dim_lamp>",
        (HALL,),
        ("yaml_body",),
    ),
    FormatCase(
        "items",
        "<save_note><tags><item>1</item>\n<item>b</item></tags></save_note>",
        (("save_note", {"tags": ["1", "b"]}),),
    ),
    FormatCase(
        "json_list",
        '<save_note><tags>["1"]</tags></save_note>',
        (("save_note", {"tags": ["1"]}),),
    ),
    FormatCase(
        "entities",
        "<save_note><body>a &lt; b &amp;&amp; c</body></save_note>",
        (("save_note", {"body": "a < b && c"}),),
        ("unescape_entities",),
    ),
    FormatCase(
        "entities_in_markup_are_text",
        "<save_note><body><p>a &lt; b</p></body></save_note>",
        (("save_note", {"body": "<p>a &lt; b</p>"}),),
    ),
    FormatCase(
        "wrong_closing_tag",
        "<dim_lamp>\n<room>hall</level>\n<level>2</level>\n</dim_lamp>",
        (HALL,),
        ("wrong_closing_tag", "missing_closing_tag"),
    ),
    FormatCase(
        "mcp",
        "<use_mcp_tool>\n<server_name>home</server_name>\n<tool_name>dim_lamp</tool_name>\n"
        '<arguments>\n{"room": "hall"}\n</arguments>\n</use_mcp_tool>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("mcp_form",),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


def test_repeated_tags_are_a_list() -> None:
    """A parameter that is a list may be written as one tag for each of its items."""
    text = "<save_note><tags>a</tags><tags>b</tags></save_note>"
    (call,) = check_splits(text, FORMATS).calls
    assert call.arguments == {"tags": ["a", "b"]}


@pytest.mark.parametrize("rest", ["", "<room>ha", "<room>hall</room>", "<room>hall</room>\n</dim"])
def test_a_call_without_its_closing_tag_is_cut(rest: str) -> None:
    """Another parameter might have followed, so the call does not run."""
    check_cut(f"<dim_lamp>\n{rest}", "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Write {LAMP}", id="not_at_the_start_of_a_line"),
        pytest.param("<dim_lamp> is a tool.\n", id="prose"),
        pytest.param("<dim_lamp>\n<colour>red</colour>\n</dim_lamp>", id="no_parameter"),
        pytest.param(f"```\n{LAMP}\n```", id="fence"),
        pytest.param("<use_mcp_tool>\n<tool_name>fly</tool_name>\n</use_mcp_tool>", id="unknown"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose, documentation and other elements are shown as they are."""
    check_refused(text, FORMATS)


def test_elements_of_html_are_never_calls() -> None:
    """A tool may have the name of an element that answers are full of."""
    tools = [*TOOLS, ToolSpec(name="table", parameters={})]
    text = "<table>\n</table>"
    found = check_splits(text, FORMATS, tools)
    assert (found.content, found.calls) == (text, [])
