"""Shapes in which arguments arrive, with the one outcome each must have.

Nothing is known here of why the text ended: what stops too soon is cut.
"""

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["ARGUMENT_SHAPES", "ArgumentShape"]

PARSE = "ARGUMENTS_JSON_PARSE_ERROR"
CUT = "ARGUMENTS_TRUNCATED"
DEEP = "ARGUMENTS_TOO_DEEP"
LARGE = "ARGUMENTS_TOO_LARGE"

BLANK = ("blank_to_empty_object",)
FENCE = ("strip_code_fence",)
PROSE = ("strip_prose",)
WORD = ("replace_literal",)
CONTROL = ("escape_control_characters",)
NESTED = ("decode_nested_text",)
INVISIBLE = ("strip_invisible",)


@dataclass(frozen=True)
class ArgumentShape:
    """One shape: what arrives, and what must come of it."""

    id: str
    raw: Any
    value: dict[str, Any] | None = None
    """The arguments that must be read; `None` when they must be refused."""
    code: str = ""
    """The code of the refusal."""
    rules: tuple[str, ...] = ()
    """The rules of the receipts, in order."""

    @property
    def state(self) -> str:
        """The state the call must have."""
        if self.value is not None:
            return "whole"
        return "cut" if self.code == CUT else "unreadable"


def _shape(
    name: str, raw: Any, outcome: dict[str, Any] | str, rules: tuple[str, ...] = ()
) -> ArgumentShape:
    if isinstance(outcome, str):
        return ArgumentShape(name, raw, code=outcome)
    return ArgumentShape(name, raw, value=outcome, rules=rules)


def _nest(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def _encoded(text: str, times: int) -> str:
    for _ in range(times):
        text = json.dumps(text)
    return text


ARGUMENT_SHAPES = (
    # nothing
    _shape("null", None, {}),
    _shape("empty text", "", {}, BLANK),
    _shape("spaces", "   ", {}, BLANK),
    _shape("line breaks and tabs", "\r\n\t ", {}, BLANK),
    _shape("wide spaces", "\u00a0\u3000", {}, BLANK),
    _shape("byte order mark alone", "\ufeff", {}, BLANK),
    # objects
    _shape("object", {"a": 1}, {"a": 1}),
    _shape("empty object", {}, {}),
    _shape("object with nested values", {"a": {"b": [1, None]}}, {"a": {"b": [1, None]}}),
    _shape("object of exactly the limit", {"a": "x" * 199_992}, {"a": "x" * 199_992}),
    _shape("object one byte over the limit", {"a": "x" * 199_993}, LARGE),
    _shape("object with a number that is not finite", {"a": float("nan")}, PARSE),
    _shape("object with half a surrogate pair", {"a": "\ud800"}, PARSE),
    # other values
    _shape("array", [], PARSE),
    _shape("array of objects", [{"a": 1}], PARSE),
    _shape("array over the limit", ["x" * 200_000], LARGE),
    _shape("integer", 7, PARSE),
    _shape("float", 1.5, PARSE),
    _shape("true", True, PARSE),
    _shape("false", False, PARSE),
    # text of an object
    _shape("text of an object", '{"a": 1}', {"a": 1}),
    _shape("text of an empty object", "{}", {}),
    _shape("text with space around", ' \n{"a": 1}\n ', {"a": 1}),
    _shape("text over several lines", '{\n  "a": [1,\n 2]\n}', {"a": [1, 2]}),
    _shape("text with escapes", '{"a": "\\u00e9\\n\\"\\ud83d\\ude00"}', {"a": 'é\n"😀'}),
    _shape("text with plain unicode", '{"ключ": "值😀"}', {"ключ": "值😀"}),
    _shape("text with wide space around", '\u00a0{"a": 1}', {"a": 1}, INVISIBLE),
    _shape("text after a byte order mark", '\ufeff{"a": 1}', {"a": 1}, INVISIBLE),
    _shape("text with a key repeated alike", '{"a": 1, "a": 1}', {"a": 1}),
    _shape(
        "text with a long integer", '{"a": 12345678901234567890123}', {"a": 12345678901234567890123}
    ),
    _shape("text of exactly the limit", '{"a":"' + "x" * 199_992 + '"}', {"a": "x" * 199_992}),
    _shape("text 128 deep", '{"a":' * 127 + "{}" + "}" * 127, _nest(127)),
    # text of something else
    _shape("text null", "null", PARSE),
    _shape("text of an array", "[]", PARSE),
    _shape("text of an array of objects", '[{"a": 1}]', PARSE),
    _shape("text of a number", "42", PARSE),
    _shape("text of a boolean", "true", PARSE),
    _shape("a word", "hello", PARSE),
    _shape("a JSON string", '"hello"', PARSE),
    _shape("an empty JSON string", '""', PARSE),
    # text too large or too deep
    _shape("text one byte over the limit", '{"a":"' + "x" * 199_993 + '"}', LARGE),
    _shape("text over the limit only in bytes", '{"a":"' + "é" * 100_000 + '"}', LARGE),
    _shape("huge text that is not JSON", "x" * 3_000_000, LARGE),
    _shape("text 129 deep", '{"a":' * 128 + "{}" + "}" * 128, DEEP),
    _shape("thousands of open brackets", "[" * 100_000, DEEP),
    _shape("thousands of open objects", '{"a":' * 30_000, DEEP),
    _shape("thousands of nested arrays, closed", "[" * 90_000 + "]" * 90_000, DEEP),
    # code fences
    _shape("fence", '```\n{"a": 1}\n```', {"a": 1}, FENCE),
    _shape("fence with language", '```json\n{"a": 1}\n```', {"a": 1}, FENCE),
    _shape("fence with language in capitals", '```JSON\n{"a": 1}\n```', {"a": 1}, FENCE),
    _shape("fence on one line", '```json {"a": 1}```', {"a": 1}, FENCE),
    _shape("fence with space around", '\n ```json\r\n{"a": 1}\r\n``` \n', {"a": 1}, FENCE),
    _shape("fence inside a value", '{"a": "```json\\n{}\\n```"}', {"a": "```json\n{}\n```"}),
    _shape("fence of another language", '```python\n{"a": 1}\n```', {"a": 1}, FENCE),
    _shape("fence never closed", '```json\n{"a": 1}', {"a": 1}, FENCE),
    _shape("fence never closed, around a cut object", '```json\n{"a": 1', CUT),
    _shape("empty fence", "```json\n```", PARSE),
    _shape("two fences", '```json\n{"a": 1}\n```\n```json\n{"b": 2}\n```', PARSE),
    _shape("prose before a fence", 'Here:\n```json\n{"a": 1}\n```', {"a": 1}, FENCE + PROSE),
    _shape("array in a fence", "```json\n[1]\n```", PARSE),
    # text inside text
    _shape("encoded twice", '"{\\"a\\": 1}"', {"a": 1}, NESTED),
    _shape("encoded three times", '"\\"{\\\\\\"a\\\\\\": 1}\\""', {"a": 1}, NESTED * 2),
    _shape("encoded four times", _encoded('{"a": 1}', 3), PARSE),
    _shape(
        "encoded twice with a fence inside",
        '"```json\\n{\\"a\\": 1}\\n```"',
        {"a": 1},
        NESTED + FENCE,
    ),
    _shape("encoded twice inside a fence", '```\n"{\\"a\\": 1}"\n```', {"a": 1}, FENCE + NESTED),
    _shape("array encoded twice", '"[1]"', PARSE),
    _shape("null encoded twice", '"null"', PARSE),
    _shape("cut inside the inner text", '"{\\"a\\": 1"', CUT),
    # text that ended too soon
    _shape("cut after the opening brace", "{", CUT),
    _shape("cut inside a key", '{"am', CUT),
    _shape("cut after a key", '{"a"', CUT),
    _shape("cut after a colon", '{"a":', CUT),
    _shape("cut inside a string", '{"a": "some te', CUT),
    _shape("cut after a backslash", '{"a": "some\\', CUT),
    _shape("cut inside an escape", '{"a": "\\u00', CUT),
    _shape("cut after a number", '{"a": 10', CUT),
    _shape("cut inside a number", '{"a": 1.', CUT),
    _shape("cut inside a word", '{"a": tru', CUT),
    _shape("cut after a comma", '{"a": 1,', CUT),
    _shape("cut inside an array", '{"a": [1, 2', CUT),
    _shape("cut before the last brace", '{"a": {"b": 1}', CUT),
    _shape("cut after a slip", "{'a': 1, 'b", CUT),
    _shape("cut after prose", 'Sure: {"a": 1', CUT),
    # text that is nearly JSON
    _shape("single quotes", "{'a': 1}", {"a": 1}, ("replace_quotes",)),
    _shape("trailing comma", '{"a": 1,}', {"a": 1}, ("drop_trailing_comma",)),
    _shape("key without quotes", "{a: 1}", {"a": 1}, ("quote_key",)),
    _shape("python words", '{"a": True, "b": None}', {"a": True, "b": None}, WORD * 2),
    _shape("comment", '{"a": 1 /* one */}', {"a": 1}, ("drop_comment",)),
    _shape("prose before", 'Sure: {"a": 1}', {"a": 1}, PROSE),
    _shape("prose after", '{"a": 1} and that is all', {"a": 1}, PROSE),
    _shape("raw line break in a string", '{"a": "x\ny"}', {"a": "x\ny"}, CONTROL),
    _shape("raw NUL in a string", '{"a": "x\x00y"}', {"a": "x\x00y"}, CONTROL),
    _shape(
        "quote not escaped",
        '{"a": "say "hi" now"}',
        {"a": 'say "hi" now'},
        ("escape_inner_quotes",),
    ),
    _shape("unknown escape", '{"a": "\\x41"}', {"a": "A"}, ("fix_escapes",)),
    _shape("extra closing brace", '{"a": 1}}', {"a": 1}, ("drop_stray_closer",)),
    # text that is not JSON, or could mean two things
    _shape("the same object twice", '{"a": 1}{"a": 1}', {"a": 1}, ("extra_values",)),
    _shape("two objects", '{"a": 1}{"b": 2}', PARSE),
    _shape("two objects on two lines", '{"a": 1}\n{"b": 2}', PARSE),
    _shape("array with single quotes", "['a']", PARSE),
    _shape("a key repeated with another value", '{"a": 1, "a": 2}', PARSE),
    _shape("an inner key repeated with another value", '{"o": {"a": 1, "a": 2}}', PARSE),
    _shape("NaN", '{"a": NaN}', PARSE),
    _shape("infinity", '{"a": -Infinity}', PARSE),
    _shape("a number too big for a float", '{"a": 1e400}', PARSE),
    _shape("an integer of 5,000 digits", '{"a": ' + "9" * 5_000 + "}", PARSE),
    _shape("half of a surrogate pair", '{"a": "\\ud800"}', PARSE),
)
