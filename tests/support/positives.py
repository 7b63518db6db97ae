"""Texts that make calls outside any family's markup, in the shapes that models write them.

`$py`, `$pos`, `$json` and `$keyed` are the call in the notations of `support.negatives`; `$name`,
`$args` and `$kwargs` its parts; a `2` behind any of them makes it that of the second call.
"""

import json
from collections.abc import Iterator
from string import Template
from typing import Any, NamedTuple

from .negatives import CALLS, NOTATIONS

__all__ = ["BROKEN_SHAPES", "SHAPES", "Positive", "positives"]

SHAPES: dict[str, str] = {
    "strings in a list": '["$pos_d"]',
    "two strings in a list": "['$py', '$py2']",
    "escaped underscores": "[$py_escaped]",
    "escaped underscores, text": "Sure.\n\n$py_escaped",
    "text before a call": "Sure! Let me look that up.\n\n$py",
    "text behind a call": "$py\n\nI hope that this helps.",
    "one word behind": "$py\nDone",
    "one word behind JSON": "$json\nDone",
    "a list and a word": "[$py, $py2]\n\nDone.",
    "a list and commentary": "[$py]\n\nThis line calls the function with the given values.",
    "commentary before a list": "Here is the function call:\n\n[$py]",
    "commentary before JSON": "I will call the function now:\n$json",
    "doubled braces": "{$json}",
    "doubled braces on lines": '{{\n  "name": "$name",\n  "arguments": {$args}\n}}',
    "inline code": "`$json`",
    "inline code behind words": "I will use `$py`.",
    "inline JSON behind words": "Calling `$json`",
    "attributes": "<tool_call function=\"$name\" arguments='$args'/>",
    "attributes without quotes": '<tool_call function="$name" arguments=$args/>',
    "fenced JSON, text around": "Let me check.\n\n```json\n$json\n```\n\nOne moment.",
    "fenced Python, text around": "I'll do that:\n\n```python\n$py\n```\nOne moment please.",
    "fenced, no language": "Okay.\n```\n$py\n```",
    "keyed": "Now:\n$keyed",
    "keyed in a list": "[$keyed]",
    "keyed, two in a list": "[$keyed, $keyed2]",
    "keyed in a fence": "Sure:\n```json\n$keyed\n```",
    "keyed in stray brackets": "[[$keyed]]\n",
    "positional": "$pos",
    "positional behind text": "Okay, here is the call:\n$pos",
    "a dict as argument": "$name($args)",
    "a dict as argument, text": "Let me do that.\n$name($args)",
    "an assignment": "result = $py",
    "two assignments": "a = $py\nb = $py2",
    "an assignment in a fence": "Let me see.\n```python\nresult = $py\n```",
    "printed": "print($py)",
    "indexing": "$py[0]",
    "indexing by key": "result = $py['rows']",
    "concatenation": "$py + $py2",
    "tokens of another family": "<|im_start|>assistant\n$json<|im_end|>",
    "tokens around Python": "<|start_header_id|>assistant<|end_header_id|>\n\n[$py]<|eot_id|>",
    "semicolons": "$py; $py2",
    "commas": "$py, $py2",
    "commas between JSON": "$json, $json2",
    "JSON on lines": "Calling both:\n$json\n$json2",
    "two in a wrapper": "<tool_call>\n$json\n$json2\n</tool_call>",
    "unclosed wrapper": "<tool_call>\n$json",
    "mismatched wrapper": "<tool_call>\n$json\n</function_call>",
    "made-up wrapper": "<my_action>\n$json\n</my_action>",
    "made-up wrapper on a line": "<wish>$json</wish>",
    "made-up wrappers of other kinds": "[wish]\n<|one|>$json<|/one|>\n[/wish]",
    "made-up wrapper, two in it": "<wish>$json\n$json2</wish>",
    "a name as tag": "<$name>\n$children\n</$name>",
    "a name as tag, JSON in it": "<$name>$args</$name>",
    "a name as tag, on a line with words": "Okay: <$name>$children</$name>",
    "undeclared arguments": "[$name($kwargs, verbose=True)]",
    "undeclared arguments in JSON": 'Now:\n{"name": "$name", "arguments": $args_more}',
    "numbered": "1. $py\n2. $py2",
    "items": "- $py\n- $py2",
    "bold": "**$py**",
    "labelled": "Function call: $py",
    "quoted as a whole": '"$pos"',
}
"""Shapes of whole calls."""

BROKEN_SHAPES: dict[str, str] = {
    "tool and input": "Tool: $name\nInput: $args",
    "tool and arguments": "Tool Name: $name\nArguments: $args",
    "action on a line": "Action: $name($kwargs)",
    "action and input": "Action: $name\nAction Input: $args",
    "bold labels": "**Tool:** $name\n**Input:** $args",
    "name and colon": "$name: $args",
    "name and colon behind text": "Sure.\n\n$name: $args",
    "YAML": "$name:\n$yaml",
    "YAML with labels": "name: $name\narguments:\n$yaml",
    "call with": "call $name with $args",
    "I call with": "I will call $name with $args",
    "JSON and commentary": "$json This is the call.",
    "single quotes": "Okay.\n{'name': '$name', 'arguments': $args_single}",
    "name and arguments as two objects": '{"name": "$name"}\n{"arguments": $args}',
    "name and arguments in a row": '{"name": "$name"} $args',
    "nested function": 'Now:\n{"function": {"name": "$name", "arguments": $args}}',
    "nested function and type": (
        '[{"type": "function", "function": {"name": "$name", "arguments": $args}}]'
    ),
    "arguments as text": 'Now:\n{"name": "$name", "arguments": $args_text}',
    "functions prefix": "functions.$name($args)",
    "functions prefix, keywords": "Okay.\nfunctions.$name($kwargs)",
    "name and braces": "$name$args",
    "name and a space and braces": "$name $args",
    "name and braces behind text": "Okay.\n$name$args",
    "list of name and arguments": '["$name", $args]',
    "list with a bare name": "[$name, $args]",
    "tuple": '("$name", $args)',
    "recipient": "to=functions.$name $args",
    "recipient in a sentence": "assistant to=functions.$name code $args",
    "tag": "<$name>$args</$name>",
    "function and arguments tags": "<function>$name</function><arguments>$args</arguments>",
    "function and arguments tags on lines": (
        "<function>$name</function>\n<arguments>\n$args\n</arguments>"
    ),
    "name and parameters tags": "<tool_name>$name</tool_name>\n<parameters>$args</parameters>",
    "tool_code": "```tool_code\n$py\n```",
    "tool_code printed": "```tool_code\nprint($py)\n```",
    "tool_code, default_api": "```tool_code\nprint(default_api.$py)\n```\nThat is it.",
    "tool_code without a fence": "tool_code\n$py",
    "tool_code tag": "<tool_code>\n$py\n</tool_code>",
    "missing last brace": '{"name": "$name", "arguments": $args',
    "missing bracket": "[$py",
    "missing parenthesis": "$name($kwargs",
    "wrong closer": '[{"name": "$name", "arguments": $args)]',
    "bracket for a brace": '{"name": "$name", "arguments": $args]',
    "extra brace": "$json}",
    "extra brace and text": "Okay.\n$json}\nDone",
    "trailing comma": 'Okay.\n{"name": "$name", "arguments": $args,}',
    "no quotes around keys": 'Okay.\n{name: "$name", arguments: $args}',
    "no comma": 'Okay.\n{"name": "$name" "arguments": $args}',
    "equals for colon": '{"name"="$name", "arguments"=$args}',
    "comment in JSON": 'Okay.\n{"name": "$name", // the tool\n"arguments": $args}',
    "parameters": 'Sure:\n{"tool": "$name", "parameters": $args}',
    "tool_input": 'Sure:\n{"tool_name": "$name", "tool_input": $args}',
    "action_input": 'Sure:\n{"action": "$name", "action_input": $args}',
    "flat": 'Sure:\n{"name": "$name", $args_inner}',
    "call as words": "function_call: $py",
    "gemma": "Now call:$name$args",
    "arrow": "→ $py",
    "XML wrapper": "<function_call>$py</function_call>",
    "invoke": '<invoke name="$name">$args</invoke>',
    "function attribute": '<function name="$name">$args</function>',
    "a fence in a wrapper": "<tool_call>\n```json\n$json\n```\n</tool_call>",
    "a quote that never closes": "[{'$py_d}]",
    "all quotes escaped": "$json_escaped",
    "all quotes escaped, Python": "$py_escaped_quotes",
    "a string of JSON": "$json_text",
    "text in a string of JSON": '["Okay.\\n\\n```python\\n$py_s\\n```"]',
    "escaped as HTML": "&lt;tool_call&gt;$json_html&lt;/tool_call&gt;",
    "full-width punctuation": '{"name"："$name"，"arguments"：$args}',
    "tag in brackets": "[TOOL_CALL] $json [/TOOL_CALL]",
    "token without brackets": "TOOL_CALLS [$json]",
    "half a tag": "tool_call>$json</tool_call>",
    "function in parentheses": "<function($name)>$args</function>",
    "function without its bracket": "function=$name>$args</function>",
    "headers of a turn": "<|end_header_id|><|start_header_id|>[$py]",
    "tool_use and input": '<tool_use name="$name"><input>$args</input></tool_use>',
    "name and arguments elements": (
        "<tool_call>\n<name>$name</name>\n<arguments>$args</arguments>\n</tool_call>"
    ),
    "parameters as elements": (
        "<tool_call>\n<tool_name>$name</tool_name>\n<parameters>\n$children\n</parameters>\n"
        "</tool_call>"
    ),
    "labels in a tag": "<tool_call>name: $name\narguments: $args</tool_call>",
    "name in quotes in a tag": '<tool_call>"$name", $args</tool_call>',
    "pairs without their tag": "$name\n$pairs\n</tool_call>",
    "parameters without the end of the call": "<function=$name>\n$parameters",
    "quote missing behind a key": '{"name: "$name", "arguments": $args}',
    "quote missing behind a name": '{"name": "$name, "arguments": $args}',
    "quotes inside quotes": '{"name": "$name", "arguments": "$args"}',
    "closers missing before a tag": (
        '<tool_call>{"name": "$name", "arguments": $args_open</tool_call>'
    ),
    "brace missing before a parenthesis": "$name($args_open)",
    "commas in a row": "$name($kwargs_commas)",
    "arguments in single quotes as text": '{"name": "$name", "arguments": "$args_single"}',
    "arguments as names and values": '{"name": "$name", "arguments": $args_list}',
    "list of a name and text": '["$name", $args_text]',
    "two calls in a string": '["$py_s, $py_s2"]',
    "command": '{"command": "$name", "arguments": $args}',
    "method": '{"method": "$name", "params": $args}',
    "default_api": "call:default_api:$name$args",
    "a thought before it": "Thought: need data\n$py",
    "a remark on its line": "I look. $py",
    "an announcement on its line": "Let me call the tool. $json",
    "a sentence that it is glued to": "I will call the function now.$name\n$args",
    "its speaker": "Assistant: $py",
    "help offered behind it": "$json\nWould you like to make another query?",
}
"""Shapes of damaged or made-up calls, as bug reports show them."""


class Positive(NamedTuple):
    """A text and the calls that it makes."""

    shape: str
    text: str
    calls: list[tuple[str, dict[str, Any]]]


def positives(shapes: dict[str, str]) -> Iterator[Positive]:
    """Yield each shape with several tools."""
    chosen = [call for call in CALLS if "_" in call[0] or call[0] == "search"]
    for shape, template in shapes.items():
        for number, first in enumerate(chosen):
            second = chosen[(number + 1) % len(chosen)]
            parts = {**_parts(first), **{f"{key}2": it for key, it in _parts(second).items()}}
            has_second = any(f"${key}2" in template for key in ("py", "py_s", "json", "keyed"))
            calls = [first, second] if has_second else [first]
            if "undeclared" in shape:
                calls = [(first[0], {**first[1], "verbose": True})]
            yield Positive(shape, Template(template).substitute(parts), calls)


def _parts(call: tuple[str, dict[str, Any]]) -> dict[str, str]:
    name, arguments = call
    args = json.dumps(arguments)
    python = NOTATIONS["py"](name, arguments)
    return {
        **{key: write(name, arguments) for key, write in NOTATIONS.items()},
        "name": name,
        "args": args,
        "kwargs": python[len(name) + 1 : -1],
        "pos_d": NOTATIONS["pos"](name, arguments),
        "py_escaped": python.replace("_", "\\_"),
        "args_more": json.dumps({**arguments, "verbose": True}),
        "args_text": json.dumps(args),
        "args_single": repr(arguments),
        "args_inner": args[1:-1],
        "children": "\n".join(f"<{key}>{value}</{key}>" for key, value in arguments.items()),
        "yaml": "\n".join(f"  {key}: {value}" for key, value in arguments.items()),
        "py_d": python.replace("'", '"'),
        "py_s": python.replace('"', "'"),
        "py_escaped_quotes": python.replace("'", '"').replace('"', '\\"'),
        "json_escaped": NOTATIONS["json"](name, arguments).replace('"', '\\"'),
        "json_text": json.dumps(NOTATIONS["json"](name, arguments)),
        "json_html": NOTATIONS["json"](name, arguments).replace('"', "&quot;"),
        "args_open": args[:-1],
        "args_list": json.dumps([{"name": key, "value": it} for key, it in arguments.items()]),
        "kwargs_commas": python[len(name) + 1 : -1].replace(", ", ",, ") + ",",
        "pairs": "\n".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>"
            for key, value in arguments.items()
        ),
        "parameters": "\n".join(
            f"<parameter={key}>\n{value}\n</parameter>" for key, value in arguments.items()
        ),
    }
