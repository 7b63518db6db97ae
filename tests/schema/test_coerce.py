"""Coercion: what a schema decides, what it leaves open, and the receipt of every change."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from surecall.base.records import Receipt
from surecall.schema import Coerced, SchemaChecker, coerce_arguments
from surecall.text import encode

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def of(schema: Any, **more: Any) -> dict[str, Any]:
    """Return a schema with one optional property `x`."""
    return {"type": "object", "properties": {"x": schema}, "additionalProperties": False, **more}


def shape(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    """Return a closed schema of several properties."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
STRING: dict[str, Any] = {"type": "string"}
STRINGS: dict[str, Any] = {"type": "array", "items": STRING}
INTEGERS: dict[str, Any] = {"type": "array", "items": INTEGER}
POINT = shape(("a",), a=INTEGER, b=STRING)
COLORS: dict[str, Any] = {"type": "string", "enum": ["red", "dark_blue", "lightGreen"]}
WEATHER = shape(("city",), city=STRING, days=INTEGER)
CIRCLE = shape(("kind", "radius"), kind={"const": "circle"}, radius=NUMBER)
SQUARE = shape(("kind", "side"), kind={"const": "square"}, side=NUMBER)
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "size": INTEGER,
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["size"],
            "additionalProperties": False,
        }
    },
}


def same(one: Any, other: Any) -> bool:
    """Compare as JSON, where 3 and 3.0 differ and true is not 1."""
    return encode(one) == encode(other)


@dataclass(frozen=True)
class Change:
    """Arguments that become others, and the rules that made them so, with places."""

    id: str
    schema: dict[str, Any]
    value: Any
    expected: Any
    rules: tuple[str, ...]
    tool_name: str = ""


@dataclass(frozen=True)
class Leaf:
    """A value of property `x` that becomes another by one rule."""

    id: str
    schema: Any
    value: Any
    expected: Any
    rule: str


LEAVES = [
    Leaf("integer text", INTEGER, "3", 3, "parse_number_text"),
    Leaf("integral decimal text", INTEGER, "3.0", 3, "parse_number_text"),
    Leaf("space around", INTEGER, " 42 ", 42, "parse_number_text"),
    Leaf("negative", INTEGER, "-7", -7, "parse_number_text"),
    Leaf("integral exponent", INTEGER, "1e3", 1000, "parse_number_text"),
    Leaf("no rounding", INTEGER, "9007199254740993.0", 9007199254740993, "parse_number_text"),
    Leaf("many digits", INTEGER, "1" + "0" * 40, 10**40, "parse_number_text"),
    Leaf("number text", NUMBER, "2.5", 2.5, "parse_number_text"),
    Leaf("whole number text", NUMBER, "2", 2, "parse_number_text"),
    Leaf("exponent", NUMBER, "1e3", 1000.0, "parse_number_text"),
    Leaf("out of bounds still a number", {**INTEGER, "minimum": 9}, "3", 3, "parse_number_text"),
    Leaf("integer or null", {"type": ["integer", "null"]}, "3", 3, "parse_number_text"),
    Leaf("integer and number", {"type": ["integer", "number"]}, "3", 3, "parse_number_text"),
    Leaf("either number", {"anyOf": [INTEGER, NUMBER]}, "3.0", 3, "parse_number_text"),
    Leaf("true", BOOLEAN, "true", True, "parse_boolean_text"),
    Leaf("False", BOOLEAN, "False", False, "parse_boolean_text"),
    Leaf("TRUE with space", BOOLEAN, " TRUE ", True, "parse_boolean_text"),
    Leaf("yes", BOOLEAN, "yes", True, "parse_boolean_text"),
    Leaf("off", BOOLEAN, "Off", False, "parse_boolean_text"),
    Leaf("text one", BOOLEAN, "1", True, "parse_boolean_text"),
    Leaf("text zero", BOOLEAN, "0", False, "parse_boolean_text"),
    Leaf("yes or null", {"type": ["boolean", "null"]}, "yes", True, "parse_boolean_text"),
    Leaf("one of two", {"type": ["boolean", "integer"]}, "1", 1, "parse_number_text"),
    Leaf("word of two", {"type": ["boolean", "integer"]}, "true", True, "parse_boolean_text"),
    Leaf("number to text", STRING, 5, "5", "write_as_text"),
    Leaf("fraction to text", STRING, 2.5, "2.5", "write_as_text"),
    Leaf("boolean to text", STRING, True, "true", "write_as_text"),
    Leaf("nullable text", {"anyOf": [STRING, {"type": "null"}]}, 5, "5", "write_as_text"),
    Leaf("number among texts", {"enum": ["1", "2"]}, 2, "2", "write_as_text"),
    Leaf("one for an array", STRINGS, "a", ["a"], "wrap_in_array"),
    Leaf("comma at the end", STRINGS, "Dear all,", ["Dear all,"], "wrap_in_array"),
    Leaf("object for an array", {"type": "array", "items": POINT}, {"a": 1}, [{"a": 1}],
         "wrap_in_array"),
    Leaf("array of anything", {"type": "array"}, 4, [4], "wrap_in_array"),
    Leaf("array or null", {"anyOf": [STRINGS, {"type": "null"}]}, "a", ["a"], "wrap_in_array"),
    Leaf("object text that items take", STRINGS, '{"a":1}', ['{"a":1}'], "wrap_in_array"),
    Leaf("object text", POINT, '{"a":1}', {"a": 1}, "decode_json_text"),
    Leaf("array text", INTEGERS, "[1, 2]", [1, 2], "decode_json_text"),
    Leaf("array text of texts", STRINGS, '["a"]', ["a"], "decode_json_text"),
    Leaf("text or object", {"anyOf": [{**STRING, "maxLength": 3}, POINT]}, '{"a":1}', {"a": 1},
         "decode_json_text"),
    Leaf("enum case", COLORS, "RED", "red", "match_enum"),
    Leaf("enum space", COLORS, " red\n", "red", "match_enum"),
    Leaf("enum kebab", COLORS, "dark-blue", "dark_blue", "match_enum"),
    Leaf("enum camel", COLORS, "darkBlue", "dark_blue", "match_enum"),
    Leaf("enum words", COLORS, "Light Green", "lightGreen", "match_enum"),
    Leaf("enum in quotes", COLORS, '"Red"', "red", "match_enum"),
    Leaf("const", {"const": "fast"}, "Fast", "fast", "match_enum"),
    Leaf("number in an enum", {"enum": [1, 2, 3]}, "2", 2, "parse_number_text"),
    Leaf("typed enum", {**INTEGER, "enum": [10, 20]}, "20", 20, "parse_number_text"),
    Leaf("boolean in an enum", {"enum": [True, "auto"]}, "True", True, "parse_boolean_text"),
    Leaf("null in an enum", {"enum": ["a", None]}, "null", None, "parse_null_text"),
    Leaf("null text", {"type": ["integer", "null"]}, "null", None, "parse_null_text"),
    Leaf("None text", {"anyOf": [INTEGER, {"type": "null"}]}, "None", None, "parse_null_text"),
    Leaf("date with slashes", {**STRING, "format": "date"}, "2026/11/15", "2026-11-15",
         "spell_date"),
    Leaf("date unpadded", {**STRING, "format": "date"}, "2026-1-5", "2026-01-05", "spell_date"),
    Leaf("date compact", {**STRING, "format": "date"}, "20261115", "2026-11-15", "spell_date"),
    Leaf("date with space", {**STRING, "format": "date"}, " 2026-11-15", "2026-11-15",
         "spell_date"),
    Leaf("time without seconds", {**STRING, "format": "time"}, "10:00", "10:00:00", "spell_time"),
    Leaf("time with offset", {**STRING, "format": "time"}, "10:00 +0200", "10:00:00+02:00",
         "spell_time"),
    Leaf("date and time", {**STRING, "format": "date-time"}, "2026/11/15 10:00:00",
         "2026-11-15T10:00:00", "spell_date_time"),
    Leaf("date and minutes", {**STRING, "format": "date-time"}, "2026-11-15T10:00Z",
         "2026-11-15T10:00:00Z", "spell_date_time"),
    Leaf("offset after space", {**STRING, "format": "date-time"}, "2026-11-15 10:00:00 +02:00",
         "2026-11-15T10:00:00+02:00", "spell_date_time"),
]  # fmt: skip


@pytest.mark.parametrize("case", LEAVES, ids=lambda case: case.id)
def test_a_value_becomes_what_it_clearly_stands_for(case: Leaf) -> None:
    """One rule, one receipt at the place of the value, with the value before and after."""
    result = coerce_arguments({"x": case.value}, of(case.schema))
    assert same(result.value, {"x": case.expected})
    assert result.receipts == (Receipt(case.rule, "/x", case.value, case.expected),)
    assert same(result.receipts[0].after, case.expected)
    assert bool(result.errors) == (case.id == "out of bounds still a number")


CHANGES = [
    Change("integral float in draft 4", of(INTEGER, **{"$schema": DRAFT_4}), {"x": 3.0}, {"x": 3},
           ("drop_zero_fraction /x",)),
    Change("wrapped and parsed", of(INTEGERS), {"x": "3"}, {"x": [3]},
           ("wrap_in_array /x", "parse_number_text /x/0")),
    Change("object text wrapped", of({"type": "array", "items": POINT}), {"x": '{"a":"1"}'},
           {"x": [{"a": 1}]},
           ("decode_json_text /x", "wrap_in_array /x", "parse_number_text /x/0/a")),
    Change("items of text", of(INTEGERS), {"x": '["1", 2]'}, {"x": [1, 2]},
           ("decode_json_text /x", "parse_number_text /x/0")),
    Change("python list text", of(STRINGS), {"x": "['a']"}, {"x": ["a"]},
           ("decode_json_text /x", "replace_quotes /x@1:4")),
    Change("repaired and parsed", of(POINT), {"x": "{'a': '1'}"}, {"x": {"a": 1}},
           ("decode_json_text /x", "replace_quotes /x@1:4", "replace_quotes /x@6:9",
            "parse_number_text /x/a")),
    Change("fenced", of(INTEGERS), {"x": "```json\n[1]\n```"}, {"x": [1]},
           ("decode_json_text /x", "strip_code_fence /x@0:15")),
    Change("wrapped python text", WEATHER, {"args": "{'city': 'Oslo'}"}, {"city": "Oslo"},
           ("unwrap_arguments ", "decode_json_text ", "replace_quotes @1:7",
            "replace_quotes @9:15")),
    Change("encoded twice", of(INTEGERS), {"x": '"[1,2]"'}, {"x": [1, 2]},
           ("decode_json_text /x", "decode_nested_text /x@0:7")),
    Change("fixed items", of({"type": "array", "prefixItems": [INTEGER, BOOLEAN]}),
           {"x": ["1", "true"]}, {"x": [1, True]},
           ("parse_number_text /x/0", "parse_boolean_text /x/1")),
    Change("null left out", WEATHER, {"city": "Oslo", "days": None}, {"city": "Oslo"},
           ("drop_null /days",)),
    Change("null text left out", WEATHER, {"city": "Oslo", "days": "None"}, {"city": "Oslo"},
           ("drop_null /days",)),
    Change("null for an optional text", of(STRING), {"x": None}, {}, ("drop_null /x",)),
    Change("null text for an optional array", of(STRINGS), {"x": "null"}, {}, ("drop_null /x",)),
    Change("camel case key", shape(("due_days",), due_days=INTEGER), {"dueDays": 3},
           {"due_days": 3}, ("rename_key /dueDays",)),
    Change("kebab key", shape(due_days=INTEGER), {"due-days": 3}, {"due_days": 3},
           ("rename_key /due-days",)),
    Change("key of words", shape(dueDays=INTEGER), {"Due Days": 3}, {"dueDays": 3},
           ("rename_key /Due Days",)),
    Change("quoted key", shape(city=STRING), {'"city"': "Oslo"}, {"city": "Oslo"},
           ('rename_key /"city"',)),
    Change("key order is kept", WEATHER, {"Days": 1, "city": "Oslo"}, {"days": 1, "city": "Oslo"},
           ("rename_key /Days",)),
    Change("renamed and parsed", WEATHER, {"City": "Oslo", "DAYS": "2"},
           {"city": "Oslo", "days": 2},
           ("rename_key /City", "rename_key /DAYS", "parse_number_text /days")),
    Change("open object lacks a required key",
           {"type": "object", "properties": {"user_id": INTEGER}, "required": ["user_id"]},
           {"userId": 1, "more": 2}, {"user_id": 1, "more": 2}, ("rename_key /userId",)),
    Change("nested key", of(POINT), {"x": {"A": "1"}}, {"x": {"a": 1}},
           ("rename_key /x/A", "parse_number_text /x/a")),
    Change("wrapped in arguments", WEATHER, {"arguments": {"city": "Oslo"}}, {"city": "Oslo"},
           ("unwrap_arguments ",)),
    Change("wrapped thrice", WEATHER, {"input": {"args": {"params": {"city": "Oslo"}}}},
           {"city": "Oslo"}, ("unwrap_arguments ",) * 3),
    Change("wrapped in the tool's name", WEATHER, {"weather": {"city": "Oslo"}}, {"city": "Oslo"},
           ("unwrap_arguments ",), "weather"),
    Change("a whole call", WEATHER, {"name": "weather", "arguments": {"city": "Oslo"}},
           {"city": "Oslo"}, ("unwrap_arguments ",), "weather"),
    Change("a whole call in a function", WEATHER,
           {"type": "function", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}},
           {"city": "Oslo"}, ("unwrap_arguments ", "unwrap_arguments ", "decode_json_text "),
           "weather"),
    Change("wrapped text", WEATHER, {"parameters": '{"city":"Oslo"}'}, {"city": "Oslo"},
           ("unwrap_arguments ", "decode_json_text ")),
    Change("wrapped in properties", WEATHER, {"properties": {"city": "Oslo", "days": "2"}},
           {"city": "Oslo", "days": 2}, ("unwrap_arguments ", "parse_number_text /days")),
    Change("list of one object", WEATHER, [{"city": "Oslo"}], {"city": "Oslo"}, ("unwrap_list ",)),
    Change("wrapped list of one object", WEATHER, {"args": [{"city": "Oslo"}]}, {"city": "Oslo"},
           ("unwrap_arguments ", "unwrap_list ")),
    Change("one required value", WEATHER, "Oslo", {"city": "Oslo"}, ("name_single_value ",)),
    Change("one value of all", of(INTEGER), 3, {"x": 3}, ("name_single_value ",)),
    Change("one value as text", of(INTEGER), "3", {"x": 3},
           ("name_single_value ", "parse_number_text /x")),
    Change("a list for the one parameter", of(STRINGS), ["a", "b"], {"x": ["a", "b"]},
           ("name_single_value ",)),
    Change("object text", WEATHER, '{"city":"Oslo"}', {"city": "Oslo"}, ("decode_json_text ",)),
    Change("null without required", of(INTEGER), None, {}, ("null_to_empty_object ",)),
    Change("blank without required", of(INTEGER), " ", {}, ("blank_to_empty_object ",)),
    Change("reference", {**of({"$ref": "#/$defs/n"}), "$defs": {"n": INTEGER}}, {"x": "3"},
           {"x": 3}, ("parse_number_text /x",)),
    Change("anchor", {**of({"$ref": "#n"}), "$defs": {"n": {**INTEGER, "$anchor": "n"}}},
           {"x": "3"}, {"x": 3}, ("parse_number_text /x",)),
    Change("recursive reference", TREE,
           {"tree": {"size": "1", "children": [{"size": 2}, {"Size": 3}]}},
           {"tree": {"size": 1, "children": [{"size": 2}, {"size": 3}]}},
           ("parse_number_text /tree/size", "rename_key /tree/children/1/Size")),
    Change("all of", of({"allOf": [{"type": ["integer", "string"]}, INTEGER]}), {"x": "3"},
           {"x": 3}, ("parse_number_text /x",)),
    Change("properties of all of", {"allOf": [shape(("a",), a=INTEGER)]}, {"A": "1"}, {"a": 1},
           ("rename_key /A", "parse_number_text /a")),
    Change("the branch that fits", of({"anyOf": [CIRCLE, SQUARE]}),
           {"x": {"kind": "square", "side": "2"}}, {"x": {"kind": "square", "side": 2}},
           ("parse_number_text /x/side",)),
    Change("one of, with what is beside it",
           of({"type": "object", "properties": {"a": INTEGER},
               "oneOf": [{"required": ["b"]}, {"required": ["c"]}]}),
           {"x": {"a": "1", "b": 2}}, {"x": {"a": 1, "b": 2}}, ("parse_number_text /x/a",)),
    Change("nullable object", of({"anyOf": [POINT, {"type": "null"}]}), {"x": '{"a":"1"}'},
           {"x": {"a": 1}}, ("decode_json_text /x", "parse_number_text /x/a")),
    Change("values of any name", {"type": "object", "additionalProperties": INTEGER},
           {"k": "1", "l": 2}, {"k": 1, "l": 2}, ("parse_number_text /k",)),
    Change("escaped place", shape(**{"a/b": INTEGER}), {"a/b": "1"}, {"a/b": 1},
           ("parse_number_text /a~1b",)),
]  # fmt: skip


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.id)
def test_arguments_become_what_the_schema_asks_for(case: Change) -> None:
    """Every step has its own receipt, in order, and the result fits."""
    result = coerce_arguments(case.value, case.schema, tool_name=case.tool_name)
    assert same(result.value, case.expected)
    assert list(result.value) == list(case.expected)
    assert tuple(f"{receipt.rule} {receipt.place}" for receipt in result.receipts) == case.rules
    assert all(receipt.lossless for receipt in result.receipts)
    assert result.errors == ()


@dataclass(frozen=True)
class Refusal:
    """Arguments that stay as they are, and words of the first error."""

    id: str
    schema: dict[str, Any]
    value: Any
    words: tuple[str, ...] = field(default=())


REFUSALS = [
    Refusal("thousands", of(INTEGER), {"x": "1,000"}, ("/x must be an integer",)),
    Refusal("hexadecimal", of(INTEGER), {"x": "0x10"}),
    Refusal("leading zero", of(INTEGER), {"x": "007"}),
    Refusal("unit", of(NUMBER), {"x": "10 km"}),
    Refusal("fraction for an integer", of(INTEGER), {"x": "3.5"}),
    Refusal("hidden fraction", of(INTEGER), {"x": "9007199254740993.4"}),
    Refusal("real fraction", of(INTEGER), {"x": 3.5}),
    Refusal("not a number", of(NUMBER), {"x": "NaN"}),
    Refusal("infinite", of(NUMBER), {"x": "1e999"}),
    Refusal("huge exponent", of(INTEGER), {"x": "1e300"}),
    Refusal("other digits", of(INTEGER), {"x": "٣"}),
    Refusal("blank number", of(INTEGER), {"x": ""}),
    Refusal("blank array", of(STRINGS), {"x": ""}),
    Refusal("blank object", of(POINT), {"x": " "}),
    Refusal("boolean for a number", of(INTEGER), {"x": True}),
    Refusal("number for a boolean", of(BOOLEAN), {"x": 1}),
    Refusal("other word", of(BOOLEAN), {"x": "maybe"}),
    Refusal("yes among several", of({"type": ["boolean", "integer"]}), {"x": "yes"}),
    Refusal("object for text", of(STRING), {"x": {"a": 1}}),
    Refusal("list for text", of(STRING), {"x": ["a"]}),
    Refusal("number for text or list", of({"anyOf": [STRING, STRINGS]}), {"x": 5}),
    Refusal("number for text or boolean", of({"type": ["string", "boolean"]}), {"x": 5}),
    Refusal("number not among texts", of({"enum": ["1", "2"]}), {"x": 3}),
    Refusal("typed enum of texts", of(COLORS), {"x": 3}),
    Refusal("unknown option", of(COLORS), {"x": "pink"}),
    Refusal("sign is no style", of({"enum": ["1", "2"]}), {"x": "-1"}),
    Refusal("digits stay apart", of({"enum": ["12", "3"]}), {"x": "1-2"}),
    Refusal("two options", of({"enum": ["Max", "MAX"]}), {"x": "max"},
            ('/x is ambiguous: "max" could mean "Max" or "MAX"',)),
    Refusal("options of two styles", of({"enum": ["no_op", "noop"]}), {"x": "NoOp"},
            ('could mean "no_op" or "noop"',)),
    Refusal("required null", WEATHER, {"city": None}, ("/city must be a string",)),
    Refusal("null in an array", of(INTEGERS), {"x": [None]}),
    Refusal("null for a required array", shape(("x",), x={"type": "array"}), {"x": None}),
    Refusal("null text for a required array", shape(("x",), x=STRINGS), {"x": "null"}),
    Refusal("one item or several", of(STRINGS), {"x": "a, b"}, ("could be one item or several",)),
    Refusal("lines", of(STRINGS), {"x": "- a\n- b"}, ("could be one item or several",)),
    Refusal("a call of another tool", WEATHER, {"name": "other", "arguments": {"city": "Oslo"}}),
    Refusal("element that does not fit", of(INTEGERS), {"x": "many"}),
    Refusal("broken array text", of(STRINGS), {"x": '["a", "b"'}),
    Refusal("words around a list", of(STRINGS), {"x": "[1] and more"}),
    Refusal("words before an object", of(POINT), {"x": 'It is {"a":1}'}),
    Refusal("two objects", of(POINT), {"x": '{"a":1} {"a":2}'}),
    Refusal("names in brackets", of(STRINGS), {"x": "[a, b]"}),
    Refusal("array text for an object", of(POINT), {"x": "[1]"}),
    Refusal("key twice in text", of(POINT), {"x": '{"a":1,"a":2}'}),
    Refusal("a text for a fixed list", of({"type": "array", "prefixItems": [STRING]}), {"x": "a"}),
    Refusal("day or month first", of({**STRING, "format": "date"}), {"x": "11/12/2026"}),
    Refusal("month name", of({**STRING, "format": "date"}), {"x": "15 Nov 2026"}),
    Refusal("no such day", of({**STRING, "format": "date"}), {"x": "2026/02/30"}),
    Refusal("mixed separators", of({**STRING, "format": "date"}), {"x": "2026/02-03"}),
    Refusal("seven digits", of({**STRING, "format": "date"}), {"x": "2026115"}),
    Refusal("date for a date and time", of({**STRING, "format": "date-time"}), {"x": "2026-11-15"}),
    Refusal("half of a day", of({**STRING, "format": "time"}), {"x": "10:00 pm"}),
    Refusal("short hour", of({**STRING, "format": "time"}), {"x": "9:00"}),
    Refusal("unknown key", WEATHER, {"city": "Oslo", "town": "x"}, ('unknown property "town"',)),
    Refusal("key given twice", WEATHER, {"city": "Oslo", "City": "Bergen"},
            ('/ has "City" and "city", which mean the same; send only "city"',)),
    Refusal("two spellings", WEATHER, {"CITY": "Oslo", "City": "Bergen"},
            ('/ has "CITY" and "City", which mean the same',)),
    Refusal("two properties", shape(userId=INTEGER, user_id=INTEGER), {"user-id": 1},
            ('ambiguous property "user-id": it could mean "userId" or "user_id"',)),
    Refusal("a null does not give way", WEATHER, {"city": "a", "days": None, "Days": 1},
            ('/ has "Days" and "days"',)),
    Refusal("underscore in front", shape(id=INTEGER), {"_id": 1}),
    Refusal("wrapped but wrong", WEATHER, {"arguments": {"town": "Oslo"}}),
    Refusal("wrapped four times", WEATHER,
            {"args": {"args": {"args": {"args": {"city": "Oslo"}}}}}),
    Refusal("wrapped with company", WEATHER, {"arguments": {"city": "Oslo"}, "id": 1}),
    Refusal("wrapper of a bare value", WEATHER, {"input": "Oslo"}),
    Refusal("unknown wrapper", WEATHER, {"weather": {"city": "Oslo"}}),
    Refusal("the wrapper is a property", shape(("input", "n"), input=POINT, n=INTEGER),
            {"input": {"input": {"a": 1}, "n": 1}}),
    Refusal("list of two objects", WEATHER, [{"city": "Oslo"}, {"city": "Bergen"}]),
    Refusal("positions", WEATHER, ["Oslo", 3]),
    Refusal("positions of wrong types", WEATHER, [3, "Oslo"]),
    Refusal("too many positions", WEATHER, ["Oslo", 3, 4]),
    Refusal("empty list", WEATHER, []),
    Refusal("one value for two", shape(("a", "b"), a=STRING, b=STRING), "x"),
    Refusal("broken object text", WEATHER, '{"city": "Oslo"'),
    Refusal("null with required", WEATHER, None, ("/ must be an object, got null",)),
    Refusal("list for an open schema", {}, [1], ("/ must be an object with the arguments",)),
    Refusal("object or list element", of({"type": "array", "items": POINT}),
            [{"x": [{"a": 1}]}, {"x": []}]),
    Refusal("schema for a text", WEATHER, {"city": {"type": "string"}},
            ("/city repeats its schema",)),
    Refusal("schema for an array", of({"type": "array"}), {"x": {"type": "array", "items": {}}},
            ("/x repeats its schema",)),
    Refusal("schema for everything", WEATHER, {"type": "object", "properties": {}},
            ("/ repeats its schema",)),
    Refusal("schema in text", of({"type": "array", "items": {"type": "object"}}),
            {"x": '{"type": "array"}'}),
    Refusal("two branches", of({"anyOf": [shape(a=INTEGER), shape(A=STRING)]}),
            {"x": '{"a":"1","A":1}'}),
    Refusal("two readings", of({"anyOf": [shape(due_days=INTEGER), shape(dueDays=INTEGER)]}),
            {"x": {"due-days": 1}},
            ('/x is ambiguous: {"due-days":1} could mean {"due_days":1} or {"dueDays":1}',)),
    Refusal("fits two of one", of({"oneOf": [INTEGER, NUMBER]}), {"x": 3}),
    Refusal("nothing can fit", of({"allOf": [STRING, INTEGER]}), {"x": "3"}),
    Refusal("excluded", of({"not": STRING}), {"x": "3"}),
    Refusal("forbidden property", {"type": "object", "properties": {"x": False}}, {"x": "3"}),
    Refusal("not finite", of(STRING), {"x": float("nan")}),
    Refusal("key that is no text", WEATHER, {1: "Oslo"}),
    Refusal("patterns allow the key",
            {**shape(due_days=INTEGER), "patternProperties": {"^due": STRING}}, {"dueDays": 3}),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_what_is_not_clear_stays_and_is_an_error(case: Refusal) -> None:
    """Nothing is guessed: the value is the same, there is no receipt, and the error says why."""
    result = coerce_arguments(case.value, case.schema)
    assert result.value is case.value
    assert result.receipts == ()
    assert result.errors
    for words in case.words:
        assert words in result.errors[0].message
    assert {error.code for error in result.errors} == {"ARGUMENTS_INVALID"}


VALID = [
    pytest.param(WEATHER, {"city": "3", "days": 3}, id="number text for text"),
    pytest.param(of(INTEGER), {"x": 3.0}, id="integral float"),
    pytest.param(of({**STRING, "format": "date-time"}), {"x": "2026-11-15 10:00:00"}, id="no T"),
    pytest.param(of({"anyOf": [STRING, POINT]}), {"x": '{"a":1}'}, id="text is allowed"),
    pytest.param(of({"type": ["string", "null"]}), {"x": "null"}, id="null text"),
    pytest.param(of({}), {"x": "3"}, id="anything"),
    pytest.param({}, {"arguments": {"a": "1"}}, id="open schema"),
    pytest.param({"properties": {"due_days": INTEGER}}, {"dueDays": "3"}, id="open names"),
    pytest.param(shape(input=STRING), {"input": '{"a":1}'}, id="a property named as a wrapper"),
]


@pytest.mark.parametrize(("schema", "value"), VALID)
def test_what_fits_is_returned_untouched(schema: dict[str, Any], value: dict[str, Any]) -> None:
    """The very same object comes back, without receipts and errors."""
    result = coerce_arguments(value, schema)
    assert result.value is value
    assert result.receipts == ()
    assert result.errors == ()


def test_parts_that_fit_are_kept_when_others_change() -> None:
    """Only the wrong property is replaced, in a copy; the rest is shared, the input unchanged."""
    inner = {"a": 1}
    value = {"x": inner, "n": "3"}
    result = coerce_arguments(value, shape(x=POINT, n=INTEGER))
    assert result.value == {"x": {"a": 1}, "n": 3}
    assert result.value["x"] is inner
    assert value == {"x": {"a": 1}, "n": "3"}


def test_an_optional_name_in_another_style_is_given_its_own() -> None:
    """A key that the schema is silent about would be lost; one that it allows stays."""
    schema = {"type": "object", "properties": {"due_days": INTEGER, "n": INTEGER}}
    result = coerce_arguments({"dueDays": 1, "n": "2"}, schema)
    assert result.value == {"due_days": 1, "n": 2}
    assert [item.rule for item in result.receipts] == ["parse_number_text", "rename_key"]
    assert coerce_arguments({"DueDays": 1}, schema).value == {"due_days": 1}
    allowed = {**schema, "additionalProperties": True}
    assert coerce_arguments({"dueDays": 1}, allowed) == Coerced({"dueDays": 1})
    both: dict[str, Any] = {"dueDays": 1, "due_days": 2}
    assert coerce_arguments(both, schema) == Coerced(both)
    assert coerce_arguments({"DueDays": "soon"}, schema).value == {"DueDays": "soon"}


def test_optional_names_inside_lists_and_unions_are_found() -> None:
    """The keys of nested objects are looked at as well, where one part is meant."""
    item = {"type": "object", "properties": {"unit": {"type": "string"}}}
    schema = {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "best": {"anyOf": [item, {"type": "null"}]},
        },
    }
    given = {"items": [{"Unit": "m"}, {"unit": "s"}], "best": {"UNIT": "kg"}}
    result = coerce_arguments(given, schema)
    assert result.value == {"items": [{"unit": "m"}, {"unit": "s"}], "best": {"unit": "kg"}}
    assert [receipt.place for receipt in result.receipts] == ["/items/0/Unit", "/best/UNIT"]


def test_what_remains_wrong_is_told_of_the_changed_value() -> None:
    """The model is told about the number, not again about the text it sent."""
    schema = shape(("city",), city=STRING, days={**INTEGER, "maximum": 7})
    result = coerce_arguments({"Days": "30"}, schema)
    assert result.value == {"days": 30}
    assert [receipt.rule for receipt in result.receipts] == ["rename_key", "parse_number_text"]
    assert [error.message for error in result.errors] == [
        '/ is missing the required property "city"',
        "/days must be at most 7, got the number 30",
    ]


def test_a_receipt_holds_the_value_as_it_was() -> None:
    """Later changes inside do not reach into an earlier receipt."""
    result = coerce_arguments({"x": '{"a":"1"}'}, of(POINT))
    decoded, parsed = result.receipts
    assert decoded.after == {"a": "1"}
    assert (parsed.before, parsed.after) == ("1", 1)
    assert result.value == {"x": {"a": 1}}


def test_a_dropped_null_says_why() -> None:
    """The receipt of a property that is gone says what became of it."""
    (receipt,) = coerce_arguments({"x": None}, of(INTEGER)).receipts
    assert (receipt.before, receipt.after) == (None, None)
    assert "left out" in receipt.why


def test_deep_nesting_is_followed_without_recursion() -> None:
    """A hundred levels are coerced; beyond the limit a value is left alone and refused."""
    bottom: dict[str, Any] = {"size": "1"}
    value: dict[str, Any] = bottom
    for _ in range(50):
        value = {"size": 1, "children": [value]}
    result = coerce_arguments({"tree": value}, TREE)
    assert result.receipts[0].place == "/tree" + "/children/0" * 50 + "/size"
    assert result.errors == ()
    for _ in range(400):
        value = {"size": 1, "children": [value]}
    result = coerce_arguments({"tree": value}, TREE)
    assert result.receipts == ()
    assert "/ is nested deeper than 128 levels" in result.errors[0].message


def test_branches_that_multiply_end_in_an_error() -> None:
    """Two readings at each of many levels are not all tried."""
    node = {
        "anyOf": [
            {**shape(("a",), a={"$ref": "#/$defs/n"}, b=INTEGER)},
            {**shape(("a",), a={"$ref": "#/$defs/n"}, c=INTEGER)},
            INTEGER,
        ]
    }
    schema = {**of({"$ref": "#/$defs/n"}), "$defs": {"n": node}}
    value: Any = "never"
    for _ in range(10):
        value = {"a": value}
    result = coerce_arguments({"x": value}, schema)
    assert result.value == {"x": value}
    assert result.receipts == ()
    assert "more possible forms than can be tried" in result.errors[0].message


def test_a_long_array_of_texts_is_parsed() -> None:
    """Size alone is no reason to refuse."""
    result = coerce_arguments({"x": [str(number) for number in range(20_000)]}, of(INTEGERS))
    assert result.value == {"x": list(range(20_000))}
    assert len(result.receipts) == 20_000


def test_a_checker_is_used_again() -> None:
    """One checker serves every call of a tool, also after one that failed."""
    coerce = partial(
        coerce_arguments, schema=WEATHER, checker=SchemaChecker(WEATHER), tool_name="weather"
    )
    assert coerce({"weather": {"city": 5}}).value == {"city": "5"}
    assert coerce({"town": 5}).errors
    assert coerce({"city": "Oslo", "days": "1"}).value == {"city": "Oslo", "days": 1}
