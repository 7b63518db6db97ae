"""Calls in Python syntax between markers."""

import pytest

from support.text_cases import TextCase, check_case, check_no_call

LAMP = ("dim_lamp", {"room": "hall"})
CASES = (
    TextCase(
        "LFM2 echo",
        "<|tool_call_start|>[dim_lamp(room='hall')]<|tool_call_end|>"
        "[dim_lamp(room='hall')]<|tool_call_end|>Done.",
        (LAMP,),
        "Done.",
        rules=("drop_echo",),
    ),
    TextCase(
        "LFM2 with another call behind the first",
        "<|tool_call_start|>[dim_lamp(room='hall')]<|tool_call_end|>"
        "[dim_lamp(room='loft')]<|tool_call_end|>",
        (LAMP,),
        "[dim_lamp(room='loft')]<|tool_call_end|>",
    ),
    TextCase(
        "LFM2 nested quotes",
        "<|tool_call_start|>[save_note(title='say 'hi' twice', body=\"x\")]<|tool_call_end|>",
        (("save_note", {"title": "say 'hi' twice", "body": "x"}),),
        rules=("nested_quotes",),
    ),
    TextCase(
        "LFM2 empty list",
        "<|tool_call_start|>[]<|tool_call_end|>Nothing to do.",
        content="Nothing to do.",
    ),
    TextCase(
        "LFM2 JSON",
        'Now.<|tool_call_start|>[{"name": "ping", "arguments": {}}]<|tool_call_end|>',
        (("ping", {}),),
        "Now.",
    ),
    TextCase(
        "LFM2 one call, padded number",
        "<|tool_call_start|>dim_lamp(room='hall', level=007)<|tool_call_end|>",
        (("dim_lamp", {"room": "hall", "level": 7}),),
        rules=("leading_zeros",),
    ),
    TextCase(
        "LFM2 nested dict",
        "<|tool_call_start|>[save_note(title={'a': {'b': [1]}})]<|tool_call_end|>",
        (("save_note", {"title": {"a": {"b": [1]}}}),),
    ),
    TextCase(
        "unknown names are reported",
        "<|tool_call_start|>[nope(a=1)]<|tool_call_end|>",
        (("nope", {"a": 1}),),
    ),
    TextCase(
        "no closer",
        "<|tool_call_start|>[ping()]",
        (("ping", {}),),
        rules=("add_closer",),
    ),
    TextCase("cut at the token", "Now.<|tool_call_start|>", content="Now."),
    TextCase("cut in the name", "Now.<|tool_call_start|>[dim_la", content="Now."),
    TextCase(
        "cut in a later call",
        "<|tool_call_start|>[ping(), dim_lamp(room='ha",
        (("ping", {}), ("dim_lamp", "room='ha")),
        rules=("add_closer",),
        states=("whole", "cut"),
    ),
    TextCase(
        "MiniCPM",
        "<|tool_call_start|>\n```python\ndim_lamp(room='hall')\nping()\n```\n<|tool_call_end|>",
        (LAMP, ("ping", {})),
    ),
    TextCase(
        "Llama 4",
        "<|python_start|>[dim_lamp(room='hall')]<|python_end|>",
        (LAMP,),
    ),
    TextCase(
        "Olmo",
        'Now.\n<function_calls>\nsave_note(title="a\nb")\nping()\n</function_calls>',
        (("save_note", {"title": "a\nb"}), ("ping", {})),
        "Now.",
        rules=("raw_newline",),
    ),
    TextCase(
        "Olmo with brackets",
        "<function_calls>[ping(), ping()]</function_calls>",
        (("ping", {}), ("ping", {})),
    ),
    TextCase(
        "Olmo without quotes",
        "<function_calls>\ndim_lamp(room=the hall, level=3)\n</function_calls>",
        (("dim_lamp", {"room": "the hall", "level": 3}),),
        rules=("quote_bare_words",),
    ),
    TextCase(
        "Olmo without its closer",
        "<function_calls>\nping()",
        (("ping", {}),),
        rules=("add_closer",),
    ),
    TextCase("a call in the tag of JSON", "<tool_call>ping()</tool_call>", (("ping", {}),)),
    TextCase(
        "code of an agent",
        "Now.\n<code>\nresult = dim_lamp(room='hall')\nprint(ping())\n</code>\nDone.",
        (LAMP, ("ping", {})),
        "Now.\nDone.",
    ),
    TextCase(
        "the old end of code",
        "<code>ping()<end_code>",
        (("ping", {}),),
    ),
    TextCase("the answer of an agent", "<code>\nfinal_answer('42')\n</code>", content="42"),
    TextCase(
        "arguments by position",
        "<tool_code>print(default_api.dim_lamp('hall', 3))</tool_code>",
        (("default_api.dim_lamp", {"room": "hall", "level": 3}),),
        rules=("name_positional_arguments",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_calls_between_markers_are_read(case: TextCase) -> None:
    """Each opener has its closer and its habits."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "<|tool_call_start|> is the token that begins a call.",
        "<function_calls> wraps calls.",
        "Use <code>ping()</code> for that.",
        "<code>ping()</code> pings.",
        "<code>\nfor i in range(3):\n    ping()\n</code>",
        "<code>other()</code>",
        "<code>dim_lamp('hall')</code>",
        "<tool_code>x = ping() + 1</tool_code>",
        "Write `<|tool_call_start|>[ping()]<|tool_call_end|>` for that.",
        "```\n<function_calls>\nping()\n</function_calls>\n```\nAs above.",
    ],
)
def test_documentation_is_not_a_call(text: str) -> None:
    """Markers in prose, markup and code stay text."""
    check_no_call(text)
