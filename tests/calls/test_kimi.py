"""Kimi K2: ids, damage, stripped tokens, and what is no call."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits
from surecall.calls.families.named_json import KIMI, KIMI_STRIPPED

FORMATS = (KIMI, KIMI_STRIPPED)
SECTION, SECTION_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, ARGS, CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
PING = f"{CALL}functions.ping:0{ARGS}{{}}{CALL_END}"
PINGED = (("ping", "{}"),)

ACCEPTED = (
    FormatCase("no section", PING, PINGED, ("missing_opener",)),
    FormatCase("no section end", SECTION + PING, PINGED),
    FormatCase(
        "singular section",
        f"<|tool_call_section_begin|>{PING}<|tool_call_section_end|>",
        PINGED,
    ),
    FormatCase("two sections", (SECTION + PING + SECTION_END) * 2, PINGED * 2),
    FormatCase("no prefix", f"{SECTION}{CALL}ping:0{ARGS}{{}}{CALL_END}{SECTION_END}", PINGED),
    FormatCase("no counter", f"{SECTION}{CALL}functions.ping{ARGS}{{}}{CALL_END}", PINGED),
    FormatCase(
        "newline in the id", f"{SECTION}{CALL}functions.\nping:0{ARGS}{{}}{CALL_END}", PINGED
    ),
    FormatCase(
        "only a counter",
        f'{SECTION}{CALL}3{ARGS}{{"origin": "Pier 4"}}{CALL_END}',
        (("ferry_times", '{"origin": "Pier 4"}'),),
        ("infer_tool_name",),
    ),
    FormatCase(
        "a counter that fits none",
        f'{SECTION}{CALL}3{ARGS}{{"x": 1}}{CALL_END}',
        (("3", '{"x": 1}'),),
    ),
    FormatCase(
        "a counter that fits two",
        f"{SECTION}{CALL}3{ARGS}{{}}{CALL_END}",
        (("3", "{}"),),
    ),
    FormatCase("begun twice", f"{SECTION}{CALL}functions.pi{PING}", PINGED),
    FormatCase(
        "text before the first call",
        f"{SECTION} so, {PING}{SECTION_END}",
        PINGED,
        ("drop_leftover",),
    ),
    FormatCase(
        "no call end",
        f"{SECTION}{CALL}functions.ping:0{ARGS}{{}}{PING}{SECTION_END}",
        PINGED * 2,
        ("missing_closer",),
    ),
    FormatCase(
        "ends after its id",
        f"{SECTION}{CALL}functions.ping:0{CALL_END}{SECTION_END}",
        (("ping", ""),),
        ("missing_arguments",),
    ),
    FormatCase(
        "arguments that are no JSON",
        f"{SECTION}{CALL}functions.ping:0{ARGS}none{CALL_END}{SECTION_END}",
        (("ping", "none"),),
    ),
    FormatCase(
        "stripped tokens",
        'Wait.\nfunctions.ping:0{}functions.dim_lamp:1{"room": "x"}',
        (("ping", "{}"), ("dim_lamp", '{"room": "x"}')),
        ("missing_markers", "missing_markers"),
        "Wait.",
    ),
    FormatCase(
        "space before and after", f"a {SECTION}{PING}{SECTION_END} b", PINGED, content="a  b"
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_with_a_receipt_for_damage(case: FormatCase) -> None:
    """Each form of the family is read."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        f"The token {SECTION} begins a section.",
        f"The token {CALL} begins a call.",
        f"{SECTION} and {SECTION} again",
        f"{CALL}functions.no_such_tool:0{ARGS}{{}}{CALL_END}",
        "Call functions.ping:0 first.",
        "functions.ping:0 is its id",
        "functions.no_such_tool:0{}",
    ],
)
def test_text_without_a_call_is_shown(text: str) -> None:
    """Prose, and unknown tools without a section, are no calls."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        f"{SECTION}{CALL}functions.dim_lamp:0{ARGS}",
        f'{SECTION}{CALL}functions.dim_lamp:0{ARGS}{{"room": "ha',
        f'{SECTION}{CALL}functions.dim_lamp:0{ARGS}{{"room": "{CALL_END}',
        'functions.dim_lamp:0{"room": "ha',
    ],
)
def test_a_call_that_ends_too_soon_is_cut(text: str) -> None:
    """A call without its end is reported, and never as whole."""
    check_cut(text, "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text", [SECTION, SECTION + CALL, SECTION + CALL[:5], f"{SECTION}{CALL}functions.dim_l"]
)
def test_what_is_cut_before_the_name_is_dropped(text: str) -> None:
    """Without a complete name there is no call, and nothing of it is shown."""
    found = check_splits("Wait." + text, FORMATS)
    assert (found.content, found.calls) == ("Wait.", [])


def test_the_id_is_what_was_written() -> None:
    """The whole id is kept, and the name is the part of it between prefix and counter."""
    text = f"{SECTION}{CALL}functions.calendar.list-all:12{ARGS}{{}}{CALL_END}{SECTION_END}"
    (call,) = check_splits(text, FORMATS).calls
    assert (call.name, call.id) == ("calendar.list-all", "functions.calendar.list-all:12")


def test_an_empty_section_is_dropped() -> None:
    """A section without calls is neither a call nor text."""
    found = check_splits(f"Wait. {SECTION}{SECTION_END}", FORMATS)
    assert (found.content, found.calls) == ("Wait. ", [])
