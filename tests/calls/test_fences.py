"""Calls in code fences."""

import pytest
from msgspec import structs

from support.read_text import TOOLS, read
from support.text_cases import TextCase, check_case, check_no_call
from surecall.calls.families.marked_json import TAGGED_JSON
from surecall.calls.families.unmarked import CODE_FENCE

CALL = '{"name": "ping", "arguments": {}}'
PING = ("ping", {})
CASES = (
    TextCase(
        "announced, prose around",
        f"Now.\n```tool_call\n{CALL}\n```\nDone.",
        (PING,),
        "Now.\nDone.",
    ),
    TextCase(
        "announced, arguments that do not fit",
        '```tool_use\n{"name": "dim_lamp", "arguments": {"colour": 1}}\n```',
        (("dim_lamp", {"colour": 1}),),
    ),
    TextCase("plain", f"```json\n{CALL}\n```\n", (PING,)),
    TextCase("without a tag", f"```\n{CALL}\n```", (PING,)),
    TextCase("tildes", f"~~~json\n{CALL}\n~~~", (PING,)),
    TextCase("on one line", f"```json{CALL}```", (PING,)),
    TextCase("an array", f"```json\n[{CALL},\n{CALL}]\n```", (PING, PING)),
    TextCase("lines", f"```json\n{CALL}\n{CALL}\n```<|im_end|>", (PING, PING)),
    TextCase("several fences", f"```json\n{CALL}\n```\n\n```json\n{CALL}\n```", (PING, PING)),
    TextCase("not closed", f"```json\n{CALL}\n", (PING,), rules=("add_closer",)),
    TextCase(
        "ticks in a string",
        '````json\n{"name": "save_note", "arguments": {"title": "```\\n"}}\n````',
        (("save_note", {"title": "```\n"}),),
    ),
    TextCase(
        "code for tools",
        '```tool_code\nprint(default_api.ferry_times("Pier 4", rows=3))\n```\nWait.',
        (("default_api.ferry_times", {"origin": "Pier 4", "rows": 3}),),
        "\nWait.",
        rules=("name_positional_arguments",),
    ),
    TextCase("Python", "```python\nresult = ping()\n```", (PING,)),
    TextCase("a list of calls", "```\n[ping(), ping()]\n```", (PING, PING)),
    TextCase(
        "cut",
        '```json\n{"name": "dim_lamp", "arguments": {"room": "ha',
        (("dim_lamp", '{"room": "ha'),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_fences_that_hold_calls_are_read(case: TextCase) -> None:
    """Announced fences count anywhere, plain ones at the end of the message."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{CALL}\n```\nThat is how it looks.",
        f"```json\n{CALL}\n```\n```json\n{{}}\n```",
        f"```yaml\n{CALL}\n```",
        '```json\n{"a": 1}\n```',
        '```json\n{"name": "ping", "arguments": {}}\n// and more\nx\n```',
        '```tool_call\n{"name": "other", "arguments": {}}\n```',
        "```python\nimport os\nping()\n```",
        "```python\nfor i in x:\n    ping()\n```",
        "```python\ndim_lamp('hall')\n```",
        "```bash\nping()\n```",
        "text ```json",
        "```",
        "```json",
    ],
)
def test_other_fences_are_documentation(text: str) -> None:
    """Fences in an explanation, other code and unknown names stay text."""
    check_no_call(text)


def test_fence_may_hold_calls_of_other_families() -> None:
    """A body that another family reads is read, when all of it is calls."""
    fences = (structs.replace(CODE_FENCE, inner=(TAGGED_JSON,)),)
    text = f"```xml\n<tool_call>{CALL}</tool_call>\n```"
    assert [call.name for call in read(text, fences, TOOLS).calls] == ["ping"]
    assert read(f"{text}\nAs above.", fences, TOOLS).calls == []
    mixed = f"```xml\n<tool_call>{CALL}</tool_call> text\n```"
    assert read(mixed, fences, TOOLS).content == mixed
