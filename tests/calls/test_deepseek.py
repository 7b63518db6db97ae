"""DeepSeek V3 to V3.1: both bodies, look-alikes, damage, and what is no call."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits
from surecall.calls.families.named_json import DEEPSEEK

FORMATS = (DEEPSEEK,)
SECTION, SECTION_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, SEP, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
FENCED = "\n```json\n{}\n```"
PLAIN = f"{SECTION}{CALL}ping{SEP}{{}}{CALL_END}{SECTION_END}"
PINGED = (("ping", "{}"),)

ACCEPTED = (
    FormatCase("fence after the separator", f"{SECTION}{CALL}ping{SEP}{FENCED}{CALL_END}", PINGED),
    FormatCase("type and no fence", f"{SECTION}{CALL}function{SEP}ping\n{{}}{CALL_END}", PINGED),
    FormatCase(
        "a fence without json",
        f"{SECTION}{CALL}function{SEP}ping\n```\n{{}}\n```{CALL_END}",
        PINGED,
    ),
    FormatCase(
        "no end of the fence", f"{SECTION}{CALL}function{SEP}ping\n```json\n{{}}{CALL_END}", PINGED
    ),
    FormatCase("padded name", f"{SECTION}{CALL} ping\n{SEP} {{}} {CALL_END}", PINGED),
    FormatCase("no arguments", f"{SECTION}{CALL}ping{SEP}{CALL_END}{SECTION_END}", (("ping", ""),)),
    FormatCase("no section end", f"{SECTION}{CALL}ping{SEP}{{}}{CALL_END}", PINGED),
    FormatCase(
        "no call end", f"{SECTION}{CALL}ping{SEP}{{}}{SECTION_END}", PINGED, ("missing_closer",)
    ),
    FormatCase("no section", f"{CALL}ping{SEP}{{}}{CALL_END}", PINGED, ("missing_opener",)),
    FormatCase(
        "fences in a string",
        f'{SECTION}{CALL}function{SEP}dim_lamp\n```json\n{{"room": "```x```"}}\n```{CALL_END}',
        (("dim_lamp", '{"room": "```x```"}'),),
    ),
    FormatCase(
        "a missing brace before the end token",
        f'{SECTION}{CALL}dim_lamp{SEP}{{"room": "x"{CALL_END}{CALL}ping{SEP}{{}}{CALL_END}',
        (("dim_lamp", '{"room": "x"'), ("ping", "{}")),
    ),
    FormatCase(
        "results made up", f"{PLAIN}<｜tool▁outputs▁begin｜>4<｜tool▁outputs▁end｜>It is 4.", PINGED
    ),
    FormatCase("text before", f"Wait.{PLAIN}<｜end▁of▁sentence｜>", PINGED, content="Wait."),
    *(
        FormatCase(
            f"bars {bar!r}, lines {line!r}",
            PLAIN.replace("｜", bar).replace("▁", line),
            PINGED,
            ("look_alike_markers",),
        )
        for bar, line in (
            ("|", "_"),
            ("｜", "_"),
            ("｜", " "),
            ("‖", "▁"),
            ("｜｜", "▁"),
            ("|", "\\_"),
        )
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
        f"The token {CALL} begins a call, {SEP} ends the name.",
        f"{SECTION}function{SEP}ping{FENCED}{SECTION_END}",
        f"{SECTION}{CALL}function{SEP}<steptml:invoke name='ping'></steptml:invoke>{CALL_END}",
        PLAIN.replace("ping", "no_such_tool").replace("｜", "|"),
        "<|tool|> and <｜tool｜> are no tokens.",
    ],
)
def test_text_without_a_call_is_shown(text: str) -> None:
    """Prose, other families, and unknown tools between look-alikes are no calls."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        f"{SECTION}{CALL}dim_lamp{SEP}{{",
        f'{SECTION}{CALL}function{SEP}dim_lamp\n```json\n{{"room": "ha',
        f"{SECTION}{CALL}function{SEP}dim_lamp\n``",
        f"{SECTION}{CALL}function{SEP}dim_lamp\n```js",
        f'{SECTION}{CALL}dim_lamp{SEP}{{"room": "{CALL_END} is',
    ],
)
def test_a_call_that_ends_too_soon_is_cut(text: str) -> None:
    """A call without its end is reported, and never as whole."""
    check_cut(text, "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text",
    [SECTION, SECTION[:9], SECTION + CALL[:8], f"{SECTION}{CALL}func", f"{SECTION}{CALL}x<｜to"],
)
def test_what_is_cut_before_the_name_is_dropped(text: str) -> None:
    """Without a complete name there is no call, and nothing of it is shown."""
    found = check_splits("Wait." + text, FORMATS)
    assert (found.content, found.calls) == ("Wait.", [])


def test_an_unknown_tool_is_reported() -> None:
    """The tokens prove that a call was meant, so that the model can be told."""
    found = check_splits(PLAIN.replace("ping", "no_such_tool"), FORMATS)
    assert [call.name for call in found.calls] == ["no_such_tool"]


def test_an_empty_section_is_dropped() -> None:
    """A section without calls is neither a call nor text."""
    found = check_splits(f"Wait.{SECTION}{SECTION_END}", FORMATS)
    assert (found.content, found.calls) == ("Wait.", [])
