"""Schemas rewritten for Gemini and llama.cpp, and what holds for every dialect."""

from typing import Any

import pytest

from surecall.base.errors import RequestError
from surecall.schema import rewrite_schema

from .rewrites import TREE, Rewrite, assert_rewritten, obj

GEMINI = (
    Rewrite("plain", {"type": "string", "minLength": 1}, {"type": "string", "minLength": 1}),
    Rewrite("upper-case type", {"type": "STRING"}, {"type": "string"}),
    Rewrite(
        "null in a list of types",
        {"type": ["string", "null"], "description": "A name."},
        {"type": "string", "nullable": True, "description": "A name."},
    ),
    Rewrite(
        "null in a choice",
        {"anyOf": [{"type": "integer"}, {"type": "null"}], "title": "N"},
        {"type": "integer", "nullable": True, "title": "N"},
    ),
    Rewrite(
        "several types",
        {"type": ["string", "integer", "null"], "minLength": 2, "minimum": 3},
        {
            "anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "minimum": 3}],
            "nullable": True,
        },
    ),
    Rewrite("null alone", {"type": "null"}, {"type": "null"}),
    Rewrite("const", {"const": "a"}, {"type": "string", "enum": ["a"]}),
    Rewrite(
        "enum with null",
        {"enum": ["a", None]},
        {"type": "string", "enum": ["a"], "nullable": True},
    ),
    Rewrite(
        "enum of numbers",
        {"type": "integer", "enum": [1, 2], "description": "Size."},
        {"type": "integer", "description": "Size. [one of: [1,2]]"},
        (("", "enum", "weakened"),),
    ),
    Rewrite(
        "enum with empty text",
        {"enum": ["", "a"]},
        {"type": "string", "description": '[one of: ["","a"]]'},
        (("", "enum", "weakened"),),
    ),
    Rewrite(
        "known formats",
        obj(a={"type": "string", "format": "date-time"}, b={"type": "number", "format": "float"}),
        {
            **obj(
                a={"type": "string", "format": "date-time"}, b={"type": "number", "format": "float"}
            ),
            "propertyOrdering": ["a", "b"],
        },
    ),
    Rewrite(
        "other formats",
        {"type": "string", "format": "email"},
        {"type": "string", "description": "[format: email]"},
        (("", "format", "dropped"),),
    ),
    Rewrite(
        "open bounds of integers are exact",
        {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9.5},
        {"type": "integer", "minimum": 1, "maximum": 9},
    ),
    Rewrite(
        "open bounds of numbers are not",
        {"type": "number", "exclusiveMinimum": 0, "minimum": -1},
        {"type": "number", "minimum": 0, "description": "[exclusiveMinimum: 0]"},
        (("", "exclusiveMinimum", "weakened"),),
    ),
    Rewrite(
        "draft 4 bounds",
        {"type": "integer", "minimum": 3, "exclusiveMinimum": True},
        {"type": "integer", "minimum": 4},
    ),
    Rewrite("array without items", {"type": "array"}, {"type": "array", "items": {}}),
    Rewrite(
        "tuple",
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
        {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "maxItems": 2,
        },
        (("", "prefixItems", "weakened"),),
    ),
    Rewrite(
        "closed object",
        {**obj(a={"type": "string"}), "additionalProperties": False, "required": ["a", "zz"]},
        {**obj(a={"type": "string"}), "required": ["a"]},
        (("", "additionalProperties", "dropped"), ("", "required", "weakened")),
    ),
    Rewrite(
        "allOf",
        {
            "allOf": [
                {**obj(a={"type": "string"}), "required": ["a"]},
                {**obj(a={"maxLength": 3}, b={"type": "integer"}), "required": ["b"]},
            ],
            "description": "Both.",
        },
        {
            **obj(a={"type": "string", "maxLength": 3}, b={"type": "integer"}),
            "required": ["a", "b"],
            "propertyOrdering": ["a", "b"],
            "description": "Both.",
        },
    ),
    Rewrite(
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
            **obj(
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
    Rewrite(
        "oneOf with shared keywords",
        obj(v={"description": "V", "minimum": 1, "oneOf": [{"type": "integer"}, {"const": "x"}]}),
        obj(
            v={
                "description": "V",
                "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "enum": ["x"]}],
            }
        ),
        (("/properties/v", "oneOf", "weakened"), ("/properties/v", "enum", "dropped")),
    ),
    Rewrite(
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
    Rewrite(
        "reference with its own description",
        {
            **obj(a={"$ref": "#/$defs/A", "description": "Mine."}),
            "$defs": {"A": {"type": "boolean", "description": "Theirs."}},
        },
        obj(a={"type": "boolean", "description": "Mine."}),
    ),
    Rewrite(
        "reference beside keywords in draft 7",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            **obj(a={"$ref": "#/definitions/A", "minLength": 5}),
            "definitions": {"A": {"type": "string"}},
        },
        obj(a={"type": "string"}),
    ),
    Rewrite(
        "reference by anchor",
        {"$ref": "#a", "$defs": {"A": {"$anchor": "a", "type": "boolean"}}},
        {"type": "boolean"},
    ),
    Rewrite(
        "reference to nothing",
        obj(a={"$ref": "#/$defs/A"}, b={"$ref": "https://example.com/x"}),
        {**obj(a={}, b={}), "propertyOrdering": ["a", "b"]},
        (("/properties/a", "$ref", "dropped"), ("/properties/b", "$ref", "dropped")),
    ),
    Rewrite(
        "recursion",
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {
            **obj(children={"type": "array", "items": {"type": "object"}}),
            "required": ["children"],
        },
        (
            ("/$defs/Tree/properties/children/items", "$ref", "weakened"),
            ("/$defs/Tree", "additionalProperties", "dropped"),
        ),
    ),
    Rewrite(
        "nothing fits",
        obj(a={"type": "string", "minLength": 3, "maxLength": 2}, b=False),
        obj(a={}),
        (("/properties/b", "false", "dropped"), ("/properties/a", "false", "dropped")),
    ),
    Rewrite(
        "type from other keywords",
        obj(a={"maxLength": 3}),
        obj(a={"type": "string", "maxLength": 3}),
        (("/properties/a", "type", "changed"),),
    ),
    Rewrite(
        "own order of properties",
        {**obj(a={"type": "string"}, b={"type": "string"}), "propertyOrdering": ["b"]},
        {**obj(a={"type": "string"}, b={"type": "string"}), "propertyOrdering": ["b", "a"]},
    ),
)


@pytest.mark.parametrize("case", GEMINI, ids=lambda case: case.id)
def test_gemini_is_told_what_its_subset_can_say(case: Rewrite) -> None:
    """Everything else is left out with a loss, or told in the description."""
    assert_rewritten(case, "gemini")


LLAMA = (
    Rewrite("any", {}, {}),
    Rewrite(
        "bounded on wish",
        obj(
            a={"type": "string"},
            b={"type": "string", "maxLength": 99},
            c={"type": "array", "items": {"type": "integer"}},
            d={"type": "string", "minLength": 70},
        ),
        obj(
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
    Rewrite(
        "pattern instead of lengths",
        {"type": "string", "pattern": r"^[\w-]+@\d{2,3}\.(?:com|org)$", "maxLength": 9},
        {"type": "string", "pattern": r"^[A-Za-z0-9_\-]+@[0-9]{2,3}\.(?:com|org)$"},
        (("", "maxLength", "dropped"),),
    ),
    Rewrite(
        "pattern that a grammar cannot take",
        {"type": "string", "pattern": "^.*$", "maxLength": 9},
        {"type": "string", "maxLength": 9},
        (("", "pattern", "dropped"),),
    ),
    Rewrite(
        "bounds of numbers",
        obj(a={"type": "number", "minimum": 1}, b={"type": "integer", "minimum": 1.5}),
        obj(a={"type": "number"}, b={"type": "integer", "minimum": 2}),
        (("/properties/a", "minimum", "dropped"),),
    ),
    Rewrite(
        "a choice stands alone",
        obj(v={"minimum": 1, "anyOf": [{"type": "integer"}, {"type": "boolean"}]}),
        obj(v={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "boolean"}]}),
    ),
    Rewrite(
        "required without description",
        {"type": "object", "required": ["a"], "additionalProperties": {"type": "integer"}},
        {
            **obj(a={"type": "integer"}),
            "required": ["a"],
            "additionalProperties": {"type": "integer"},
        },
    ),
    Rewrite(
        "recursion stays",
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {**TREE, "$defs": {"Tree": TREE}},
    ),
    Rewrite(
        "a minimum above its maximum never ends",
        {"type": ["string", "null"], "minLength": 3, "maxLength": 2},
        {"type": "null"},
    ),
)


@pytest.mark.parametrize("case", LLAMA, ids=lambda case: case.id)
def test_llama_cpp_gets_only_what_becomes_a_rule(case: Rewrite) -> None:
    """What the converter passes over is left out and reported."""
    assert_rewritten(case, "llama_cpp")


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
        assert [loss.why for loss in losses if "deep" in loss.why] == ["it is nested too deeply"]
    twice = {
        f"D{n}": obj(a={"$ref": f"#/$defs/D{n + 1}"}, b={"$ref": f"#/$defs/D{n + 1}"})
        for n in range(40)
    }
    wide = {"$ref": "#/$defs/D0", "$defs": {**twice, "D40": {"type": "string"}}}
    assert any("too large" in loss.why for loss in rewrite_schema(wide, "gemini").losses)
    assert "$defs" in rewrite_schema(wide, "llama_cpp").schema


@pytest.mark.parametrize("dialect", ["gemini", "llama_cpp"])
def test_items_of_any_kind_keep_their_description(dialect: Any) -> None:
    """Also where nothing fits them, so that a second pass changes nothing."""
    for items in ({"description": "d"}, {"minItems": 1, "maxItems": 0, "description": "d"}):
        written = rewrite_schema({"type": "array", "items": items}, dialect).schema
        assert written["items"] == {"description": "d"}
        assert rewrite_schema(written, dialect).schema == written


def test_an_unknown_dialect_is_refused() -> None:
    """A misspelt name is not taken for another dialect."""
    name: Any = "openai_strickt"
    with pytest.raises(RequestError, match="Did you mean 'openai_strict'"):
        rewrite_schema({"type": "object"}, name)
