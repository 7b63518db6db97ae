"""Checking values: what is wrong, in words a model can act on."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.records import ErrorDetail
from surecall.schema import SchemaChecker

from .checked import TASK, of

SHAPES: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"enum": ["circle"]}, "radius": {"type": "number"}},
            "required": ["kind", "radius"],
        },
        {
            "type": "object",
            "properties": {"kind": {"enum": ["square"]}, "side": {"type": "number"}},
            "required": ["kind", "side"],
        },
    ]
}


@dataclass(frozen=True)
class Case:
    id: str
    schema: dict[str, Any]
    value: Any
    messages: tuple[str, ...]


CASES = [
    Case("valid", TASK, {"title": "a", "due_days": 3}, ()),
    Case(
        "wrong type",
        TASK,
        {"title": "a", "due_days": "three"},
        ('/due_days must be an integer, got the string "three"',),
    ),
    Case(
        "everything at once",
        TASK,
        {"due_days": 0, "color": "green", "titel": 1},
        (
            '/ is missing the required property "title"',
            '/ has an unknown property "titel"; did you mean "title"?',
            '/color must be one of "red" or "blue", got the string "green"',
            "/due_days must be at least 1, got the number 0",
        ),
    ),
    Case(
        "unknown without a likeness",
        TASK,
        {"title": "a", "zzz": 1},
        ('/ has an unknown property "zzz"; allowed here: "title", "due_days", "color"',),
    ),
    Case(
        "another spelling",
        TASK,
        {"title": "a", "dueDays": 1},
        ('/ has an unknown property "dueDays"; did you mean "due_days"?',),
    ),
    Case(
        "nothing is allowed",
        {"additionalProperties": False},
        {"a": 1},
        ('/ has an unknown property "a"; leave it out',),
    ),
    Case(
        "no arguments",
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"a": 1, "b": 2},
        (
            '/ has an unknown property "a"; leave it out',
            '/ has an unknown property "b"; leave it out',
        ),
    ),
    Case("not an object", TASK, [1, 2], ("/ must be an object, got an array of 2 items",)),
    Case("null", TASK, None, ("/ must be an object, got null",)),
    Case("boolean", of(type="string"), {"x": True}, ("/x must be a string, got the boolean true",)),
    Case(
        "empty object", of(type="string"), {"x": {}}, ("/x must be a string, got an empty object",)
    ),
    Case(
        "object",
        of(type="string"),
        {"x": dict.fromkeys("abcdefg", 1)},
        ('/x must be a string, got an object with "a", "b", "c", "d", "e" and 2 more',),
    ),
    Case(
        "several types",
        of(type=["string", "null"]),
        {"x": 1.5},
        ("/x must be a string or null, got the number 1.5",),
    ),
    Case(
        "boolean wanted",
        of(type="boolean"),
        {"x": "yes"},
        ('/x must be true or false, got the string "yes"',),
    ),
    Case(
        "type and enum",
        of(type="string", enum=["a"]),
        {"x": 1},
        ('/x must be "a", got the number 1',),
    ),
    Case(
        "long enum",
        of(enum=list(range(20))),
        {"x": 99},
        ("/x must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more, got the number 99",),
    ),
    Case("const", of(const=None), {"x": 1}, ("/x must be null, got the number 1",)),
    Case("maximum", of(maximum=5), {"x": 6}, ("/x must be at most 5, got the number 6",)),
    Case(
        "above", of(exclusiveMinimum=0), {"x": 0}, ("/x must be greater than 0, got the number 0",)
    ),
    Case("below", of(exclusiveMaximum=1), {"x": 1}, ("/x must be less than 1, got the number 1",)),
    Case("multiple", of(multipleOf=5), {"x": 7}, ("/x must be a multiple of 5, got the number 7",)),
    Case("short", of(minLength=2), {"x": "a"}, ("/x must have at least 2 characters, has 1",)),
    Case("long", of(maxLength=1), {"x": "ab"}, ("/x must have at most 1 character, has 2",)),
    Case("few", of(minItems=1), {"x": []}, ("/x must have at least 1 item, has 0",)),
    Case("many", of(maxItems=1), {"x": [1, 2]}, ("/x must have at most 1 item, has 2",)),
    Case(
        "few properties",
        of(minProperties=1),
        {"x": {}},
        ("/x must have at least 1 property, has 0",),
    ),
    Case(
        "many properties",
        of(maxProperties=0),
        {"x": {"a": 1}},
        ("/x must have at most 0 properties, has 1",),
    ),
    Case(
        "twice", of(uniqueItems=True), {"x": [1, 1]}, ("/x must not contain the same item twice",)
    ),
    Case(
        "contains",
        of(contains={"type": "null"}),
        {"x": [1]},
        ("/x contains no item of the kind that is needed",),
    ),
    Case(
        "false", {"properties": {"x": False}}, {"x": 1}, ("/x is not allowed here; leave it out",)
    ),
    Case(
        "not",
        of(**{"not": {"type": "null"}}),
        {"x": None},
        ("/x must not be null: values of this kind are excluded",),
    ),
    Case(
        "pattern",
        of(pattern="^[a-z]+$"),
        {"x": "A"},
        ('/x must be text that matches the pattern ^[a-z]+$, got the string "A"',),
    ),
    Case(
        "property names",
        {"propertyNames": {"maxLength": 1}},
        {"ab": 1},
        ('/ has a property "ab" whose name is not allowed: "ab" is longer than 1 character',),
    ),
    Case(
        "unevaluated",
        {"unevaluatedProperties": False},
        {"a": 1},
        ('/ has an unknown property "a"; leave it out',),
    ),
    Case(
        "item",
        of(items={"type": "string"}),
        {"x": ["a", 1]},
        ("/x/1 must be a string, got the number 1",),
    ),
    Case(
        "escaped path",
        {"properties": {"a/b": {"type": "null"}}},
        {"a/b": 1},
        ("/a~1b must be null, got the number 1",),
    ),
    Case(
        "optional",
        of(anyOf=[{"type": "string"}, {"type": "null"}]),
        {"x": 1},
        ("/x must be a string or null, got the number 1",),
    ),
    Case(
        "optional choice",
        of(anyOf=[{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]),
        {"x": "c"},
        ('/x must be one of "a" or "b" or null, got the string "c"',),
    ),
    Case(
        "optional object",
        of(anyOf=[TASK, {"type": "null"}]),
        {"x": {"titel": "a"}},
        (
            '/x is missing the required property "title"',
            '/x has an unknown property "titel"; did you mean "title"?',
        ),
    ),
    Case(
        "optional range",
        of(anyOf=[{"type": "integer", "minimum": 1}, {"type": "null"}]),
        {"x": 0},
        ("/x must be at least 1 or null, got the number 0",),
    ),
    Case(
        "told apart by kind",
        {"properties": {"x": SHAPES}},
        {"x": {"kind": "square", "radius": 1}},
        ('/x is missing the required property "side"',),
    ),
    Case(
        "no form fits",
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        (
            (
                '/ fits none of the 2 allowed forms: (1) / is missing the required property "a"; '
                '(2) / is missing the required property "b"'
            ),
        ),
    ),
    Case(
        "two forms fit",
        of(oneOf=[{"minimum": 1}, {"minimum": 2}]),
        {"x": 3},
        ("/x fits more than one of the allowed forms; it must fit exactly one",),
    ),
    Case(
        "reference",
        {"properties": {"x": {"$ref": "#/$defs/T"}}, "$defs": {"T": TASK}},
        {"x": {"title": "a", "colour": "red"}},
        ('/x has an unknown property "colour"; did you mean "color"?',),
    ),
    Case(
        "older dialect",
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"x": {"minimum": 1, "exclusiveMinimum": True}},
        },
        {"x": 1},
        ("/x must be greater than 1, got the number 1",),
    ),
    Case(
        "long echo",
        of(type="integer"),
        {"x": "a" * 100},
        (f'/x must be an integer, got the string "{"a" * 80}…" (+20 characters)',),
    ),
    Case(
        "echo of control characters",
        of(type="integer"),
        {"x": 'a"\n\x00\u202e'},
        ('/x must be an integer, got the string "a\\"\\n\\u0000\\u202e"',),
    ),
    Case(
        "date",
        of(format="date"),
        {"x": "31.3."},
        ('/x must be a date like 2026-03-31, got the string "31.3."',),
    ),
    Case(
        "date and time",
        of(format="date-time"),
        {"x": "2026-03-31"},
        ('/x must be a date and time like 2026-03-31T09:30:00Z, got the string "2026-03-31"',),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_value_gets_these_messages(case: Case) -> None:
    """Each error says where, what was expected, and what was there."""
    checker = SchemaChecker(case.schema)
    details = checker.check(case.value)
    assert tuple(detail.message for detail in details) == case.messages
    assert checker.is_valid(case.value) is (not case.messages)
    assert {detail.code for detail in details} <= {"ARGUMENTS_INVALID"}


def test_details_point_at_the_offending_argument() -> None:
    """A missing property is found at its object, an unknown one at itself."""
    details = SchemaChecker(TASK).check({"titel": "a", "due_days": "x"})
    assert [detail.path for detail in details] == ["", "/titel", "/due_days"]


@dataclass(frozen=True)
class FormatCase:
    id: str
    format: str
    good: tuple[str, ...]
    bad: tuple[str, ...]


FORMATS = [
    FormatCase(
        "date-time",
        "date-time",
        ("2026-03-31T09:30:00Z", "2026-03-31T09:30:00", "2026-03-31T09:30:00+02:00"),
        ("2026-03-31", "soon"),
    ),
    FormatCase("date", "date", ("2026-03-31",), ("2026-02-30", "31/3")),
    FormatCase("time", "time", ("09:30:00", "09:30:00Z"), ("9:30", "25:00:00")),
    FormatCase("uuid", "uuid", ("123e4567-e89b-12d3-a456-426614174000",), ("123",)),
    FormatCase("email", "email", ("a@example.com",), ("a",)),
    FormatCase("uri", "uri", ("https://example.com/a",), ("example",)),
    FormatCase("notes only", "hostname", ("a", "-not a host-"), ()),
    FormatCase("regex is a note", "regex", ("(?=a)b", "("), ()),
    FormatCase("unknown", "made-up", ("anything",), ()),
]


@pytest.mark.parametrize("case", FORMATS, ids=lambda case: case.id)
def test_format_is_asserted_or_a_note(case: FormatCase) -> None:
    """Formats that can be told for certain are asserted; the others let everything through."""
    checker = SchemaChecker({"type": "string", "format": case.format})
    assert [text for text in case.good if not checker.is_valid(text)] == []
    assert [text for text in case.bad if checker.is_valid(text)] == []


def test_details_are_records() -> None:
    """What comes back can go straight into an envelope."""
    details = SchemaChecker({"type": "object"}).check(1)
    assert details == (
        ErrorDetail("ARGUMENTS_INVALID", "/ must be an object, got the number 1", path=""),
    )
