"""Functionary: recipients behind tokens or marks."""

import pytest

from support.read_text import TOOLS, check_splits
from support.text_cases import EVERY, TextCase, check_case, check_no_call
from surecall.base.records import ToolSpec

FERRY = ("ferry_times", {"origin": "Pier 4"})
CASES = (
    TextCase(
        "text, then a call",
        'all\nOne moment.>>>ferry_times\n{"origin": "Pier 4"}',
        (FERRY,),
        "One moment.",
    ),
    TextCase("marks", ">>>ping\n{}>>>all\nDone.", (("ping", {}),), "Done."),
    TextCase(
        "the first mark was in the prompt",
        'ferry_times\n{"origin": "Pier 4"}>>>ping\n{}',
        (FERRY, ("ping", {})),
    ),
    TextCase(
        "tokens",
        "<|from|>assistant\n<|recipient|>all\n<|content|>Hi.<|from|>assistant\n"
        '<|recipient|>ferry_times\n<|content|>{"origin": "Pier 4"}<|stop|>',
        (FERRY,),
        "Hi.",
    ),
    TextCase(
        "an unknown recipient is reported",
        "<|recipient|>other\n<|content|>{}<|stop|>",
        (("other", {}),),
    ),
    TextCase(
        "arguments cut",
        '>>>ferry_times\n{"origin": "Pi',
        (("ferry_times", '{"origin": "Pi'),),
        states=("cut",),
    ),
    TextCase(
        "cut behind the header",
        "<|recipient|>ping\n<|content|>",
        (("ping", ""),),
        states=("cut",),
    ),
    TextCase("cut in the header", "<|from|>assistant\n<|recipient|>pi"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_messages_to_tools_are_calls(case: TextCase) -> None:
    """Messages to `all` are text, messages to a tool are calls."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        ">>> x = 1\n>>> print(x)",
        ">>>ping",
        ">>>ping\nis quoted",
        ">>>other\n{}",
        "all\nof them >>> others",
        "The <|recipient|> token names a tool.",
    ],
)
def test_prompts_and_quotes_are_text(text: str) -> None:
    """Marks without a known name, a newline and an object are text."""
    check_no_call(text)


@pytest.mark.parametrize(
    "text",
    [
        ">>>python\nprint(1)\n",
        "<|from|>assistant\n<|recipient|>python\n<|content|>print(1)\n<|stop|>",
    ],
)
def test_raw_code_goes_to_the_tool_that_runs_it(text: str) -> None:
    """The recipient `python` is given code, not JSON."""
    schema = {"type": "object", "properties": {"code": {"type": "string"}}}
    tools = (*TOOLS, ToolSpec(name="python", parameters=schema))
    found = check_splits(text, EVERY, tools)
    assert [(call.name, call.arguments) for call in found.calls] == [
        ("python", {"code": "print(1)"})
    ]
