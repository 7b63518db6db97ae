"""Forms and damage that families are known for, read among all families."""

from typing import Any

import pytest

from support.read_text import TOOLS, check_splits
from support.text_cases import TextCase, arguments_of
from surecall.base.records import ToolSpec
from surecall.calls import FORMATS

PREFIX = "antml" + ":"
ARGS = '{"room": "hall", "level": 2}'
CALL = f'{{"name": "dim_lamp", "arguments": {ARGS}}}'
HALL = ("dim_lamp", {"room": "hall"})
LAMP = ("dim_lamp", {"room": "hall", "level": 2})
PING: tuple[str, dict[str, Any]] = ("ping", {})
SPACE = "]<]minimax[>["


def _invoke(name: str, body: str = "") -> str:
    return f'<invoke name="{name}">\n{body}</invoke>'


def _legacy(name: str, body: str = "") -> str:
    return f"<invoke><tool_name>{name}</tool_name><parameters>{body}</parameters></invoke>"


def _parameter(key: str, value: str) -> str:
    return f'<parameter name="{key}">{value}</parameter>\n'


CASES = (
    TextCase(
        "minimax: no token before any inner tag",
        f'{SPACE}<tool_call>{SPACE}<invoke name="dim_lamp"><room>hall</room></invoke></tool_call>',
        (HALL,),
    ),
    TextCase("gemma: JSON behind the token", f"<|tool_call>{CALL}<tool_call|>", (LAMP,)),
    TextCase(
        "gemma: a space behind the colon",
        '<|tool_call>call: dim_lamp{room: <|"|>hall<|"|>}<tool_call|>',
        (HALL,),
    ),
    TextCase(
        "gemma: no tokens, behind text", 'Now call:dim_lamp{room:<|"|>hall<|"|>}', (HALL,), "Now"
    ),
    TextCase("gemma: no token, behind text", "Now call:ping{}", (), "Now call:ping{}"),
    TextCase(
        "gemma: a stray end of thought",
        "<|channel>thought\na<channel|>b <channel|>c",
        (),
        "b c",
        "a",
    ),
    TextCase(
        "minicpm5: CDATA in two sections",
        '<function name="save_note"><param name="title"><![CDATA[a]]]]><![CDATA[>b]]></param>'
        "</function>",
        (("save_note", {"title": "a]]>b"}),),
    ),
    TextCase("dots: an array", f"<dots_function_call>[{CALL}]</dots_function_call>", (LAMP,)),
    TextCase(
        "dots: a bracket too many",
        f"<dots_function_call>\n{CALL}}}\n</dots_function_call>",
        (LAMP,),
    ),
    TextCase(
        "longcat: a made-up result",
        f"<longcat_tool_call>{CALL}</longcat_tool_call><tool_response>dark</tool_response>",
        (LAMP,),
    ),
    TextCase(
        "muse: JSON that a grammar forced",
        f" to=dim_lamp<|message|><atem:function_calls>[{CALL}]</atem:function_calls><|eom|>",
        (LAMP,),
    ),
    TextCase(
        "muse: a block in text for the user",
        ' to=user<|message|>So:\n<atem:invoke name="ping">\n</atem:invoke><|eot|>',
        (),
        'So:\n<atem:invoke name="ping">\n</atem:invoke>',
    ),
    TextCase("inkling: JSON in text", f"<|content_text|>{CALL}<|end_message|>", (), CALL),
    TextCase("kimi: JSON in a response", f"<|open|>response<|sep|>{CALL}", (), CALL),
    TextCase("solar: JSON in content", f"<|begin|>assistant<|content|>{CALL}", (), CALL),
    TextCase(
        "legacy invokes in one wrapper",
        f"<function_calls>{_legacy('ping')}{_legacy('dim_lamp', '<room>hall</room>')}"
        "</function_calls>",
        (PING, HALL),
    ),
    TextCase("a legacy invoke alone", _legacy("dim_lamp", "<room>hall</room>"), (HALL,)),
    TextCase(
        "a stray word before the wrapper",
        f"count\n<function_calls>\n{_invoke('ping')}\n</function_calls>",
        (PING,),
    ),
    TextCase(
        "a prefixed result",
        f"<function_calls>{_invoke('ping')}</function_calls>\n<{PREFIX}function_results>ok",
        (PING,),
    ),
    TextCase(
        "a parameter left open on its line",
        _invoke("dim_lamp", f'<parameter name="room">hall\n{_parameter("level", "2")}'),
        (LAMP,),
    ),
    TextCase(
        "a child closed by a word that is no property",
        "<dim_lamp>\n<room>hall</rooms>\n<level>2</level>\n</dim_lamp>",
        (LAMP,),
    ),
    TextCase("a tool's name as the type", f'{{"type": "dim_lamp", "parameters": {ARGS}}}', (LAMP,)),
    TextCase("a bracket too many", f"{CALL}}}", (LAMP,)),
    TextCase("a bracket too many in a fence", f"```json\n{CALL}}}\n```", (LAMP,)),
    TextCase("a tag in a fence", f"```xml\n<tool_call>{CALL}</tool_call>\n```", (LAMP,)),
    TextCase(
        "a tag in a fence behind text",
        f"Write:\n```xml\n<tool_call>{CALL}</tool_call>\n```",
        (),
        f"Write:\n```xml\n<tool_call>{CALL}</tool_call>\n```",
    ),
    TextCase(
        "an announced fence with tags",
        f"On it.\n```tool_call\n{_invoke('dim_lamp', _parameter('room', 'hall'))}\n```",
        (HALL,),
        "On it.",
    ),
    TextCase("the end of code", '```py\ndim_lamp(room="hall")\n```<end_code>', (HALL,)),
    TextCase(
        "florette: a marker that is cut", f"✿FUNCTION✿: dim_lamp\n✿ARGS✿: {ARGS}\n✿RES", (LAMP,)
    ),
    TextCase("florette: an answer", "✿RETURN✿: It is dark.", (), "It is dark."),
    TextCase("florette: an answer behind text", "So.\n✿RETURN✿: Dark.", (), "So.\nDark."),
    TextCase(
        "react: ticks around the input",
        f"Action: `dim_lamp`\nAction Input: `{ARGS}`",
        (LAMP,),
    ),
    TextCase("react: no input", "Action: ping\nAction Input:\nObservation: ok", (PING,)),
    TextCase("react: other labels", f"行动：dim_lamp\n行动输入：{ARGS}\n观察：暗", (LAMP,)),
    TextCase(
        "chatglm: the token of the turn",
        f"<|assistant|>ping\n{{}}<|assistant|>dim_lamp\n{ARGS}",
        (PING, LAMP),
    ),
    TextCase("a recipient without tokens", f"to=functions.dim_lamp {ARGS}", (LAMP,)),
    TextCase(
        "tools that are repeated",
        f'<AVAILABLE_TOOLS>[{{"name": "ping"}}]</AVAILABLE_TOOLS><TOOLCALL>[{CALL}]</TOOLCALL>',
        (LAMP,),
    ),
    TextCase(
        "a list on one line of YAML",
        "<tool_calls>\n- name: save_note\n  arguments:\n    title: x\n    tags: [a, b]\n"
        "</tool_calls>",
        (("save_note", {"title": "x", "tags": ["a", "b"]}),),
    ),
    TextCase(
        "an answer in its tag", "hm\n</think>\n\n<response>\nDark.\n</response>", (), "Dark.", "hm"
    ),
    TextCase(
        "answers in their tags",
        "<think>hm</think><answer>1</answer>\n<answer>2</answer>",
        (),
        "1\n<answer>2</answer>",
        "hm",
    ),
    TextCase(
        "a tag of an answer without reasoning",
        "<answer>Dark.</answer>",
        (),
        "<answer>Dark.</answer>",
    ),
    TextCase("a newline behind the last token", "Dark.<|message_sep|>\n\n", (), "Dark."),
    TextCase("a second end of reasoning", "<think>a</think>b\n</think>\nc", (), "b\n\nc", "a"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_known_forms_are_read_in_every_split(case: TextCase) -> None:
    """Each family reads its own forms and damage, and leaves alone what is not for a tool."""
    found = check_splits(case.text, FORMATS)
    assert tuple((call.name, arguments_of(call)) for call in found.calls) == case.calls
    assert {call.state for call in found.calls} <= {"whole"}
    assert (found.content, found.reasoning) == (case.content, case.reasoning)


@pytest.mark.parametrize("quote", ['"', "`", "*", '"dark', '"a \\"'])
def test_an_input_that_ends_in_an_open_quote_is_cut(quote: str) -> None:
    """What stands behind a quote that does not end is not all of the input."""
    (call,) = check_splits(f"Action: dim_lamp\nAction Input: {quote}", FORMATS).calls
    assert call.state == "cut"


def test_code_between_tokens_is_for_the_parameter_of_its_tool() -> None:
    """Whatever the parameter is called; a fence around the code is no part of it."""
    schema = {"type": "object", "properties": {"script": {"type": "string"}}}
    tools = (*TOOLS, ToolSpec(name="run_python", parameters=schema))
    text = "<|action_start|><|interpreter|>\n```python\nprint(1)\n```\n<|action_end|>"
    (call,) = check_splits(text, FORMATS, tools).calls
    assert (call.name, call.arguments) == ("run_python", {"script": "print(1)"})
