"""MiniCPM5's functions with named parameters."""

import pytest

import surecall
from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from surecall.calls.families.elements import MINICPM5

FORMATS = (MINICPM5,)
HALL = ("dim_lamp", {"room": "hall"})
LAMP = '<function name="dim_lamp"><param name="room">hall</param></function>'


def dim_lamp(room: str) -> None:
    """Dim the lamp of a room."""


ACCEPTED = (
    FormatCase("text_around", f"a {LAMP} b {LAMP}", (HALL, HALL), content="a b"),
    FormatCase(
        "cdata",
        '<function name="dim_lamp"><param name="room"><![CDATA[a </param> & b]]></param>'
        "</function>",
        (("dim_lamp", {"room": "a </param> & b"}),),
    ),
    FormatCase(
        "collapsed",
        '<functionname="dim_lamp"><paramname="room">hall</param></function>',
        (HALL,),
        ("collapsed_tag", "collapsed_tag"),
    ),
    FormatCase("debris", LAMP.replace("><", ">\u0120\u010a<"), (HALL,)),
    FormatCase("single_quotes", LAMP.replace('"', "'"), (HALL,)),
    FormatCase(
        "all_in_one_parameter",
        '<function name="dim_lamp"><param name="properties">{"room": "hall"}</param></function>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("unwrap_arguments",),
    ),
    FormatCase(
        "arguments_as_an_attribute",
        """<function name="dim_lamp" arguments='{"room": "hall", "why": "a > b"}'/>""",
        (("dim_lamp", '{"room": "hall", "why": "a > b"}'),),
        ("attribute_arguments", "unwrap_arguments"),
    ),
    FormatCase(
        "escaped_attribute",
        '<function name="dim_lamp" arguments="{&quot;room&quot;: &quot;hall&quot;}"></function>',
        (("dim_lamp", '{"room": "hall"}'),),
        ("attribute_arguments", "unwrap_arguments"),
    ),
    FormatCase(
        "each_argument_an_attribute",
        '<function name="dim_lamp" id="7" room="hall"/>',
        (HALL,),
        ("attribute_arguments",),
    ),
    FormatCase(
        "unknown_tool_is_reported",
        '<function name="fly"><param name="to">1</param></function>',
        (("fly", {"to": 1}),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        '<function name="dim_lamp" arguments="{"room": "hall"}"/>',
        '<function name="dim_lamp" room="hall"><param name="room">attic</param></function>',
        '<function name="dim_lamp" arguments="{}"><param name="room">attic</param></function>',
        '<function name="dim_lamp" arguments="{}">{"room": "attic"}</function>',
    ],
)
def test_arguments_given_twice_or_in_broken_quotes_are_refused(text: str) -> None:
    """Which of them is meant cannot be known."""
    (call,) = surecall.read_reply({"content": text}, tools=[dim_lamp]).calls
    assert (call.name, call.state, call.arguments) == ("dim_lamp", "unreadable", None)


@pytest.mark.parametrize("length", [30, 45, 60])
def test_a_call_without_its_end_is_cut(length: int) -> None:
    """Values that may lack something do not run."""
    check_cut(LAMP[:length], "dim_lamp", FORMATS)


def test_cdata_without_its_end_is_cut() -> None:
    """CDATA ends only where it says so."""
    check_cut(
        '<function name="dim_lamp"><param name="room"><![CDATA[a </param></function>',
        "dim_lamp",
        FORMATS,
    )


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('The <function name="x"> element holds text.', id="prose"),
        pytest.param(f"```xml\n{LAMP}\n```", id="fence"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose and documentation are shown as they are."""
    check_refused(text, FORMATS)


def test_text_after_cdata_leaves_the_call_cut() -> None:
    """What follows a value and is no tag makes the rest unreadable, in every split."""
    text = '<function name="dim_lamp"><param name="room"><![CDATA[a]]></param> and so on'
    check_cut(text, "dim_lamp", FORMATS)


@pytest.mark.parametrize("word", ["function", "invoke"])
@pytest.mark.parametrize("rest", ["", " arguments='{", """ arguments='{"room": "hall"}'"""])
def test_a_tag_without_its_end_is_cut(word: str, rest: str) -> None:
    """A call that stops inside its own tag is reported, and not left in the text."""
    reading = surecall.read_reply({"content": f'<{word} name="dim_lamp"{rest}'}, tools=[dim_lamp])
    assert [(call.name, call.state) for call in reading.calls] == [("dim_lamp", "cut")]
    assert not reading.content
