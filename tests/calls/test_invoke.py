"""Invokes with parameters, in the wrappers of several models and in none."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits, read
from surecall.calls.families.elements import (
    ANTHROPIC_XML,
    BARE_INVOKE,
    DOTS,
    MINIMAX_M2,
    PREFIXED_INVOKE,
)

NS = "antml:"
FORMATS = (MINIMAX_M2, DOTS, ANTHROPIC_XML, BARE_INVOKE)
ROOM = '<parameter name="room">hall</parameter>'
LAMP = f'<invoke name="dim_lamp">\n{ROOM}\n</invoke>'
HALL = ("dim_lamp", {"room": "hall"})

ACCEPTED = (
    FormatCase(
        "several_calls",
        f"On it.\n<function_calls>\n{LAMP}\n{LAMP}\n</function_calls>",
        (HALL, HALL),
        content="On it.",
    ),
    FormatCase(
        "prefixed_and_not_mixed",
        f'<{NS}function_calls>\n<invoke name="dim_lamp">\n<{NS}parameter name="room">hall'
        f"</parameter>\n</{NS}invoke>\n</function_calls>",
        (HALL,),
    ),
    FormatCase("wrapper_missing", LAMP, (HALL,)),
    FormatCase("prefixed_wrapper_missing", f"Yes.\n<{NS}{LAMP[1:]}", (HALL,), content="Yes."),
    FormatCase("stray_word", f"Right.\n\ncount\n{LAMP}", (HALL,), content="Right."),
    FormatCase("wrapper_left_open", f"<function_calls>\n{LAMP}", (HALL,)),
    FormatCase(
        "call_for_invoke",
        f'<call name="dim_lamp">\n{ROOM}\n</call>',
        (HALL,),
    ),
    FormatCase("tool_for_invoke", f'<tool name="dim_lamp">\n{ROOM}\n</tool>', (HALL,)),
    FormatCase(
        "values_as_attributes",
        '<invoke name="dim_lamp"><parameter name="room" value="hall"/>'
        '<parameter name="level" value="3"></parameter></invoke>',
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("attribute_arguments", "attribute_arguments"),
    ),
    FormatCase(
        "tags_written_twice",
        '<invoke name="dim_lamp"><parameter name="room"><parameter name="room">hall</parameter>'
        '</parameter><parameter name="level">3</parameter></invoke>',
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("doubled_word", "stray_closing_tag"),
    ),
    FormatCase(
        "an_empty_value",
        '<invoke name="dim_lamp"><parameter name="room"/></invoke>',
        (("dim_lamp", {"room": ""}),),
    ),
    FormatCase("call_record", f'<call_record tool="dim_lamp">{ROOM}</call_record>', (HALL,)),
    FormatCase(
        "single_quotes",
        "<minimax:tool_call>\n<invoke name='dim_lamp'>\n<parameter name='room'>hall</parameter>\n"
        "</invoke>\n</minimax:tool_call>",
        (HALL,),
    ),
    FormatCase(
        "no_quotes",
        "<minimax:tool_call>\n<invoke name=dim_lamp>\n<parameter name=room>hall</parameter>\n"
        "</invoke>\n</minimax:tool_call>",
        (HALL,),
    ),
    FormatCase(
        "spaces_in_tags",
        '<minimax:tool_call>\n<invoke name="dim_lamp">\n<parameter name="room" >hall'
        "< / parameter >\n</invoke>\n</minimax:tool_call>",
        (HALL,),
    ),
    FormatCase(
        "value_left_open",
        '<minimax:tool_call>\n<invoke name="dim_lamp">\n<parameter name="room">hall'
        '<parameter name="level">3</parameter>\n</invoke>\n</minimax:tool_call>',
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "property_tags",
        '<function_calls>\n<invoke name="dim_lamp">\n<room>hall</room>\n<level>3</level>\n'
        "</invoke>\n</function_calls>",
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("property_tag",),
    ),
    FormatCase(
        "property_closed_by_another",
        '<function_calls>\n<invoke name="dim_lamp">\n<room>hall</level>\n<level>3</level>\n'
        "</invoke>\n</function_calls>",
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("property_tag", "wrong_closing_tag", "missing_closing_tag"),
    ),
    FormatCase(
        "equals_as_in_another_format",
        '<function_calls>\n<invoke name="dim_lamp">\n<parameter=room>hall</parameter>\n</invoke>\n'
        "</function_calls>",
        (HALL,),
        ("equals_label",),
    ),
    FormatCase(
        "json_body",
        '<function_calls>\n<invoke name="dim_lamp">{"room": "hall"}</invoke>\n</function_calls>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("json_body",),
    ),
    FormatCase(
        "json_in_one_parameter",
        '<function_calls>\n<invoke name="dim_lamp">\n<parameter name="arguments">'
        '{"room": "hall"}</parameter>\n</invoke>\n</function_calls>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("unwrap_arguments",),
    ),
    FormatCase(
        "made_up_result",
        f"<function_calls>\n{LAMP}\n</function_calls>\n<function_results>\nok\n</function_results>",
        (HALL,),
    ),
    FormatCase(
        "legacy",
        "<function_calls>\n<invoke>\n<tool_name>dim_lamp</tool_name>\n<parameters>\n"
        "<room>hall</room>\n<level>2</level>\n</parameters>\n</invoke>\n</function_calls>",
        (("dim_lamp", {"room": "hall", "level": 2}),),
        ("property_tag",),
    ),
    FormatCase(
        "legacy_without_the_stop_sequence",
        "<function_calls>\n<invoke>\n<tool_name>ping</tool_name>\n<parameters>\n</parameters>\n"
        "</invoke>\n",
        (("ping", {}),),
    ),
    FormatCase(
        "strings_are_verbatim",
        '<function_calls>\n<invoke name="dim_lamp">\n<parameter name="room">\n 7 \n</parameter>\n'
        "</invoke>\n</function_calls>",
        (("dim_lamp", {"room": "\n 7 \n"}),),
    ),
    FormatCase(
        "dots_trims",
        '<dots_function_call>\n<invoke name="dim_lamp">\n<parameter name="room"> hall\n'
        "</parameter>\n</invoke>\n</dots_function_call>",
        (HALL,),
    ),
    FormatCase(
        "dots_json",
        '<dots_function_call>{"name": "dim_lamp", "arguments": {"room": "hall"}}'
        "</dots_function_call>",
        (HALL,),
    ),
    FormatCase(
        "unknown_tool_is_reported",
        '<function_calls>\n<invoke name="fly">\n<parameter name="to">moon</parameter>\n</invoke>\n'
        "</function_calls>",
        (("fly", {"to": "moon"}),),
    ),
    FormatCase(
        "markers_in_a_value",
        '<function_calls>\n<invoke name="dim_lamp">\n<parameter name="room">a </parameter> and '
        '</invoke> and <parameter name="room"> b</parameter>\n</invoke>\n</function_calls>',
        (
            (
                "dim_lamp",
                {"room": 'a </parameter> and </invoke> and <parameter name="room"> b'},
            ),
        ),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Write this: {LAMP}", id="bare_not_at_the_start_of_a_line"),
        pytest.param('<invoke name="fly">\n</invoke>', id="bare_with_an_unknown_tool"),
        pytest.param("The <function_calls> block holds <invoke> tags.", id="prose"),
        pytest.param("<function_calls>\nping()\n</function_calls>", id="other_family"),
        pytest.param(f"```\n{LAMP}\n```", id="fence"),
        pytest.param("count\nis a word.", id="stray_word_alone"),
        pytest.param('<invoke name="ping">text</invoke>', id="bare_with_text"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose, documentation and other formats are shown as they are."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize("rest", ["", "\n<par", f"\n{ROOM}", '\n<parameter name="room">ha'])
def test_a_call_without_its_end_is_cut(rest: str) -> None:
    """Values that may lack something do not run."""
    check_cut(f'<function_calls>\n<invoke name="dim_lamp">{rest}', "dim_lamp", FORMATS)


def test_a_cut_json_object_is_cut() -> None:
    """The JSON form of dots is cut like any other."""
    text = '<dots_function_call>{"name": "dim_lamp", "arguments": {"room": "ha'
    assert [call.state for call in read(text, FORMATS).calls] == ["cut"]


def test_an_unknown_prefix_is_read_for_a_tool_that_exists() -> None:
    """Models copy the format with prefixes of their own."""
    text = f"Yes.\n<grok:{LAMP[1:].replace('</', '</grok:')}"
    found = check_splits(text, (PREFIXED_INVOKE,))
    assert [(call.name, call.arguments) for call in found.calls] == [HALL]
    wrapped = f'<x:function_calls>\n<x:function_call name="dim_lamp">{ROOM}</x:function_call>\n'
    assert len(read(wrapped + "</x:function_calls>", (PREFIXED_INVOKE,)).calls) == 1


@pytest.mark.parametrize("text", ['<a:invoke name="fly"></a:invoke>', "<b>x</b>", "<a:b>c</a:b>"])
def test_other_markup_with_a_prefix_stays_text(text: str) -> None:
    """A prefix alone says nothing."""
    found = check_splits(text, (PREFIXED_INVOKE,))
    assert (found.content, found.calls) == (text, [])


@pytest.mark.parametrize(
    "value",
    [
        '<parameter name="room" value="hall">attic</parameter>',
        '<parameter name="room" val="hall"/>',
        '<parameter key="room" value="hall"/>',
    ],
)
def test_a_value_that_is_given_twice_or_under_another_name_is_refused(value: str) -> None:
    """It is neither left out nor replaced by an empty one."""
    found = check_splits(f'<invoke name="dim_lamp">{value}</invoke>', FORMATS)
    assert [(call.name, call.state) for call in found.calls] == [("dim_lamp", "unreadable")]


@pytest.mark.parametrize(
    "damaged", ['parameter name="level">3', '<parametre name="level">3', '<parameter level">3']
)
def test_a_value_does_not_take_in_the_parameter_behind_it(damaged: str) -> None:
    """Its tag is damaged, so the closing tag before it may be text; a person could not tell."""
    text = f'<invoke name="dim_lamp">{ROOM}\n{damaged}</parameter>\n</invoke>'
    found = check_splits(text, FORMATS)
    assert [(call.name, call.state) for call in found.calls] == [("dim_lamp", "unreadable")]


def test_a_value_may_go_on_behind_its_closing_tag() -> None:
    """What follows does not name a parameter that is missing."""
    body = "hall</parameter>\nsee <parameter>"
    text = f'<invoke name="dim_lamp"><parameter name="room">{body}</parameter></invoke>'
    (call,) = check_splits(text, FORMATS).calls
    assert (call.arguments, call.state) == ({"room": body}, "whole")


def test_a_call_may_carry_an_id() -> None:
    """An id attribute is kept."""
    text = '<function_calls><invoke name="ping" id="c7"></invoke></function_calls>'
    assert [call.id for call in check_splits(text, FORMATS).calls] == ["c7"]
