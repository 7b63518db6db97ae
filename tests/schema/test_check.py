"""Checking values: what is wrong, in words a model can act on."""

import socket
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.errors import Code, ToolDefinitionError
from surecall.records import ErrorDetail
from surecall.schema import MAX_ERRORS, SchemaChecker

TASK: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "due_days": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "enum": ["red", "blue"]},
    },
    "required": ["title"],
    "additionalProperties": False,
}
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


def of(**schema: Any) -> dict[str, Any]:
    """Return a schema with one property `x`."""
    return {"type": "object", "properties": {"x": schema}}


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
        ("/x must have at least 1 properties, has 0",),
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


def test_number_of_errors_is_bounded() -> None:
    """A value that is wrong in many places gets no more than the bound."""
    details = SchemaChecker({"items": {"type": "string"}}).check([1] * 1000)
    assert len(details) == MAX_ERRORS
    assert details[-1].message == f"/{MAX_ERRORS - 1} must be a string, got the number 1"


@dataclass(frozen=True)
class LargeCase:
    id: str
    schema: dict[str, Any]
    value: Any
    first: str
    count: int


LARGE_LIST = ["a"] * 5_000
LARGE = [
    LargeCase(
        "items",
        {"items": {"type": "string"}},
        [1] * 5_000,
        "/0 must be a string, got the number 1",
        MAX_ERRORS,
    ),
    LargeCase(
        "last item",
        {"items": {"type": "string"}},
        [*LARGE_LIST, 1],
        "/5000 must be a string, got the number 1",
        1,
    ),
    LargeCase("length", {"maxItems": 10}, LARGE_LIST, "/ must have at most 10 items, has 5000", 1),
    LargeCase(
        "optional list",
        of(anyOf=[{"type": "array", "items": {"type": "string"}}, {"type": "null"}]),
        {"x": [*LARGE_LIST, None]},
        "/x/5000 must be a string, got null",
        1,
    ),
    LargeCase(
        "beside a large list",
        {**TASK, "properties": {**TASK["properties"], "x": {"type": "array"}}},
        {"due_days": "a", "x": LARGE_LIST, "zzz": 1},
        '/ is missing the required property "title"',
        3,
    ),
    LargeCase(
        "reference and inner properties",
        {
            "properties": {"x": {"$ref": "#/$defs/T"}},
            "$defs": {"T": {"allOf": [{"additionalProperties": {"items": {"type": "string"}}}]}},
        },
        {"x": {"y": [*LARGE_LIST, 1]}},
        "/x/y/5000 must be a string, got the number 1",
        1,
    ),
    LargeCase(
        "several forms",
        {"anyOf": [{"items": {"type": "integer"}}, {"items": {"type": "null"}}]},
        LARGE_LIST,
        "/ fits none of the forms its schema allows",
        1,
    ),
    LargeCase(
        "not allowed",
        {"properties": {"x": False}},
        {"x": LARGE_LIST},
        "/x is not allowed here; leave it out",
        1,
    ),
    LargeCase(
        "older dialect",
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "maxItems": 3,
            "exclusiveMinimum": True,
            "minimum": 1,
        },
        LARGE_LIST,
        "/ must have at most 3 items, has 5000",
        1,
    ),
]


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.id)
def test_error_inside_a_large_value_is_found(case: LargeCase) -> None:
    """A large value is narrowed down to the parts that are wrong."""
    details = SchemaChecker(case.schema).check(case.value)
    assert (details[0].message, len(details)) == (case.first, case.count), details[:3]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"x": object()}, id="object"),
        pytest.param({1: 2}, id="number as key"),
        pytest.param(b"a", id="bytes"),
    ],
)
def test_value_that_is_not_json_is_an_error_and_not_a_crash(value: Any) -> None:
    """Whatever comes in, the answer is a list of errors."""
    details = SchemaChecker({"type": "object", "properties": {"x": {"type": "string"}}}).check(
        value
    )
    assert len(details) == 1
    assert details[0].message.startswith("/ cannot be checked: ")


def test_details_are_records() -> None:
    """What comes back can go straight into an envelope."""
    details = SchemaChecker({"type": "object"}).check(1)
    assert details == (
        ErrorDetail("ARGUMENTS_INVALID", "/ must be an object, got the number 1", path=""),
    )


def test_construction_compiles_nothing() -> None:
    """A bad schema is noticed when it is compiled or used, not before."""
    checker = SchemaChecker({"type": "nonsense"})
    with pytest.raises(ToolDefinitionError):
        checker.compile()
    with pytest.raises(ToolDefinitionError):
        checker.is_valid(1)
    with pytest.raises(ToolDefinitionError):
        checker.check(1)


def deep(levels: int) -> dict[str, Any]:
    """Return a schema nested this deep."""
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"items": schema}
    return schema


def cyclic() -> dict[str, Any]:
    """Return a dict that contains itself."""
    schema: dict[str, Any] = {}
    schema["items"] = schema
    return schema


def doubling(keyword: str) -> dict[str, Any]:
    """Return a schema in which each reference leads to two more."""
    definitions: dict[str, Any] = {
        f"d{n}": {keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(40)
    }
    definitions["d40"] = {"type": "string"}
    return {"$ref": "#/$defs/d0", "$defs": definitions}


@dataclass(frozen=True)
class Refusal:
    id: str
    schema: Any
    code: str
    words: str


REFUSALS = [
    Refusal(
        "http",
        {"$ref": "http://192.0.2.1/a"},
        Code.REMOTE_REF_REFUSED,
        "'http://192.0.2.1/a' at /$ref",
    ),
    Refusal(
        "https",
        {"properties": {"x": {"$ref": "https://192.0.2.1/a#/b"}}},
        Code.REMOTE_REF_REFUSED,
        "at /properties/x/$ref",
    ),
    Refusal(
        "file",
        {"items": {"$ref": "file:///etc/passwd"}},
        Code.REMOTE_REF_REFUSED,
        "file:///etc/passwd",
    ),
    Refusal("relative", {"$ref": "other.json"}, Code.REMOTE_REF_REFUSED, "other.json"),
    Refusal(
        "dynamic",
        {"$dynamicRef": "http://192.0.2.1/a"},
        Code.REMOTE_REF_REFUSED,
        "http://192.0.2.1/a",
    ),
    Refusal(
        "hidden in an unknown keyword",
        {"$ref": "#/weird/x", "weird": {"x": {"$ref": "http://192.0.2.1/a"}}},
        Code.REMOTE_REF_REFUSED,
        "http://192.0.2.1/a",
    ),
    Refusal("dialect", {"$schema": "http://192.0.2.1/meta"}, Code.INVALID_SCHEMA, "at /$schema"),
    Refusal(
        "dangling", {"$ref": "#/$defs/none"}, Code.INVALID_SCHEMA, "'/$defs/none' does not exist"
    ),
    Refusal("not an object", [1], Code.INVALID_SCHEMA, "not list"),
    Refusal(
        "unknown type",
        {"properties": {"x": {"type": "strin"}}},
        Code.INVALID_SCHEMA,
        "at /properties/x/type",
    ),
    Refusal("bad keyword", {"required": "a"}, Code.INVALID_SCHEMA, "at /required"),
    Refusal("look-ahead", {"pattern": "(?=a)b"}, Code.INVALID_SCHEMA, "at /pattern"),
    Refusal("back-reference", {"pattern": r"(a)\1"}, Code.INVALID_SCHEMA, "at /pattern"),
    Refusal("huge pattern", {"pattern": "a{100}{100}{100}"}, Code.INVALID_SCHEMA, "at /pattern"),
    Refusal("not JSON", {"default": object()}, Code.INVALID_SCHEMA, "not JSON"),
    Refusal("too deep", deep(65), Code.INVALID_SCHEMA, "deeper than 64"),
    Refusal("very deep", deep(100_000), Code.INVALID_SCHEMA, "deeper than 64"),
    Refusal("contains itself", cyclic(), Code.INVALID_SCHEMA, "deeper than 64"),
    Refusal("too large", {"anyOf": [{}] * 10_000}, Code.INVALID_SCHEMA, "more than 5000"),
    Refusal("many choices", {"enum": list(range(10_000))}, Code.INVALID_SCHEMA, "more than 5000"),
    Refusal("reference to itself", {"$ref": "#"}, Code.INVALID_SCHEMA, "never end or multiply"),
    Refusal(
        "references in a circle",
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
        Code.INVALID_SCHEMA,
        "never end",
    ),
    Refusal(
        "references that double", doubling("allOf"), Code.INVALID_SCHEMA, "never end or multiply"
    ),
    Refusal("choices that double", doubling("anyOf"), Code.INVALID_SCHEMA, "never end or multiply"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_schema_that_cannot_be_used_is_refused(
    case: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal says what is wrong, where, and what to do; nothing is ever fetched."""

    def connect(*_: Any) -> None:
        raise AssertionError("a connection was attempted")

    monkeypatch.setattr(socket, "socket", connect)
    monkeypatch.setattr(socket, "getaddrinfo", connect)
    with pytest.raises(ToolDefinitionError) as caught:
        SchemaChecker(case.schema).compile()
    assert caught.value.code == case.code
    assert case.words in caught.value.message
    assert caught.value.hint


def test_reference_to_a_listening_address_makes_no_connection() -> None:
    """A reference to a server that would answer is refused without asking it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.03)
        port = server.getsockname()[1]
        schemas: list[dict[str, Any]] = [
            {"$ref": f"http://127.0.0.1:{port}/a.json"},
            {"$ref": "#/x", "x": {"$ref": f"http://127.0.0.1:{port}/a.json"}},
        ]
        for schema in schemas:
            with pytest.raises(ToolDefinitionError, match="REMOTE_REF_REFUSED"):
                SchemaChecker(schema).compile()
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(deep(64), id="as deep as allowed"),
        pytest.param({"enum": list(range(4_990))}, id="nearly as large as allowed"),
        pytest.param({"properties": {"$ref": {"type": "string"}}}, id="property named $ref"),
        pytest.param({"enum": [{"$ref": "http://192.0.2.1/a"}]}, id="reference that is data"),
        pytest.param({"properties": {"x": {"$ref": "#"}}}, id="recursion through a property"),
        pytest.param(
            {
                "$defs": {"a b": {"$anchor": "n"}},
                "allOf": [{"$ref": "#n"}, {"$ref": "#/$defs/a%20b"}],
            },
            id="anchor",
        ),
        pytest.param({"pattern": "^(a+)+$"}, id="pattern that would backtrack elsewhere"),
    ],
)
def test_schema_within_the_limits_is_used(schema: dict[str, Any]) -> None:
    """Limits and refusals do not catch what only looks alike."""
    SchemaChecker(schema).compile()


def test_catastrophic_pattern_costs_nothing() -> None:
    """A pattern that backtracks elsewhere answers at once on a long text."""
    checker = SchemaChecker({"type": "string", "pattern": "^(a+)+$"})
    assert not checker.is_valid("a" * 200_000 + "b")
    assert checker.is_valid("a" * 200_000)
