"""Long texts made to be hard are read to their end, whole and in pieces, with few calls."""

from collections.abc import Callable

import pytest

from support.offered_tools import TOOLS
from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.calls.reader import MAX_CALLS
from surecall.reading import ReplyReader, read_reply

SIZE = 100_000
IN_PIECES = 20_000
CHUNK = 1000
NAMES = ToolNames(TOOLS)

REPEATED: dict[str, str] = {
    "brackets": "[",
    "objects": '{"a":',
    "objects of calls": '{"name":"save_note","arguments":',
    "quotation marks": '"',
    "apostrophes": "'",
    "backslashes": "\\",
    "tags": "<tool_call>",
    "tags and closers": "<tool_call></tool_call>",
    "begun calls": '<tool_call>{"name":"save_note"',
    "nested tags": '<tool_call>{"name":"save_note","arguments":{"text":"',
    "reasoning": "<think>",
    "ends of reasoning": "</think>",
    "reasoning in turns": "<think>x</think>",
    "fences": "```\n",
    "fences of JSON": "```json\n{",
    "fences of calls": '```json\n{"name":"ping","arguments":{}}\n```\n',
    "ticks": "`",
    "inline code": "`x",
    "actions": "Action: save_note\n",
    "actions and inputs": "Action: save_note\nAction Input: {",
    "function tags": "<function=save_note>",
    "parameters": "<function=save_note><parameter=text>",
    "closers of parameters": "<tool_call><function=save_note><parameter=text></parameter>",
    "invokes": '<invoke name="save_note"><parameter name="text">',
    "keys": "<tool_call>save_note<arg_key>text</arg_key><arg_value>",
    "dsml": '<｜DSML｜invoke name="save_note"><｜DSML｜parameter name="text" string="true">',
    "channels": "<|channel|>",
    "messages": "<|start|>assistant<|channel|>commentary to=functions.ping<|message|>",
    "kimi": "<|tool_call_begin|>functions.save_note:0",
    "kimi k3": '<|open|>call tool="save_note"<|sep|><|open|>argument key="text"<|sep|>',
    "deepseek": "<｜tool▁call▁begin｜>save_note<｜tool▁sep｜>",
    "mistral": "[TOOL_CALLS]save_note[ARGS]{",
    "gemma": '<|tool_call>call:save_note{text:<|"|>',
    "python": "save_note(text=",
    "lists of python": "[ping(), ",
    "name tags": "<save_note><text>",
    "angles": "<",
    "bars": "<|",
    "ends of turns": "<|im_end|>",
    "rows": '{"name":"ping"}\n',
    "rows of nested objects": '{"name":{"x":[1]}}\n',
    "rows in apostrophes": "{'name':'ping'}\n",
    "rows of begun objects": '{"name":"ping" \n',
    "rows of python": 'save_note(text="a")\nping()\n',
    "functools": "functools[{",
    "names": "ping\n",
    "quoted calls": '"<tool_call>ping</tool_call>" ',
    "elements": "<a>\n",
    "turns": "User: x\nAssistant: <tool_call>ping</tool_call>\n",
    "thoughts of a tool": "<think>ping\n",
    "thoughts in a table": "| <think>",
    "thoughts that may hold calls": "<|think|>",
    "thoughts in open quotes": "“<think>\nping\n{",
    "names in open quotes": "“«\nping\n{",
    "messages to oneself": "to=self<|message|>\nping\n{",
    "quoted lines with calls": '> <tool_calls>{"name":"ping"',
    "rows of doubled braces": '{{"name":"ping","arguments":{}}\n',
    "rows of lists of calls": "[ping()]\n",
    "newlines": "\n",
    "spaces": " ",
    "prose": "hello world ",
}
GENERATED: dict[str, Callable[[], str]] = {
    "deep JSON": lambda: '{"name":"ping","arguments":' + '{"a":' * 20_000 + "1" + "}" * 20_000,
    "a deep list": lambda: "[" * 50_000 + "]" * 50_000,
    "a long string": lambda: '<tool_call>{"name":"ping","arguments":{"a":"' + "x" * SIZE,
    "a long name": lambda: "<function=" + "x" * SIZE + "></function>",
    "a long key": lambda: '{"' + "x" * SIZE + '": 1}',
    "a long number": lambda: '<tool_call>{"name":"ping","arguments":{"a":' + "9" * SIZE + "}}",
    "many keys": lambda: (
        '<tool_call>{"name":"ping","arguments":{'
        + ",".join(f'"k{number}":1' for number in range(8_000))
        + "}}</tool_call>"
    ),
    "many calls": lambda: '<tool_call>{"name":"ping","arguments":{}}</tool_call>' * 2_000,
    "many parameters": lambda: (
        "<tool_call><function=save_note>"
        + "".join(f"<parameter=k{number}>1</parameter>" for number in range(3_000))
        + "</function></tool_call>"
    ),
    "escapes": lambda: '<tool_call>{"name":"ping","arguments":{"a":"' + "\\u0041" * 16_000 + '"}}',
    "a closer at the end": lambda: "<tool_call>{" * 8_000 + "</tool_call>",
    "lone surrogates": lambda: '<tool_call>{"name":"ping","arguments":{"a":"' + "\ud800" * SIZE,
    "zero bytes": lambda: "\0" * SIZE + "<tool_call>ping</tool_call>",
}
HOSTILE = {
    **{name: seed * (SIZE // len(seed)) for name, seed in REPEATED.items()},
    **{name: generate() for name, generate in GENERATED.items()},
}


def summary(reading: Reading) -> tuple[object, ...]:
    """Return what must not depend on how the text arrived."""
    calls = [(call.name, call.arguments, call.state, call.format) for call in reading.calls]
    return calls, reading.content, reading.reasoning, reading.defects


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_text_is_read_to_its_end(text: str) -> None:
    """It gives a reading with a bounded number of calls, and its start the same in pieces."""
    whole = read_reply(text, tools=NAMES, finish_reason="stop")
    assert len(whole.calls) <= MAX_CALLS
    assert {call.name for call in whole.calls} <= {"ping", "save_note", "weather"}
    assert len(whole.content) + len(whole.reasoning or "") <= len(text)
    start = text[:IN_PIECES]
    for finish_reason in ("stop", "length"):
        reader = ReplyReader(NAMES)
        for at in range(0, len(start), CHUNK):
            reader.feed(start[at : at + CHUNK])
        in_pieces = reader.close(finish_reason)
        assert summary(in_pieces) == summary(
            read_reply(start, tools=NAMES, finish_reason=finish_reason)
        )
