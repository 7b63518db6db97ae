"""Checking values: what is large or no JSON, and schemas that are refused."""

import socket
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code, ToolDefinitionError
from surecall.schema import SchemaChecker
from surecall.schema.mismatches import MAX_ERRORS

from .checked import TASK, of


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
