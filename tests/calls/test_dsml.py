"""DeepSeek DSML in its three spellings, and damaged."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits
from surecall.calls.families.elements import DSML

FORMATS = (DSML,)
D = "｜DSML｜"
HALL = ("dim_lamp", {"room": "hall"})


def _lamp(bar: str = D, *, section: str = "tool_calls", value: str = "hall") -> str:
    return (
        f'<{bar}{section}>\n<{bar}invoke name="dim_lamp">\n'
        f'<{bar}parameter name="room" string="true">{value}</{bar}parameter>\n'
        f"</{bar}invoke>\n</{bar}{section}>"
    )


ACCEPTED = (
    FormatCase("text_before", "Hm.\n\n" + _lamp(), (HALL,), content="Hm."),
    FormatCase("v32_wrapper", _lamp(section="function_calls"), (HALL,)),
    FormatCase("v41_spaces", _lamp(f"{D} ", section="calls"), (HALL,)),
    FormatCase("corrupted_wrapper", _lamp(section="toolcalls"), (HALL,)),
    FormatCase("double_bars", _lamp("｜｜DSML｜｜"), (HALL,)),
    FormatCase("plain_bars", _lamp("|DSML|"), (HALL,)),
    FormatCase("other_bars", _lamp("‖DSML‖"), (HALL,)),
    FormatCase("no_bars", _lamp("DSML:"), (HALL,)),
    FormatCase("wrapper_missing", "\n".join(_lamp().splitlines()[1:-1]), (HALL,)),
    FormatCase("wrapper_left_open", _lamp().rsplit("\n", 1)[0], (HALL,)),
    FormatCase("self_closed", f'<{D}tool_calls>\n<{D}invoke name="ping"/>\n', (("ping", {}),)),
    FormatCase(
        "json_body",
        f'<{D}tool_calls>\n<{D}invoke name="dim_lamp">\n{{"room": "hall"}}\n</{D}invoke>\n'
        f"</{D}tool_calls>",
        (("dim_lamp", '{"room": "hall"}'),),
        ("json_body",),
    ),
    FormatCase(
        "json_body_in_a_wrapper",
        f'<{D}tool_calls>\n<{D}invoke name="dim_lamp">\n{{"arguments": {{"room": "hall"}}}}\n'
        f"</{D}invoke>\n</{D}tool_calls>",
        (HALL,),
        ("json_body",),
    ),
    FormatCase(
        "types_are_stated",
        f'<{D}tool_calls><{D}invoke name="fly">'
        f'<{D}parameter name="a" string="true">7</{D}parameter>'
        f'<{D}parameter name="b" string="false">[7]</{D}parameter></{D}invoke></{D}tool_calls>',
        (("fly", {"a": "7", "b": [7]}),),
    ),
    FormatCase(
        "schema_corrects_the_stated_type",
        f'<{D}tool_calls><{D}invoke name="dim_lamp">'
        f'<{D}parameter name="level" string="true">7</{D}parameter></{D}invoke></{D}tool_calls>',
        (("dim_lamp", {"level": 7}),),
        ("string_by_schema",),
    ),
    FormatCase(
        "no_json_where_it_is_stated",
        f'<{D}tool_calls><{D}invoke name="dim_lamp">'
        f'<{D}parameter name="room" string="false">hall</{D}parameter></{D}invoke></{D}tool_calls>',
        (HALL,),
        ("text_for_json",),
    ),
    FormatCase(
        "other_closing_tags_in_a_value",
        _lamp(value=f'</p> </parameter> <{D}invoke name="x"> in <{D}calls>'),
        (("dim_lamp", {"room": f'</p> </parameter> <{D}invoke name="x"> in <{D}calls>'}),),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"The <{D}tool_calls> marker opens a section.", id="prose"),
        pytest.param(f"`{_lamp()}`", id="inline_code"),
        pytest.param('<|DSML|invoke name="fly"></|DSML|invoke>', id="damaged_and_unknown"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose and documentation are shown as they are."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize("at", [-20, -40, -60])
def test_a_call_without_its_end_is_cut(at: int) -> None:
    """Values that may lack something do not run."""
    lamp = _lamp().rsplit(f"\n</{D}invoke>", 1)[0]
    check_cut(lamp[:at], "dim_lamp", FORMATS)


@pytest.mark.parametrize(
    "text", [f"<{D}tool_calls>\n", f"<{D}tool_c", f'<{D}tool_calls>\n<{D}invoke name="di']
)
def test_the_beginning_of_a_section_is_dropped(text: str) -> None:
    """A section that names no tool yet is neither a call nor text."""
    assert check_splits(text, FORMATS) == ("", "", [])
