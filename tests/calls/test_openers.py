"""Which texts are told to hold no call without being read."""

import pytest

from surecall.base.records import ToolSpec
from surecall.calls import FORMATS, ToolNames, may_hold_call
from surecall.calls.openers import find_openers
from surecall.reading import ReplyReader, read_reply

TOOLS = ToolNames([ToolSpec(name="save_note"), ToolSpec(name="ping")])

PLAIN = [
    "It is sunny in Oslo.",
    "Prose with a tool: save_note (for notes) was not needed.",
    "Code:\n\n```python\nfor row in rows:\n    print(row[0], {'a': 1})\n```\n",
    'Data:\n\n{"title": "Checkout", "rows": [1, 2, 3]}\n\nand more.',
    "[1, 2, 3]\n`code` and ~~~ three",
]
"""Texts without a call, whose signs say so already."""

DOUBTFUL = [
    "<tool_call>",
    "save_note(",
    "analysis",
    '{"name": "Save-Note", "arguments": {}}',
    '{"name": "s_a_v_e note"}',
    '{"name": "save\\u005fnote"}',
    '{"action": "Final Answer", "action_input": "Hi."}',
    "[pi_ng()]",
]
"""Texts that have to be read."""


@pytest.mark.parametrize("text", PLAIN)
def test_text_without_a_call_is_told_from_its_signs(text: str) -> None:
    """Such a text is not read, and reading it would give the same."""
    assert not may_hold_call(text, TOOLS, FORMATS)
    assert ReplyReader(TOOLS).read_whole(text, "stop") == read_reply(
        text, tools=TOOLS, finish_reason="stop"
    )


@pytest.mark.parametrize("text", DOUBTFUL)
def test_text_that_may_name_a_tool_is_read(text: str) -> None:
    """A mark, a name in any spelling, or more signs than budgets allow: all are read."""
    assert may_hold_call(text, TOOLS, FORMATS)


@pytest.mark.parametrize("text", [*PLAIN, *DOUBTFUL])
def test_cheap_pattern_finds_what_the_index_finds(text: str) -> None:
    """Whichever pattern a whole text is searched with, it finds the same openers."""
    openers = find_openers(TOOLS, FORMATS)
    found = [match.span() for match in openers.pattern_for(text, is_whole=True).finditer(text)]
    assert found == [match.span() for match in openers.index.pattern.finditer(text)]


@pytest.mark.parametrize("text", ["{" * 5_000, "[\n" * 2_000 + "x" * 400, '{"a": ' * 5_000])
def test_signs_without_a_name_are_no_call_however_many_there_are(text: str) -> None:
    """Nothing that names no tool is missed where a reader gives up."""
    assert not may_hold_call(text, TOOLS, FORMATS)
    whole = read_reply(text, tools=TOOLS, finish_reason="stop")
    reader = ReplyReader(TOOLS)
    for start in range(0, len(text), 999):
        reader.feed(text[start : start + 999])
    assert reader.close("stop") == whole
    assert whole.defects == ()


def test_many_names_are_found_as_few_are() -> None:
    """With many tools a name is found by a pattern, and with few by itself."""
    many = ToolNames([ToolSpec(name=f"tool_{number}") for number in range(30)])
    assert may_hold_call("tool_29(", many, FORMATS)
    assert not may_hold_call("tool_29 and tool_3", many, FORMATS)
