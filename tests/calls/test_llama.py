"""What follows Llama's `<|python_tag|>`."""

import pytest

from support.read_text import TOOLS, check_splits
from support.text_cases import EVERY, TextCase, check_case, check_no_call
from surecall.base.records import ToolSpec

CASES = (
    TextCase(
        "an object",
        'Let me see. <|python_tag|>{"type": "function", "name": "ping", "parameters": {}}',
        (("ping", {}),),
        "Let me see. ",
    ),
    TextCase(
        "objects with semicolons",
        '<|python_tag|>{"name": "ping", "parameters": {}}; '
        '{"name": "dim_lamp", "parameters": {"room": "a"}}<|eom_id|>',
        (("ping", {}), ("dim_lamp", {"room": "a"})),
    ),
    TextCase(
        "a built-in call",
        '<|python_tag|>ferry_times.call(origin="Pier 4")<|eom_id|>',
        (("ferry_times", {"origin": "Pier 4"}),),
    ),
    TextCase(
        "a built-in call with quotes that are not escaped",
        '<|python_tag|>ferry_times.call(origin="the "old" pier")',
        (("ferry_times", {"origin": 'the "old" pier'}),),
        rules=("nested_quotes",),
    ),
    TextCase(
        "a cut object",
        '<|python_tag|>{"name": "dim_lamp", "parameters": {"room": "ha',
        (("dim_lamp", '{"room": "ha'),),
        states=("cut",),
    ),
    TextCase(
        "a cut built-in call",
        '<|python_tag|>ferry_times.call(origin="Pi',
        (("ferry_times", 'origin="Pi'),),
        states=("cut",),
    ),
    TextCase("nothing behind the tag", "Now.<|python_tag|>", content="Now."),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_calls_behind_the_tag_are_read(case: TextCase) -> None:
    """Objects and built-in calls are told apart."""
    check_case(case)


def test_code_goes_to_the_only_tool_that_runs_it() -> None:
    """Raw code is the argument of a code tool, up to the end of the turn."""
    schema = {"type": "object", "properties": {"code": {"type": "string"}}}
    tools = (*TOOLS, ToolSpec(name="ipython", parameters=schema))
    code = 'x = {"name": "ping"}\nprint(x)'
    found = check_splits(f"<|python_tag|>{code}\n<|eom_id|>", EVERY, tools)
    assert [(call.name, call.arguments) for call in found.calls] == [("ipython", {"code": code})]
    two = (*tools, ToolSpec(name="python", parameters=schema))
    assert check_splits(f"<|python_tag|>{code}", EVERY, two).calls == []


@pytest.mark.parametrize(
    "text",
    [
        "<|python_tag|>print(1)",
        "<|python_tag|> comes before code.",
        "Say `<|python_tag|>ping.call()` to it.",
    ],
)
def test_code_without_a_tool_for_it_is_text(text: str) -> None:
    """No tool runs code, so code is shown."""
    check_no_call(text)
