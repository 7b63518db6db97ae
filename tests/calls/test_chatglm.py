"""ChatGLM: a name on its own line, and arguments as all the rest."""

import pytest

from support.text_cases import TextCase, check_case, check_no_call

CASES = (
    TextCase(
        "an object",
        'ferry_times\n{"origin": "Pier 4"}<|observation|>',
        (("ferry_times", {"origin": "Pier 4"}),),
    ),
    TextCase(
        "a made-up function",
        "dim_lamp\n```python\ntool_call(room='hall')\n```",
        (("dim_lamp", {"room": "hall"}),),
    ),
    TextCase(
        "two calls",
        'ferry_times\n {"origin": "a"}<|assistant|>ping\n{}',
        (("ferry_times", {"origin": "a"}), ("ping", {})),
    ),
    TextCase(
        "cut",
        'ferry_times\n{"origin": "Pi',
        (("ferry_times", '{"origin": "Pi'),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_name_and_arguments_are_a_call(case: TextCase) -> None:
    """A known name, a newline and arguments that end the message are a call."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "ping\nis a tool",
        'ferry_times\n{"origin": "a"}\nis an example',
        "other\n{}",
        "dim_lamp\n```python\nx = 1\n```\n",
        "ping",
    ],
)
def test_names_on_lines_are_text(text: str) -> None:
    """Without arguments, or with text behind them, a name is text."""
    check_no_call(text)
