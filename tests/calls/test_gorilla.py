"""Calls behind a word: Gorilla and NexusRaven."""

import pytest

from support.text_cases import TextCase, check_case, check_no_call

CASES = (
    TextCase(
        "Gorilla",
        "Now.\n<<function>>dim_lamp(room='hall'), ping()",
        (("dim_lamp", {"room": "hall"}), ("ping", {})),
        "Now.",
    ),
    TextCase(
        "NexusRaven",
        "Call: dim_lamp(room='hall'); ping()<bot_end>",
        (("dim_lamp", {"room": "hall"}), ("ping", {})),
    ),
    TextCase("NexusRaven without its end", "Call: ping()\n", (("ping", {}),)),
    TextCase(
        "a cut call",
        "Call: dim_lamp(room='ha",
        (("dim_lamp", "room='ha"),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_calls_behind_the_word_are_read(case: TextCase) -> None:
    """Known names with literal arguments are calls."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "Call: me maybe",
        "Call: dim_lamp(room=ping())<bot_end>",
        "Call: ping() if you like.",
        "Please Call: ping()",
        "<<function>>other(a=1)",
        "<<function>> is a marker",
    ],
)
def test_other_text_behind_the_word_is_text(text: str) -> None:
    """Prose, unknown names and nested calls are not calls."""
    check_no_call(text)
