"""JSON in a tag that names the function."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits
from surecall.calls.families.elements import BARE_QWEN_XML
from surecall.calls.families.named_json import FUNCTION_TAG

FORMATS = (FUNCTION_TAG, BARE_QWEN_XML)
JSON = '{"room": "hall"}'
HALL = ("dim_lamp", JSON)

ACCEPTED = (
    FormatCase("adjacent", f"<function=dim_lamp>{JSON}</function>" * 2, (HALL, HALL)),
    FormatCase(
        "closing_tag_in_a_string",
        '<function=dim_lamp>{"room": "a</function>"}</function>',
        (("dim_lamp", '{"room": "a</function>"}'),),
    ),
    FormatCase(
        "closer_missing", f"<function=dim_lamp>{JSON}<|eom_id|>", (HALL,), ("missing_closing_tag",)
    ),
    FormatCase(
        "closer_damaged", f"<function=dim_lamp>{JSON}<function>", (HALL,), ("missing_closing_tag",)
    ),
    FormatCase("attributes", f'<function=dim_lamp id="1">{JSON}</function>', (HALL,)),
    FormatCase("quoted_name", f'<function="dim_lamp">{JSON}</function>', (HALL,)),
    FormatCase("no_bracket", "<function=ping</function>", (("ping", None),), ("missing_bracket",)),
    FormatCase(
        "object_before_the_bracket",
        f"<function=dim_lamp{JSON}></function>",
        (HALL,),
        ("missing_bracket",),
    ),
    FormatCase(
        "unknown_tool_is_reported", '<function=fly>{"to": 1}</function>', (("fly", '{"to": 1}'),)
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


def test_a_cut_object_is_cut() -> None:
    """An object without its end does not run."""
    check_cut('<function=dim_lamp>{"room": "ha', "dim_lamp", FORMATS)


def test_the_beginning_of_a_name_is_dropped() -> None:
    """A name that may go on is no call, and no text either."""
    assert check_splits("<function=dim_la", FORMATS) == ("", "", [])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("<function=example_name>{example_parameters}</function>", id="placeholder"),
        pytest.param(f"`<function=dim_lamp>{JSON}</function>`", id="inline_code"),
        pytest.param("Write <function=NAME> and then JSON.", id="prose"),
        pytest.param("<function=fly</function>", id="damaged_and_unknown"),
    ],
)
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose, documentation and placeholders are shown as they are."""
    check_refused(text, FORMATS)
