"""Qwen-Agent's florette format."""

import pytest

from support.text_cases import TextCase, check_case, check_no_call

CASES = (
    TextCase(
        "two calls and a made-up result",
        'Now.\n✿FUNCTION✿: ping\n✿ARGS✿: {}\n✿FUNCTION✿: dim_lamp\n✿ARGS✿: {"room": "a"}\n'
        "✿RESULT✿: ok\n✿RETURN✿: done",
        (("ping", {}), ("dim_lamp", {"room": "a"})),
        "Now.",
    ),
    TextCase("no arguments", "✿FUNCTION✿: ping\n✿RESULT✿", (("ping", None),)),
    TextCase(
        "a marker cut",
        "✿FUNCTION✿: ping\n✿AR",
        (("ping", ""),),
        states=("cut",),
    ),
    TextCase(
        "arguments cut",
        '✿FUNCTION✿: dim_lamp\n✿ARGS✿: {"room": "ha',
        (("dim_lamp", '{"room": "ha'),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_pairs_are_read(case: TextCase) -> None:
    """A name and its arguments are a call; results are made up."""
    check_case(case)


@pytest.mark.parametrize(
    "text", ["✿FUNCTION✿ marks a function.", "✿FUNCTION✿: other\n✿ARGS✿: {}", "✿FUNCTION✿: pin"]
)
def test_other_names_are_text(text: str) -> None:
    """Unknown and cut names are not calls."""
    check_no_call(text)
