"""MiniCPM5's functions with named parameters."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from surecall.formats.invoke import MiniCpm5

FORMATS = (MiniCpm5(),)
HALL = ("dim_lamp", {"room": "hall"})
LAMP = '<function name="dim_lamp"><param name="room">hall</param></function>'

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
        "unknown_tool_is_reported",
        '<function name="fly"><param name="to">1</param></function>',
        (("fly", {"to": 1}),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


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
