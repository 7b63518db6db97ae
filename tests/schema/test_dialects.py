"""Schemas rewritten for providers."""

import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from surecall.errors import RequestError
from surecall.schema import Dialect, Loss, coerce_arguments, rewrite_schema

TREE = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["children"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Case:
    id: str
    schema: dict[str, Any]
    expected: dict[str, Any]
    losses: tuple[tuple[str, str, str], ...] = ()
    """Place, keyword and kind of each."""
    options: dict[str, int] = field(default_factory=dict)


def _losses(losses: tuple[Loss, ...]) -> tuple[tuple[str, str, str], ...]:
    return tuple((loss.place, loss.keyword, loss.kind) for loss in losses)


def _check(case: Case, dialect: Dialect) -> None:
    given = copy.deepcopy(case.schema)
    rewritten = rewrite_schema(given, dialect, **case.options)
    assert rewritten.schema == case.expected
    assert _losses(rewritten.losses) == case.losses
    assert given == case.schema
    assert rewrite_schema(rewritten.schema, dialect, **case.options).schema == case.expected


def _obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _closed(**properties: Any) -> dict[str, Any]:
    return {**_obj(**properties), "required": list(properties), "additionalProperties": False}


def _only(value: Any) -> dict[str, Any]:
    kind = {bool: "boolean", int: "integer", str: "string"}[type(value)]
    return {"type": kind, "enum": [value]}


GEMINI = (
    Case("plain", {"type": "string", "minLength": 1}, {"type": "string", "minLength": 1}),
    Case("upper-case type", {"type": "STRING"}, {"type": "string"}),
    Case(
        "null in a list of types",
        {"type": ["string", "null"], "description": "A name."},
        {"type": "string", "nullable": True, "description": "A name."},
    ),
    Case(
        "null in a choice",
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "N"},
        {"type": "integer", "nullable": True, "title": "N"},
    ),
    Case(
        "several types",
        {"type": ["string", "integer", "null"], "minLength": 2, "minimum": 3},
        {
            "anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "minimum": 3}],
            "nullable": True,
        },
    ),
    Case("null alone", {"type": "null"}, {"type": "null"}),
    Case("const", {"const": "a"}, {"type": "string", "enum": ["a"]}),
    Case(
        "enum with null",
        {"enum": ["a", None]},
        {"type": "string", "enum": ["a"], "nullable": True},
    ),
    Case(
        "enum of numbers",
        {"type": "integer", "enum": [1, 2], "description": "Size."},
        {"type": "integer", "description": "Size. [one of: [1,2]]"},
        (("", "enum", "weakened"),),
    ),
    Case(
        "enum with empty text",
        {"enum": ["", "a"]},
        {"type": "string", "description": '[one of: ["","a"]]'},
        (("", "enum", "weakened"),),
    ),
    Case(
        "known formats",
        _obj(a={"type": "string", "format": "date-time"}, b={"type": "number", "format": "float"}),
        {
            **_obj(
                a={"type": "string", "format": "date-time"}, b={"type": "number", "format": "float"}
            ),
            "propertyOrdering": ["a", "b"],
        },
    ),
    Case(
        "other formats",
        {"type": "string", "format": "email"},
        {"type": "string", "description": "[format: email]"},
        (("", "format", "dropped"),),
    ),
    Case(
        "open bounds of integers are exact",
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9.5},
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    Case(
        "open bounds of numbers are not",
        {"type": "number", "exclusiveMinimum": 0, "minimum": -1},
        {"type": "number", "minimum": 0, "description": "[exclusiveMinimum: 0]"},
        (("", "exclusiveMinimum", "weakened"),),
    ),
    Case(
        "draft 4 bounds",
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 4},
    ),
    Case("array without items", {"type": "array"}, {"type": "array", "items": {}}),
    Case(
        "tuple",
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "maxItems": 2,
        },
        (("", "prefixItems", "weakened"),),
    ),
    Case(
        "closed object",
        {**_obj(a={"type": "string"}), "additionalProperties": False, "required": ["a", "zz"]},
        {**_obj(a={"type": "string"}), "required": ["a"]},
        (("", "additionalProperties", "dropped"), ("", "required", "weakened")),
    ),
    Case(
        "allOf",
        {
            "allOf": [
                {**_obj(a={"type": "string"}), "required": ["a"]},
                {**_obj(a={"maxLength": 3}, b={"type": "integer"}), "required": ["b"]},
            ],
            "description": "Both.",
        },
        {
            **_obj(a={"type": "string", "maxLength": 3}, b={"type": "integer"}),
            "required": ["a", "b"],
            "propertyOrdering": ["a", "b"],
            "description": "Both.",
        },
    ),
    Case(
        "choice at the top",
        {
            "type": "object",
            "properties": {"kind": {"type": "string"}},
            "required": ["kind"],
            "anyOf": [
                {"properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}},
                {"properties": {"kind": {"const": "b"}}, "required": ["kind"]},
            ],
        },
        {
            **_obj(
                kind={
                    "anyOf": [
                        {"type": "string", "enum": ["a"]},
                        {"type": "string", "enum": ["b"]},
                    ]
                },
                x={"type": "integer"},
            ),
            "required": ["kind"],
            "propertyOrdering": ["kind", "x"],
        },
        (("", "anyOf", "changed"),),
    ),
    Case(
        "oneOf with shared keywords",
        _obj(v={"description": "V", "minimum": 1, "oneOf": [{"type": "integer"}, {"const": "x"}]}),
        _obj(
            v={
                "description": "V",
                "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "enum": ["x"]}],
            }
        ),
        (("/properties/v", "oneOf", "weakened"), ("/properties/v", "enum", "dropped")),
    ),
    Case(
        "what cannot be said",
        {
            "type": "string",
            "not": {"const": "x"},
            "if": {"minLength": 1},
            "then": {"maxLength": 3},
            "examples": ["a"],
            "x-own": 1,
        },
        {"type": "string"},
        (("", "if", "dropped"), ("", "not", "dropped")),
    ),
    Case(
        "reference with its own description",
        {
            **_obj(a={"$ref": "#/$defs/A", "description": "Mine."}),
            "$defs": {"A": {"type": "boolean", "description": "Theirs."}},
        },
        _obj(a={"type": "boolean", "description": "Mine."}),
    ),
    Case(
        "reference beside keywords in draft 7",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **_obj(a={"$ref": "#/definitions/A", "minLength": 5}),
            "definitions": {"A": {"type": "string"}},
        },
        _obj(a={"type": "string"}),
    ),
    Case(
        "reference by anchor",
        {"$ref": "#a", "$defs": {"A": {"$anchor": "a", "type": "boolean"}}},
        {"type": "boolean"},
    ),
    Case(
        "reference to nothing",
        _obj(a={"$ref": "#/$defs/A"}, b={"$ref": "https://example.com/x"}),
        {**_obj(a={}, b={}), "propertyOrdering": ["a", "b"]},
        (("/properties/a", "$ref", "dropped"), ("/properties/b", "$ref", "dropped")),
    ),
    Case(
        "recursion",
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {
            **_obj(children={"type": "array", "items": {"type": "object"}}),
            "required": ["children"],
        },
        (
            ("/$defs/Tree/properties/children/items", "$ref", "weakened"),
            ("/$defs/Tree", "additionalProperties", "dropped"),
        ),
    ),
    Case(
        "nothing fits",
        _obj(a={"type": "string", "minLength": 3, "maxLength": 2}, b=False),
        _obj(a={}),
        (("/properties/b", "false", "dropped"), ("/properties/a", "false", "dropped")),
    ),
    Case(
        "type from other keywords",
        _obj(a={"maxLength": 3}),
        _obj(a={"type": "string", "maxLength": 3}),
        (("/properties/a", "type", "changed"),),
    ),
    Case(
        "own order of properties",
        {**_obj(a={"type": "string"}, b={"type": "string"}), "propertyOrdering": ["b"]},
        {**_obj(a={"type": "string"}, b={"type": "string"}), "propertyOrdering": ["b", "a"]},
    ),
)


@pytest.mark.parametrize("case", GEMINI, ids=lambda case: case.id)
def test_gemini_is_told_what_its_subset_can_say(case: Case) -> None:
    """Everything else is left out with a loss, or told in the description."""
    _check(case, "gemini")


STRICT = (
    Case(
        "optional becomes nullable",
        {**_obj(a={"type": "string"}, b={"enum": ["x"]}), "required": ["a"]},
        {
            **_obj(a={"type": "string"}, b={"type": ["string", "null"], "enum": ["x", None]}),
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        (("", "additionalProperties", "changed"), ("", "required", "changed")),
    ),
    Case(
        "length goes into the description",
        {
            **_obj(a={"type": "string", "maxLength": 3, "default": "x", "pattern": "^a"}),
            "required": ["a"],
            "additionalProperties": False,
        },
        {
            **_obj(a={"type": "string", "pattern": "^a", "description": "[maxLength: 3]"}),
            "required": ["a"],
            "additionalProperties": False,
        },
        (("/properties/a", "maxLength", "dropped"),),
    ),
    Case(
        "any value",
        {**_obj(a={}), "required": ["a"], "additionalProperties": False},
        {
            **_obj(a={"anyOf": [{"type": t} for t in ("string", "number", "boolean", "null")]}),
            "required": ["a"],
            "additionalProperties": False,
        },
        (("/properties/a", "type", "changed"),),
    ),
    Case(
        "recursion stays",
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {**TREE, "$defs": {"Tree": TREE}},
    ),
    Case(
        "no parameters",
        {},
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        (("", "type", "changed"), ("", "additionalProperties", "changed")),
    ),
    Case(
        "a listed object is closed",
        {
            **_obj(a={"const": {"b": 1, "c": {"d": "x"}}}),
            "required": ["a"],
            "additionalProperties": False,
        },
        _closed(a=_closed(b=_only(1), c=_closed(d=_only("x")))),
    ),
    Case(
        "listed objects and other values",
        {
            **_obj(a={"enum": [{"b": True}, {}, "x", None], "description": "A."}),
            "required": ["a"],
            "additionalProperties": False,
        },
        _closed(
            a={
                "description": "A.",
                "anyOf": [
                    _closed(b=_only(True)),
                    _closed(),
                    _only("x"),
                    {"type": "null"},
                ],
            }
        ),
    ),
    Case(
        "an optional listed object",
        {**_obj(a={"const": {"b": 1}}), "additionalProperties": False},
        _closed(a={**_closed(b=_only(1)), "type": ["object", "null"]}),
        (("", "required", "changed"),),
    ),
    Case(
        "listed arrays",
        {
            **_obj(a={"const": [1, 1]}, b={"const": []}, c={"const": [1, "x"]}),
            "required": ["a", "b", "c"],
            "additionalProperties": False,
        },
        _closed(
            a={"type": "array", "items": _only(1), "minItems": 2, "maxItems": 2},
            b={"type": "array", "items": {"type": "null"}, "minItems": 0, "maxItems": 0},
            c={
                "type": "array",
                "items": {"anyOf": [_only(1), _only("x")]},
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (("/properties/c", "enum", "weakened"),),
    ),
    Case(
        "a listed object at the top",
        {"const": {"a": 1}, "title": "T"},
        {**_closed(a=_only(1)), "title": "T"},
    ),
    Case(
        "listed objects at the top",
        {"enum": [{"a": 1}, {"a": 2}]},
        _closed(a={"anyOf": [_only(1), _only(2)]}),
        (("", "anyOf", "weakened"),),
    ),
    Case(
        "what looks around goes into the description",
        {
            **_obj(a={"type": "string", "pattern": "^(?!x)"}, b={"type": "integer"}),
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        _closed(
            a={"type": "string", "description": "[pattern: ^(?!x)]"},
            b={"type": "integer"},
        ),
        (("/properties/a", "pattern", "dropped"),),
    ),
    Case(
        "a format is one of texts",
        {
            **_obj(a={"type": "integer", "format": "date"}),
            "required": ["a"],
            "additionalProperties": False,
        },
        _closed(a={"type": "integer", "description": "[format: date]"}),
        (("/properties/a", "format", "dropped"),),
    ),
    Case(
        "not an object at the top",
        {"type": "string"},
        {"type": "string"},
        (("", "type", "over_limit"),),
    ),
)


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_strict_mode_gets_closed_objects_with_all_properties_required(case: Case) -> None:
    """Every place that became stricter is reported as changed."""
    _check(case, "openai_strict")


def test_null_for_an_optional_argument_is_read_as_absence() -> None:
    """What strict mode makes of an optional argument is undone when arguments are read."""
    schema = {
        **_obj(a={"type": "string"}, b={"type": "integer"}, c={"type": ["string", "null"]}),
        "required": ["a"],
        "additionalProperties": False,
    }
    assert "null" in rewrite_schema(schema, "openai_strict").schema["properties"]["b"]["type"]
    coerced = coerce_arguments({"a": "x", "b": None, "c": None}, schema)
    assert coerced.errors == ()
    assert coerced.value == {"a": "x", "c": None}
    assert [receipt.rule for receipt in coerced.receipts] == ["drop_null"]


def test_limits_of_strict_mode_are_reported() -> None:
    """Too many values, levels and properties are named, not cut."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(11):
        deep = {**_obj(a=deep), "required": ["a"], "additionalProperties": False}
    deep["properties"]["e"] = {"enum": [str(number) for number in range(1001)]}
    deep["required"].append("e")
    losses = rewrite_schema(deep, "openai_strict").losses
    assert [(loss.keyword, loss.kind) for loss in losses] == [
        ("properties", "over_limit"),
        ("enum", "over_limit"),
    ]
    assert losses[0].why == "11 levels; at most 10 are taken"


def test_the_length_of_names_and_values_is_limited_in_strict_mode() -> None:
    """All of them together, and those of one long list."""
    listed = {"enum": [f"{number:0100}" for number in range(251)]}
    losses = rewrite_schema(_closed(a=listed), "openai_strict").losses
    assert _losses(losses) == (("/properties/a", "enum", "over_limit"),)
    names = {f"{number:0100}": {"type": "string"} for number in range(1201)}
    losses = rewrite_schema(_closed(**names), "openai_strict").losses
    assert _losses(losses) == (("", "properties", "over_limit"),)
    assert losses[0].why.startswith("120100 characters")


def test_a_listed_value_may_be_nested_as_deep_as_it_likes() -> None:
    """It is cut with a loss; a schema cannot make rewriting run out of stack."""
    value: Any = {}
    for _ in range(300):
        value = {"a": value}
    rewritten = rewrite_schema(_closed(a={"const": value}), "openai_strict")
    assert ("/properties/a", "enum", "weakened") in _losses(rewritten.losses)


LLAMA = (
    Case("any", {}, {}),
    Case(
        "bounded on wish",
        _obj(
            a={"type": "string"},
            b={"type": "string", "maxLength": 99},
            c={"type": "array", "items": {"type": "integer"}},
            d={"type": "string", "minLength": 70},
        ),
        _obj(
            a={"type": "string", "maxLength": 64},
            b={"type": "string", "maxLength": 99},
            c={"type": "array", "items": {"type": "integer"}, "maxItems": 8},
            d={"type": "string", "minLength": 70, "maxLength": 70},
        ),
        (
            ("/properties/a", "maxLength", "changed"),
            ("/properties/c", "maxItems", "changed"),
            ("/properties/d", "maxLength", "changed"),
        ),
        {"max_string": 64, "max_items": 8},
    ),
    Case(
        "pattern instead of lengths",
        {"type": "string", "pattern": r"^[\w-]+@\d{2,3}\.(?:com|org)$", "maxLength": 9},
        {"type": "string", "pattern": r"^[A-Za-z0-9_\-]+@[0-9]{2,3}\.(?:com|org)$"},
        (("", "maxLength", "dropped"),),
    ),
    Case(
        "pattern that a grammar cannot take",
        {"type": "string", "pattern": "^.*$", "maxLength": 9},
        {"type": "string", "maxLength": 9},
        (("", "pattern", "dropped"),),
    ),
    Case(
        "bounds of numbers",
        _obj(a={"type": "number", "minimum": 1}, b={"type": "integer", "minimum": 1.5}),
        _obj(a={"type": "number"}, b={"type": "integer", "minimum": 2}),
        (("/properties/a", "minimum", "dropped"),),
    ),
    Case(
        "a choice stands alone",
        _obj(v={"minimum": 1, "anyOf": [{"type": "integer"}, {"type": "boolean"}]}),
        _obj(v={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "boolean"}]}),
    ),
    Case(
        "required without description",
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}},
        {
            **_obj(a={"type": "integer"}),
            "required": ["a"],
            "additionalProperties": {"type": "integer"},
        },
    ),
    Case(
        "recursion stays",
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {**TREE, "$defs": {"Tree": TREE}},
    ),
    Case(
        "a minimum above its maximum never ends",
        {"type": ["string", "null"], "minLength": 3, "maxLength": 2},
        {"type": "null"},
    ),
)


@pytest.mark.parametrize("case", LLAMA, ids=lambda case: case.id)
def test_llama_cpp_gets_only_what_becomes_a_rule(case: Case) -> None:
    """What the converter passes over is left out and reported."""
    _check(case, "llama_cpp")


PATTERNS = (
    (r"^\d+$", "^[0-9]+$"),
    ("^a(b|c)?$", "^a(?:b|c)?$"),
    (r"^\/x\.y$", r"^/x\.y$"),
    ("^é{2}$", "^é{2}$"),
    ("^[]$", None),
    ("^a|b$", None),
    ("^a", None),
    ("a$", None),
    ("^a\\$", None),
    ("^(?=a)b$", None),
    (r"^\s$", None),
    (r'^[^"]$', None),
    ("^[!-~]$", None),
    ('^"$', None),
    (r"^\\$", None),
    ("^(a$", None),
    ("^a)$", None),
    ("^*$", None),
    ("^a{3,2}$", None),
    ("^a**$", None),
    ("^" + "(" * 30 + ")" * 30 + "$", None),
    ("^[a$", None),
    ("^^a$", None),
)


@pytest.mark.parametrize(("pattern", "expected"), PATTERNS)
def test_a_pattern_is_taken_over_only_where_json_text_stays_json(
    pattern: str, expected: str | None
) -> None:
    """A quote, a backslash or a control character would break out of the string."""
    schema = rewrite_schema({"type": "string", "pattern": pattern}, "llama_cpp").schema
    assert schema.get("pattern") == expected


def test_very_deep_and_very_wide_schemas_are_cut_with_a_loss() -> None:
    """Neither depth nor references that multiply make it slow or fail."""
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        deep = {"type": "array", "items": deep}
    for dialect in ("gemini", "openai_strict", "llama_cpp"):
        losses = rewrite_schema(deep, dialect).losses
        assert [loss.why for loss in losses if "deep" in loss.why] == ["it is nested too deep"]
    twice = {
        f"D{n}": _obj(a={"$ref": f"#/$defs/D{n + 1}"}, b={"$ref": f"#/$defs/D{n + 1}"})
        for n in range(40)
    }
    wide = {"$ref": "#/$defs/D0", "$defs": {**twice, "D40": {"type": "string"}}}
    assert any("too large" in loss.why for loss in rewrite_schema(wide, "gemini").losses)
    assert "$defs" in rewrite_schema(wide, "llama_cpp").schema


def test_an_unknown_dialect_is_refused() -> None:
    """A misspelt name is not taken for another dialect."""
    name: Any = "openai_strickt"
    with pytest.raises(RequestError, match="Did you mean 'openai_strict'"):
        rewrite_schema({"type": "object"}, name)
