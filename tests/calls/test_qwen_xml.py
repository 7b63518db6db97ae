"""Qwen3-Coder XML, and the damage that its models do to it."""

from typing import Any

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits, read
from surecall.calls.families.elements import (
    ANTHROPIC_XML,
    BARE_INVOKE,
    BARE_QWEN_XML,
    GLM,
    QWEN_XML,
    SEED_XML,
)

FORMATS = (QWEN_XML, SEED_XML, GLM, ANTHROPIC_XML, BARE_QWEN_XML, BARE_INVOKE)
LAMP = ("dim_lamp", {"room": "hall", "level": 3})
PING: tuple[str, dict[str, Any]] = ("ping", {})


def _lamp(
    function: str = "<function=dim_lamp>", room: str = "<parameter=room>\nhall\n</parameter>"
):
    return (
        f"<tool_call>\n{function}\n{room}\n<parameter=level>\n3\n</parameter>\n"
        "</function>\n</tool_call>"
    )


ACCEPTED = (
    FormatCase("clean", _lamp(), (LAMP,)),
    FormatCase("wrapper_missing", _lamp().split("\n", 1)[1].rsplit("\n", 1)[0], (LAMP,)),
    FormatCase("opener_missing", "Well.\n" + _lamp().split("\n", 1)[1], (LAMP,), content="Well."),
    FormatCase("closer_missing", _lamp().rsplit("\n", 1)[0], (LAMP,)),
    FormatCase(
        "value_left_open",
        _lamp(room="<parameter=room>\nhall"),
        (LAMP,),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "value_left_open_before_the_end",
        "<tool_call>\n<function=dim_lamp>\n<parameter=level>\n4\n</function>\n</tool_call>",
        (("dim_lamp", {"level": 4}),),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "bracket_missing",
        _lamp(room="<parameter=room\nhall\n</parameter>"),
        (LAMP,),
        ("missing_bracket",),
    ),
    FormatCase(
        "colon_after_key",
        _lamp(room="<parameter=room:>\nhall\n</parameter>"),
        (LAMP,),
        ("colon_after_label",),
    ),
    FormatCase(
        "word_doubled",
        _lamp(room="<parameter=parameter=room>\nhall\n</parameter>"),
        (LAMP,),
        ("doubled_word",),
    ),
    FormatCase("space_for_equals", _lamp("<function dim_lamp>"), (LAMP,), ("bare_label",)),
    FormatCase("equals_missing", _lamp("<functiondim_lamp>"), (LAMP,), ("bare_label",)),
    FormatCase("first_bracket_missing", _lamp("function=dim_lamp>"), (LAMP,), ("missing_bracket",)),
    FormatCase("name_as_text", _lamp("<function>dim_lamp</function>"), (LAMP,), ("name_as_text",)),
    FormatCase(
        "name_as_child",
        _lamp("<function>\n<name>dim_lamp</name>"),
        (LAMP,),
        ("name_as_text",),
    ),
    FormatCase("name_quoted", _lamp('<function="dim_lamp">'), (LAMP,), ("quoted_label",)),
    FormatCase(
        "name_attribute", _lamp('<function name="dim_lamp">'), (LAMP,), ("label_attribute",)
    ),
    *(
        FormatCase(
            f"closer_{closer}",
            _lamp(room=f"<parameter=room>\nhall\n</{closer}>"),
            (LAMP,),
            ("damaged_closing_tag",),
        )
        for closer in ("parameter/", "parameter1", "parameter_function", "parameterfunction")
    ),
    *(
        FormatCase(
            f"alias_{alias}",
            _lamp(room=f"<{alias}=room>\nhall\n</{alias}>"),
            (LAMP,),
        )
        for alias in ("param", "arg", "argument")
    ),
    FormatCase(
        "invoke_in_the_wrapper",
        '<tool_call>\n<invoke name="dim_lamp">\n<parameter name="room">hall</parameter>\n'
        '<parameter name="level">3</parameter>\n</invoke>\n</tool_call>',
        (LAMP,),
        ("label_attribute", "label_attribute", "label_attribute"),
    ),
    FormatCase(
        "property_tags",
        "<tool_call>\n<function=dim_lamp>\n<room>hall</room>\n<level>3</level>\n"
        "</function>\n</tool_call>",
        (LAMP,),
        ("property_tag",),
    ),
    FormatCase(
        "json_body",
        '<tool_call>\n<function=dim_lamp>\n{"room": "hall", "level": 3}\n</function>\n</tool_call>',
        (("dim_lamp", '{"room": "hall", "level": 3}'),),
        ("json_body",),
    ),
    FormatCase(
        "second_call_before_the_first_is_closed",
        "<tool_call>\n<function=ping>\n</function>\n<tool_call>\n<function=ping>\n</function>\n"
        "</tool_call>",
        (PING, PING),
    ),
    FormatCase(
        "several_functions_in_a_wrapper",
        "<tool_call>\n<function=ping>\n</function>\n<function=ping>\n</function>\n</tool_call>",
        (PING, PING),
    ),
    FormatCase(
        "closer_twice",
        "<tool_call><function=ping></function></tool_call></tool_call>",
        (PING,),
        ("stray_closing_tag",),
    ),
    FormatCase(
        "function_left_open",
        "<tool_call>\n<function=ping>\n</tool_call>",
        (PING,),
        ("missing_closing_tag",),
    ),
    FormatCase(
        "unknown_tool_is_reported",
        "<tool_call>\n<function=fly>\n<parameter=to>\nmoon\n</parameter>\n</function>\n</tool_call>",
        (("fly", {"to": "moon"}),),
    ),
    FormatCase(
        "made_up_result_is_dropped",
        "<tool_call>\n<function=ping>\n</function>\n</tool_call>\n<tool_response>\npong\n",
        (PING,),
    ),
    FormatCase(
        "text_after", "a<tool_call><function=ping></function></tool_call>b", (PING,), content="ab"
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_damaged_calls_are_read_with_a_receipt(case: FormatCase) -> None:
    """What the damage can only mean is read, in every split, and noted."""
    check_accepted(case, FORMATS)


BODIES = (
    pytest.param("Say </parameter> and </function> and <parameter=title> here.", id="in_a_line"),
    pytest.param("Close with </function> then </tool_call>; open <function=x>.", id="closers"),
    pytest.param(
        "Example:\n<tool_call>\n<function=ping>\n<parameter=x>\n1\n</parameter>\n</function>\n"
        "</tool_call>",
        id="a_whole_call",
    ),
    pytest.param(
        "Example:\n<tool_call>\n<function=ping>\n</function>\n</tool_call>\nThat is all.",
        id="a_whole_call_and_text",
    ),
    pytest.param("It begins with\n<function=ping>\nand goes on.", id="an_opener_on_its_line"),
    pytest.param("<tool_call>", id="only_the_opener"),
    pytest.param("if a < b:\n    print('</p>')\n\n", id="code"),
    pytest.param("</parameter>", id="only_the_closer"),
    pytest.param("use </parameter></function></tool_call> to end it", id="all_closers_in_a_line"),
)


@pytest.mark.parametrize("body", BODIES)
def test_markers_inside_a_value_do_not_end_it(body: str) -> None:
    """A value may speak about its own format."""
    text = (
        "<tool_call>\n<function=save_note>\n<parameter=title>\nT\n</parameter>\n"
        f"<parameter=body>\n{body}\n</parameter>\n</function>\n</tool_call>\nDone."
    )
    found = check_splits(text, FORMATS)
    assert [call.arguments for call in found.calls] == [{"title": "T", "body": body}]
    assert found.content.strip() == "Done."


REFUSED = (
    pytest.param("Wrap it in <tool_call> tags, please.", id="prose"),
    pytest.param("Use `<tool_call><function=ping></function></tool_call>` here.", id="inline_code"),
    pytest.param(
        "```xml\n<tool_call>\n<function=ping>\n</function>\n</tool_call>\n```", id="fence"
    ),
    pytest.param("<function=example_name>\n<parameter=a>\n1\n</parameter>\n</function>", id="bare"),
    pytest.param("Write <function=ping> and </function> around it.", id="bare_prose"),
    pytest.param("A generic such as Vec<function> is fine.", id="generic"),
    pytest.param("</tool_call> alone proves nothing.", id="closer_alone"),
    pytest.param("<tool_call>{}</tool_call>", id="other_family"),
)


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose, documentation and placeholders are shown as they are."""
    check_refused(text, FORMATS)


CUTS = (
    pytest.param("<parameter=room>\nha", id="in_a_value"),
    pytest.param("<parameter=room>\nhall\n</parameter>", id="after_a_value"),
    pytest.param("<parameter=room>\nhall\n</parameter>\n<param", id="in_a_tag"),
    pytest.param("", id="after_the_name"),
)


@pytest.mark.parametrize("rest", CUTS)
def test_a_call_without_its_end_is_cut(rest: str) -> None:
    """Values that may lack something do not run."""
    check_cut(f"<tool_call>\n<function=dim_lamp>\n{rest}", "dim_lamp", FORMATS)


@pytest.mark.parametrize("text", ["Hm.\n<tool_call>", "Hm.\n<tool_call>\n<function=dim"])
def test_a_call_without_a_name_is_dropped(text: str) -> None:
    """A fragment of a call is neither a call nor text."""
    found = check_splits(text, FORMATS)
    assert (found.content.strip(), found.calls) == ("Hm.", [])


def test_a_value_with_two_readings_is_left_for_the_check_to_refuse() -> None:
    """Text between a closing tag and the end of the call is not guessed away."""
    text = (
        "<tool_call><function=dim_lamp><parameter=room>hall</parameter> and more"
        "</function></tool_call>"
    )
    (call,) = read(text, FORMATS).calls
    assert isinstance(call.arguments, str)


def test_seed_values_keep_their_newlines() -> None:
    """Seed writes values on the line of their tags, so nothing around them is padding."""
    text = (
        "<seed:tool_call>\n<function=dim_lamp>\n<parameter=room>\nhall\n</parameter>\n"
        "</function>\n</seed:tool_call>"
    )
    assert read(text, FORMATS).calls[0].arguments == {"room": "\nhall\n"}


def test_windows_newlines_are_padding_too() -> None:
    """A template with carriage returns pads with them."""
    text = "<tool_call><function=dim_lamp><parameter=room>\r\nhall\r\n</parameter></function>"
    assert read(text + "</tool_call>", FORMATS).calls[0].arguments == {"room": "hall"}
