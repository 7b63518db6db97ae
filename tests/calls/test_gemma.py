"""Gemma 4 and FunctionGemma: their notation, and the damage that is read."""

import pytest

from support.read_text import read
from support.text_cases import EVERY, TextCase, check_case, check_no_call

CASES = (
    TextCase(
        "nested values",
        '<|tool_call>call:save_note{title:<|"|>Tea {green}<|"|>, tags:[<|"|>a,b<|"|>],'
        "body:{deep key:[1,-2.5e3,true,null,{}]}}<tool_call|>",
        (
            (
                "save_note",
                {
                    "title": "Tea {green}",
                    "tags": ["a,b"],
                    "body": {"deep key": [1, -2500.0, True, None, {}]},
                },
            ),
        ),
    ),
    TextCase(
        "text around two calls",
        "Now.<|tool_call>call:ping{}<tool_call|><|tool_call>call:ping{}<tool_call|>Done.",
        (("ping", {}), ("ping", {})),
        "Now.Done.",
    ),
    TextCase(
        "markers inside a string",
        '<|tool_call>call:save_note{title:<|"|>end with <tool_call|>} please<|"|>}<tool_call|>',
        (("save_note", {"title": "end with <tool_call|>} please"}),),
    ),
    TextCase(
        "an end of turn for the closer",
        "<|tool_call>call:dim_lamp{level:3}<turn|>",
        (("dim_lamp", {"level": 3}),),
        rules=("add_closer",),
    ),
    TextCase(
        "the closer twice",
        "<|tool_call>call:ping{}<tool_call|><tool_call|>Done",
        (("ping", {}),),
        "Done",
    ),
    TextCase(
        "a made-up result",
        "<|tool_call>call:ping{}<tool_call|><|tool_response>response:ping{ok:true}Fine.",
        (("ping", {}),),
    ),
    TextCase(
        "fallen-apart tokens",
        'Now.\ncall:dim_lamp{room:<|"|>hall<|"|>}',
        (("dim_lamp", {"room": "hall"}),),
        "Now.",
        rules=("restore_token", "add_closer"),
    ),
    TextCase(
        "a tag instead",
        "<call>ping{}",
        (("ping", {}),),
        rules=("restore_token", "add_closer"),
    ),
    TextCase(
        "no closing delimiter",
        '<|tool_call>call:dim_lamp{level:1,room:<|"|>hall}<tool_call|>'
        '<|tool_call>call:dim_lamp{room:<|"|>attic<|"|>}<tool_call|>',
        (("dim_lamp", {"level": 1, "room": "hall"}), ("dim_lamp", {"room": "attic"})),
        rules=("close_string",),
    ),
    TextCase(
        "quotes and a stray delimiter",
        '<|tool_call>call:dim_lamp{room:\'the "hall"\'<|"|>,level:3}<tool_call|>',
        (("dim_lamp", {"room": 'the "hall"', "level": 3}),),
        rules=("replace_quotes",),
    ),
    TextCase(
        "no delimiters",
        "<|tool_call>call:dim_lamp{room:the hall,level:3}<tool_call|>",
        (("dim_lamp", {"room": "the hall", "level": 3}),),
        rules=("quote_bare_text",),
    ),
    TextCase(
        "no closing brace",
        '<|tool_call>call:dim_lamp{room:<|"|>hall<|"|>,level:3<tool_call|>',
        (("dim_lamp", {"room": "hall", "level": 3}),),
        rules=("close_object",),
    ),
    TextCase(
        "JSON inside",
        '<|tool_call>call:dim_lamp{"room": "a \\"b\\"", "level": 3}<tool_call|>',
        (("dim_lamp", {"room": 'a "b"', "level": 3}),),
    ),
    TextCase(
        "keys between delimiters",
        '<|tool_call>call:dim_lamp{<|"|>room<|"|>:<|"|>hall<|"|>}<tool_call|>',
        (("dim_lamp", {"room": "hall"}),),
    ),
    TextCase(
        "more than one reading",
        "<|tool_call>call:save_note{title:a, b c,body:x}<tool_call|>after",
        (("save_note", "{title:a, b c,body:x}"),),
        "after",
        rules=("keep_damaged",),
        states=("unreadable",),
    ),
    TextCase(
        "a string that lost its end",
        "<start_function_call>call:save_note{title:<escape>a escape>,body:<escape>b<escape>}"
        "<end_function_call>",
        (("save_note", "{title:<escape>a escape>,body:<escape>b<escape>}"),),
        rules=("keep_damaged",),
        states=("unreadable",),
    ),
    TextCase(
        "a key twice",
        "<|tool_call>call:dim_lamp{level:1,level:2}<tool_call|>",
        (("dim_lamp", "{level:1,level:2}"),),
        rules=("keep_damaged",),
        states=("unreadable",),
    ),
    TextCase(
        "cut in a number",
        "<|tool_call>call:dim_lamp{level:1",
        (("dim_lamp", "{level:1"),),
        states=("cut",),
    ),
    TextCase("cut in the name", "Now.<|tool_call>call:dim_la", content="Now."),
    TextCase("cut in the token's word", "Now.<|tool_call>ca", content="Now."),
    TextCase(
        "FunctionGemma",
        "<start_function_call>call:dim_lamp{room:<escape>a } b<escape>,level:3}"
        "<end_function_call><start_function_response>made up",
        (("dim_lamp", {"room": "a } b", "level": 3}),),
    ),
    TextCase(
        "reasoning that a call ends",
        "<|channel>thought\nIt is dark.<|tool_call>call:ping{}<tool_call|>",
        (("ping", {}),),
        reasoning="It is dark.",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_notation_is_read(case: TextCase) -> None:
    """Healthy calls leave no receipt, damaged ones do, and what has two readings is refused."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "You may call:ping{} in the middle of a line.",
        "call:unknown{}",
        "call: me later",
        "The token <|tool_call> begins a call.",
        "<|tool_call>call:ping without a brace<tool_call|>",
        "Write `<|tool_call>call:ping{}<tool_call|>` for that.",
        "```\n<|tool_call>call:ping{}<tool_call|>\n```\nThat is it.",
    ],
)
def test_mentions_are_not_calls(text: str) -> None:
    """Prose and documentation stay text."""
    check_no_call(text)


def test_deep_nesting_is_refused() -> None:
    """An object deeper than any call is not read."""
    deep = "[" * 200
    text = f"<|tool_call>call:ping{{a:{deep}}}<tool_call|>"
    calls = check_case(
        TextCase(
            "deep",
            text,
            (("ping", f"{{a:{deep}}}"),),
            rules=("keep_damaged",),
            states=("unreadable",),
        )
    )
    assert len(calls) == 1


def test_long_arrays_are_read() -> None:
    """A call with thousands of values is a call like any other."""
    numbers = list(range(5000))
    text = f"<|tool_call>call:ping{{a:[{','.join(map(str, numbers))}]}}<tool_call|>"
    (call,) = read(text, EVERY).calls
    assert call.arguments == {"a": numbers}


def test_thousands_of_strings_are_read() -> None:
    """Texts between delimiters or in quotes cost no more questions than numbers do."""
    words = [f"a {number}" for number in range(3000)]
    for quote in ('<|"|>', '"'):
        written = ",".join(f"{quote}{word}{quote}" for word in words)
        (call,) = read(f"<|tool_call>call:ping{{a:[{written}]}}<tool_call|>", EVERY).calls
        assert call.arguments == {"a": words}
