"""Calls in Python syntax as all of a message."""

import pytest

from support.read_text import TOOLS, check_splits
from support.text_cases import EVERY, TextCase, check_case, check_no_call
from surecall.base.records import ToolSpec

CASES = (
    TextCase(
        "a list",
        "[dim_lamp(room='hall', level=2, fade=True), ping()]",
        (("dim_lamp", {"room": "hall", "level": 2, "fade": True}), ("ping", {})),
    ),
    TextCase("one call", 'ferry_times(origin="Pier 4")', (("ferry_times", {"origin": "Pier 4"}),)),
    TextCase(
        "calls on lines",
        "\n\nping()\ndim_lamp(room='a');\n",
        (("ping", {}), ("dim_lamp", {"room": "a"})),
    ),
    TextCase("a decorated name", "[functions.ping()]", (("functions.ping", {}),)),
    TextCase("an end of turn", "[ping()]<|eot_id|>", (("ping", {}),)),
    TextCase(
        "a newline in a string, and a full stop",
        "[dim_lamp(room='a\nb')].",
        (("dim_lamp", {"room": "a\nb"}),),
        rules=("raw_newline",),
    ),
    TextCase(
        "JSON words",
        "[dim_lamp(room='a', fade=false)]",
        (("dim_lamp", {"room": "a", "fade": False}),),
        rules=("json_word",),
    ),
    TextCase(
        "a cut list has no whole call",
        "[ping(), dim_lamp(room='ha",
        (("ping", {}), ("dim_lamp", "room='ha")),
        states=("cut", "cut"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_calls_that_are_the_message_are_read(case: TextCase) -> None:
    """Calls that fit their tools are read when there is nothing but them."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "[ping()] is how you ping.",
        "Try [ping()]",
        "[link](https://example.org)",
        "[1] A source.",
        "[x] done",
        "[table]\nkey = 1",
        "[note(1)]",
        "print(1)",
        "[ping(), other()]",
        "[dim_lamp(room='a', colour='red')]",
        "[dim_lamp('hall')]",
        "[dim_lamp(room=hall)]",
        "ping(host='x')",
        "for i in x:\n    ping()\n    wait()",
        "```python\nping()\nwait()\n```",
        "Use `ping()`.",
        "[other(a='x",
    ],
)
def test_code_and_links_are_not_calls(text: str) -> None:
    """Unknown names, other arguments, or anything behind the calls make them text."""
    check_no_call(text)


def test_padded_number_is_text_where_text_is_wanted() -> None:
    """The schema decides whether leading zeros are part of the value."""
    schema = {
        "type": "object",
        "properties": {"code": {"type": "string"}, "count": {"type": "integer"}},
    }
    tools = (*TOOLS, ToolSpec(name="open_door", parameters=schema))
    found = check_splits("[open_door(code=007, count=010)]", EVERY, tools)
    assert [call.arguments for call in found.calls] == [{"code": "007", "count": 10}]
