"""Names with pairs of keys and values: GLM, Hunyuan Hy3, LongCat."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits, read
from surecall.calls.families.elements import GLM, HUNYUAN_V3, LONGCAT, QWEN_XML, SEED_XML

FORMATS = (LONGCAT, HUNYUAN_V3, QWEN_XML, SEED_XML, GLM)
ROOM = "<arg_key>room</arg_key><arg_value>hall</arg_value>"
HALL = ("dim_lamp", {"room": "hall"})


ACCEPTED = (
    FormatCase(
        "no_arguments", "Checking.<tool_call>ping</tool_call>", (("ping", {}),), (), "Checking."
    ),
    FormatCase(
        "newlines_as_two_characters",
        "<tool_call>dim_lamp\\n<arg_key>room</arg_key>\\n<arg_value>hall</arg_value>\\n</tool_call>",
        (HALL,),
    ),
    FormatCase(
        "key_without_value",
        f"<tool_call>dim_lamp<arg_key>level</arg_key>{ROOM}</tool_call>",
        (HALL,),
        ("key_without_value",),
    ),
    FormatCase(
        "value_left_open",
        "<tool_call>dim_lamp<arg_key>room</arg_key><arg_value>hall</tool_call>",
        (HALL,),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "value_left_open_before_a_key",
        "<tool_call>dim_lamp<arg_key>room</arg_key><arg_value>hall"
        "<arg_key>level</arg_key><arg_value>3</arg_value></tool_call>",
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "key_left_open",
        "<tool_call>dim_lamp<arg_key>room<arg_value>hall</arg_value></tool_call>",
        (HALL,),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "bracket_after_name", f"<tool_call>dim_lamp>{ROOM}</tool_call>", (HALL,), ("stray_bracket",)
    ),
    FormatCase(
        "json_after_the_name",
        '<tool_call>dim_lamp\n{"room": "hall"}\n</tool_call>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("json_body",),
    ),
    FormatCase(
        "padded_values",
        "<tool_call>dim_lamp\n<arg_key>room</arg_key>\n<arg_value>\nhall\n</arg_value>\n"
        "</tool_call>",
        (HALL,),
        ("strip_value_padding",),
    ),
    FormatCase(
        "spaces_are_kept",
        "<tool_call>dim_lamp<arg_key>room</arg_key><arg_value>  hall\n</arg_value></tool_call>",
        (("dim_lamp", {"room": "  hall\n"}),),
    ),
    FormatCase(
        "markers_in_a_value",
        "<tool_call>dim_lamp<arg_key>room</arg_key><arg_value>a <tool_call> b </tool_call>; "
        "<arg_key>. </arg_value> c</arg_value></tool_call>",
        (("dim_lamp", {"room": "a <tool_call> b </tool_call>; <arg_key>. </arg_value> c"}),),
    ),
    FormatCase(
        "unknown_tool_with_arguments",
        "<tool_call>fly<arg_key>to</arg_key><arg_value>7</arg_value></tool_call>",
        (("fly", {"to": 7}),),
    ),
    FormatCase(
        "hunyuan_without_suffix",
        f"<tool_calls>\n<tool_call>dim_lamp<tool_sep>\n{ROOM}\n</tool_call>\n</tool_calls>",
        (HALL,),
    ),
    FormatCase(
        "hunyuan_last_call_left_open",
        f"<tool_calls>\n<tool_call>dim_lamp<tool_sep>\n{ROOM}\n</tool_calls>",
        (HALL,),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "hunyuan_section_left_open",
        "<tool_calls:opensource>\n<tool_call:opensource>ping<tool_sep:opensource>\n"
        "</tool_call:opensource>",
        (("ping", {}),),
    ),
    FormatCase(
        "hunyuan_separator_missing",
        f"<tool_calls>\n<tool_call>dim_lamp\n{ROOM}\n</tool_call>\n</tool_calls>",
        (HALL,),
    ),
    FormatCase(
        "longcat_json",
        '<longcat_tool_call>{"name": "dim_lamp", "arguments": {"room": "hall"}}'
        "</longcat_tool_call>",
        (HALL,),
    ),
    FormatCase(
        "longcat_python",
        '<longcat_tool_call>functions.dim_lamp({"room": "hall"})</longcat_tool_call>',
        (("functions.dim_lamp", '{"room": "hall"}'),),
    ),
    FormatCase(
        "longcat_newline_before_the_name",
        "<longcat_tool_call>\ndim_lamp\n<longcat_arg_key>room</longcat_arg_key>\n"
        "<longcat_arg_value>hall</longcat_arg_value>\n</longcat_tool_call>",
        (HALL,),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("\n", id="after_the_name"),
        pytest.param("<arg_k", id="in_a_tag"),
        pytest.param("<arg_key>roo", id="in_a_key"),
        pytest.param("<arg_key>room</arg_key>", id="after_a_key"),
        pytest.param("<arg_key>room</arg_key><arg_value>ha", id="in_a_value"),
        pytest.param(ROOM, id="after_a_value"),
    ],
)
def test_a_call_without_its_closing_tag_is_cut(rest: str) -> None:
    """Another pair might have followed, so the call does not run."""
    check_cut(f"<tool_call>dim_lamp{rest}", "dim_lamp", FORMATS)


def test_the_beginning_of_a_name_is_dropped() -> None:
    """A name that may go on is no call, and no text either."""
    assert check_splits("<tool_call>dim_la", FORMATS) == ("", "", [])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Wrap it in <tool_call> tags.", id="prose"),
        pytest.param("Use <tool_call>NAME</tool_call> for that.", id="placeholder"),
        pytest.param("`<tool_call>ping</tool_call>`", id="inline_code"),
        pytest.param("<tool_call>[1]</tool_call>", id="other_family"),
        pytest.param("The <tool_calls> tag and the <arg_key> tag.", id="other_tags"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose, documentation and placeholders are shown as they are."""
    check_refused(text, FORMATS)


def test_a_cut_json_body_is_cut() -> None:
    """LongCat's JSON form is cut like any other."""
    (call,) = read('<longcat_tool_call>ping({"a": "b', FORMATS).calls
    assert (call.name, call.state, call.arguments) == ("ping", "cut", '{"a": "b')
