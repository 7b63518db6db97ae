"""Step3's invokes between tokens."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from surecall.calls.families.elements import STEP3

FORMATS = (STEP3,)
INVOKE = (
    '<steptml:invoke name="dim_lamp"><steptml:parameter name="room">hall</steptml:parameter>'
    "</steptml:invoke>"
)
CALL = f"<｜tool_call_begin｜>function<｜tool_sep｜>{INVOKE}<｜tool_call_end｜>"
HALL = ("dim_lamp", {"room": "hall"})

ACCEPTED = (
    FormatCase(
        "section",
        f"On it.\n<｜tool_calls_begin｜>{CALL}{CALL}<｜tool_calls_end｜>\nDone.",
        (HALL, HALL),
        content="On it.\nDone.",
    ),
    FormatCase("section_left_open", f"<｜tool_calls_begin｜>{CALL}", (HALL,)),
    FormatCase("section_missing", CALL, (HALL,)),
    FormatCase("tokens_missing", INVOKE, (HALL,)),
    FormatCase(
        "other_types_are_calls_too",
        f"<｜tool_calls_begin｜>{CALL.replace('function', 'code')}\n{CALL}<｜tool_calls_end｜>",
        (HALL, HALL),
    ),
    FormatCase(
        "value_with_a_bracket",
        f"<｜tool_calls_begin｜>{CALL.replace('hall', 'a < b <c>')}<｜tool_calls_end｜>",
        (("dim_lamp", {"room": "a < b <c>"}),),
    ),
    FormatCase(
        "value_over_lines",
        f"<｜tool_calls_begin｜>{CALL.replace('hall', chr(10) + 'a')}<｜tool_calls_end｜>",
        (("dim_lamp", {"room": "\na"}),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """Calls are read wherever a stream is split."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize("length", [40, 60, 100])
def test_a_call_without_its_end_is_cut(length: int) -> None:
    """Values that may lack something do not run."""
    check_cut(f"<｜tool_calls_begin｜>{CALL[: 40 + length]}", "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "The <｜tool_calls_begin｜> token opens a section.",
        "<steptml:invoke name='fly'></steptml:invoke>",
        f"`{INVOKE}`",
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose, documentation and bare calls of unknown tools are shown as they are."""
    check_refused(text, FORMATS)
