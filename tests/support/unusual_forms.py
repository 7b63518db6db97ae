# ruff: noqa: E501, ISC004 - a text is one entry
r"""Calls in forms that few models write, by class, and the same texts where they are only spoken of.

Each class has templates of whole calls. `$n` is the name of the tool, `$k1`, `$v1` its first
argument and `$k2`, `$v2` its second; `$text` is the value of a tool's one text, `$escaped` and
`$block` that text with the entities of XML and as an indented block.
"""

import html
import json
from collections.abc import Iterator
from string import Template
from typing import Any, Final, NamedTuple

from surecall.base.records import ToolSpec

__all__ = ["CLASSES", "OFFERED", "Unusual", "called", "spoken_of"]


def _tool(name: str, required: tuple[str, ...], **kinds: str) -> ToolSpec:
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name=name, parameters=schema)


OFFERED: Final = (
    _tool("shell", ("command",), command="string"),
    _tool("look_up", ("query",), query="string", limit="integer"),
    _tool("dim_lamp", ("room",), room="string", level="integer"),
    _tool("ferry_times", ("origin", "rows"), origin="string", rows="integer"),
    _tool("save_note", ("title", "body"), title="string", body="string"),
)
_TEXTS: Final = (
    ("shell", "command", "ls -la /srv"),
    ("shell", "command", "grep -c 'x & y' < notes.txt"),
    ("shell", "command", "cd /tmp\nmake clean && make"),
    ("look_up", "query", "tides in Bergen"),
    ("look_up", "query", "is 3 < 4 & 5 > 2?"),
)
_PAIRS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("dim_lamp", {"room": "hall", "level": 3}),
    ("ferry_times", {"origin": "Moss", "rows": 12}),
    ("save_note", {"title": "Milk", "body": "Two litres, please."}),
    ("look_up", {"query": "opening hours", "limit": 5}),
)

ONE_TEXT: Final = (
    "<$n>$escaped</$n>",
    "<$n>\n$escaped\n</$n>",
    "<$n><![CDATA[$text]]></$n>",
    "<$n>\n<![CDATA[$text]]>\n</$n>",
    "<tool_call><$n>$escaped</$n></tool_call>",
    "<tool_call>\n<$n>\n<![CDATA[$text]]>\n</$n>\n</tool_call>",
)
LINES: Final = (
    "<$n>\n$k1: $v1\n$k2: $v2\n</$n>",
    "<$n>\n  $k1: $v1\n  $k2: $v2\n</$n>",
    '<$n>\n$k1: "$v1"\n$k2: $v2\n</$n>',
    "<$n>\n$k1: |\n  $v1\n$k2: $v2\n</$n>",
    "<$n>\n$k1: >-\n  $v1\n$k2: $v2\n</$n>",
    "<tool_call>\n<$n>\n$k1: $v1\n$k2: $v2\n</$n>\n</tool_call>",
    "<tool_call>\n$n\n$k1: $v1\n$k2: $v2\n</tool_call>",
)
QWEN: Final = (
    "<tool_call>\n<function=$n>\n<parameter>$k1</parameter> $v1\n<parameter>$k2</parameter> $v2\n"
    "</function>\n</tool_call>",
    "<tool_call>\n<function=$n>\n<parameter>$k1</parameter>\n$v1\n<parameter>$k2</parameter>\n$v2\n"
    "</function>\n</tool_call>",
    "<tool_call>\n<function>$n</function>\n<parameter=$k1>$v1</parameter>\n"
    "<parameter=$k2>$v2</parameter>\n</tool_call>",
    "<tool_call>\n<function>$n</function>\n<parameter>$k1</parameter> $v1\n"
    "<parameter>$k2</parameter> $v2\n</tool_call>",
    "<tool_call>\n<name>$n</name>\n<parameter=$k1>$v1</parameter>\n<parameter=$k2>$v2</parameter>\n"
    "</tool_call>",
    "<tool_call>\n<function>\n<name>$n</name>\n<parameter=$k1>$v1</parameter>\n"
    "<parameter=$k2>$v2</parameter>\n</function>\n</tool_call>",
    "<tool_call>\n<function=$n>\n<$k1>$v1</$k1>\n<$k2>$v2</$k2>\n</function>\n</tool_call>",
)
NAME_ON_A_LINE: Final = (
    "$n\n<$k1>$v1</$k1>\n<$k2>$v2</$k2>",
    "$n\n<parameter=$k1>$v1</parameter>\n<parameter=$k2>$v2</parameter>",
    "$n\n<parameter=$k1>\n$v1\n</parameter>\n<parameter=$k2>\n$v2\n</parameter>\n</function>",
    "<tool_call>\n$n\n<$k1>$v1</$k1>\n<$k2>$v2</$k2>\n</tool_call>",
    "<tool_call>\n$n\n<parameter=$k1>$v1</parameter>\n<parameter=$k2>$v2</parameter>\n</tool_call>",
    '$n\n<parameter name="$k1">$v1</parameter>\n<parameter name="$k2">$v2</parameter>',
    "$n\n<parameters>\n<$k1>$v1</$k1>\n<$k2>$v2</$k2>\n</parameters>",
)
_QWEN_CALL: Final = (
    "<function=$n>\n<parameter=$k1>\n$v1\n</parameter>\n<parameter=$k2>\n$v2\n</parameter>\n"
)
STRAY: Final = (
    f"{_QWEN_CALL}</function></parameter>",
    f"{_QWEN_CALL}</function>\n</parameter>\n</function>",
    f"<tool_call>\n{_QWEN_CALL}</function>\n</function>\n</tool_call>",
    f"<tool_call>\n{_QWEN_CALL}</parameter>\n</function>\n</tool_call>",
    f"<tool_call>\n{_QWEN_CALL}</function>\n</tool_call>\n</tool_call>",
    f"<tool_call>\n{_QWEN_CALL}</function>\n</parameter>\n</tool_call>",
    f"<tool_call>\n{_QWEN_CALL}<parameter=$k2>\n</function>\n</tool_call>",
    "<function=$n><parameter=$k1>$v1</parameter><parameter=$k2>$v2</parameter></function>"
    "</parameter>",
)
ARROWS: Final = (
    '[TOOL_CALL] {tool => "$n", args => { --$k1 "$v1" --$k2 $w2 }} [/TOOL_CALL]',
    '[TOOL_CALL]\n{tool => "$n", args => {\n  --$k1 "$v1"\n  --$k2 $w2\n}}\n[/TOOL_CALL]',
    '[TOOL_CALL]\n{tool => "$n", args => { --$k1 "$v1", --$k2 $w2 }}\n[/TOOL_CALL]',
    "[TOOL_CALL]\n{tool => '$n', args => {\n  --$k1 \"$v1\"\n  --$k2 $w2\n}}\n[/TOOL_CALL]",
    '[TOOL_CALL]\n{tool => "$n", args => {"$k1": "$v1", "$k2": $w2}}\n[/TOOL_CALL]',
    '[TOOL_CALL]\n{tool => "$n", args => {"$k1" => "$v1", "$k2" => $w2}}\n[/TOOL_CALL]',
)
IFM: Final = (
    '<ifm|tool_calls><ifm|tool_call>{"name": "$n", "arguments": $json}</ifm|tool_call>'
    "</ifm|tool_calls>",
    '<ifm|tool_calls>\n<ifm|tool_call>\n{"name": "$n", "arguments": $json}\n</ifm|tool_call>\n'
    "</ifm|tool_calls>",
    '<ifm|tool_call>{"name": "$n", "arguments": $json}</ifm|tool_call>',
    "<ifm|tool_call>$n\n<ifm|arg_key>$k1</ifm|arg_key>\n<ifm|arg_value>$v1</ifm|arg_value>\n"
    "<ifm|arg_key>$k2</ifm|arg_key>\n<ifm|arg_value>$v2</ifm|arg_value>\n</ifm|tool_call>",
    "<ifm|tool_calls>\n<ifm|tool_call>$n<ifm|arg_key>$k1</ifm|arg_key><ifm|arg_value>$v1"
    "</ifm|arg_value><ifm|arg_key>$k2</ifm|arg_key><ifm|arg_value>$v2</ifm|arg_value>"
    "</ifm|tool_call>\n</ifm|tool_calls>",
    '<ifm|tool_calls>\n[{"name": "$n", "arguments": $json}]\n</ifm|tool_calls>',
)
GCML: Final = (
    '<｜GCML｜function_calls>\n<｜GCML｜invoke name="$n">\n<｜GCML｜parameter name="$k1">$v1'
    '</｜GCML｜parameter>\n<｜GCML｜parameter name="$k2">$v2</｜GCML｜parameter>\n</｜GCML｜invoke>\n'
    "</｜GCML｜function_calls>",
    '<｜GCML｜tool_calls><｜GCML｜invoke name="$n"><｜GCML｜parameter name="$k1" string="true">$v1'
    '</｜GCML｜parameter><｜GCML｜parameter name="$k2">$v2</｜GCML｜parameter></｜GCML｜invoke>'
    "</｜GCML｜tool_calls>",
    '<｜GCML｜invoke name="$n">\n<｜GCML｜parameter name="$k1">$v1</｜GCML｜parameter>\n'
    '<｜GCML｜parameter name="$k2">$v2</｜GCML｜parameter>\n</｜GCML｜invoke>',
    '<|GCML|function_calls>\n<|GCML|invoke name="$n">\n<|GCML|parameter name="$k1">$v1'
    '</|GCML|parameter>\n<|GCML|parameter name="$k2">$v2</|GCML|parameter>\n</|GCML|invoke>\n'
    "</|GCML|function_calls>",
    '<｜GCML｜tool_call>{"name": "$n", "arguments": $json}</｜GCML｜tool_call>',
)
BEHIND_WORDS: Final = (
    "Let me check that for you. <function=$n><parameter=$k1>$v1</parameter>"
    "<parameter=$k2>$v2</parameter></function>",
    "Sure <function=$n>\n<parameter=$k1>\n$v1\n</parameter>\n<parameter=$k2>\n$v2\n</parameter>\n"
    "</function> Done.",
    'Here is the result: {"name": "$n", "arguments": $json}',
    'I need one more thing. {"name": "$n", "arguments": $json}',
    'Das mache ich gern: {"name": "$n", "arguments": $json}',
    'Bien sûr.\n\n{"name": "$n", "arguments": $json}',
    'Result:\n[{"name": "$n", "arguments": $json}]',
    'Voilà : {"name": "$n", "arguments": $json}\nVoilà.',
)


class _Class(NamedTuple):
    templates: tuple[str, ...]
    values: tuple[tuple[str, dict[str, Any]], ...] = _PAIRS
    is_marked: bool = False
    """Whether its own markers make it a call wherever a sentence puts it."""


CLASSES: Final[dict[str, _Class]] = {
    "one text in a tool's tag": _Class(ONE_TEXT, tuple((n, {k: v}) for n, k, v in _TEXTS)),
    "lines in a tool's tag": _Class(LINES),
    "Qwen's variants": _Class(QWEN, is_marked=True),
    "a name on its own line": _Class(NAME_ON_A_LINE),
    "strays behind a call": _Class(STRAY, is_marked=True),
    "arrows": _Class(ARROWS, is_marked=True),
    "ifm": _Class(IFM, is_marked=True),
    "GCML": _Class(GCML, is_marked=True),
    "behind words": _Class(BEHIND_WORDS),
}
_LEADS: Final = ("", "Let me look.\n\n", "Ich sehe nach.\n")
_QUOTING: Final = (
    "The form is `$call` there.",
    'It wrote: "$call"',
    "> $call",
    "<example>\n$call\n</example>",
    "<!-- $call -->",
    "User: do it\n\nUser: $call\nAssistant: I cannot do that.",
    "```xml\n$call\n```\nThat is the whole format.",
    "«$call» is what it printed.",
)
_SPEAKING: Final = (
    "You may write $call if you like.",
    "Does $call work?",
    "<p>\n$call\n</p>\n<p>More text.</p>",
    "| form | meaning |\n|---|---|\n| $call | does it |",
    "- $call is the first form\n- and there is another",
    "With $call the tool would run, but nothing is called here.",
)


class Unusual(NamedTuple):
    """A text, and the calls that it makes."""

    kind: str
    text: str
    calls: list[tuple[str, dict[str, Any]]]


def called(kind: str) -> Iterator[Unusual]:
    """Yield the texts of a class that make a call."""
    for number, (text, call) in enumerate(_written(kind)):
        lead = "" if kind == "behind words" else _LEADS[number % len(_LEADS)]
        yield Unusual(kind, lead + text, [call])


def spoken_of(kind: str) -> Iterator[Unusual]:
    """Yield texts that only quote a call of a class, or speak of it."""
    wrappers = _QUOTING if CLASSES[kind].is_marked else (*_QUOTING, *_SPEAKING)
    for number, (text, _) in enumerate(_written(kind)):
        for offset in (0, 3):
            wrapper = wrappers[(number + offset) % len(wrappers)]
            yield Unusual(kind, wrapper.replace("$call", text), [])


def _written(kind: str) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    templates, values, _ = CLASSES[kind]
    for template in templates:
        for name, arguments in values:
            yield Template(template).substitute(_parts(name, arguments)), (name, arguments)


def _parts(name: str, arguments: dict[str, Any]) -> dict[str, str]:
    (first, value), *rest = arguments.items()
    parts = {"n": name, "k1": first, "v1": str(value), "json": json.dumps(arguments)}
    parts |= {"text": str(value), "escaped": html.escape(str(value), quote=False)}
    for key, second in rest:
        parts |= {"k2": key, "v2": str(second), "w2": json.dumps(second)}
    return parts
