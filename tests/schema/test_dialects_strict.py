"""Schemas rewritten for OpenAI's strict mode."""

from typing import Any

import pytest

from surecall.schema import coerce_arguments, rewrite_schema

from .rewrites import TREE, Rewrite, assert_rewritten, losses_of, obj


def _closed(**properties: Any) -> dict[str, Any]:
    return {**obj(**properties), "required": list(properties), "additionalProperties": False}


def _only(value: Any) -> dict[str, Any]:
    kind = {bool: "boolean", int: "integer", str: "string"}[type(value)]
    return {"type": kind, "enum": [value]}


STRICT = (
    Rewrite(
        "optional becomes nullable",
        {**obj(a={"type": "string"}, b={"enum": ["x"]}), "required": ["a"]},
        {
            **obj(a={"type": "string"}, b={"type": ["string", "null"], "enum": ["x", None]}),
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        (("", "additionalProperties", "changed"), ("", "required", "changed")),
    ),
    Rewrite(
        "length goes into the description",
        {
            **obj(a={"type": "string", "maxLength": 3, "default": "x", "pattern": "^a"}),
            "required": ["a"],
            "additionalProperties": False,
        },
        {
            **obj(a={"type": "string", "pattern": "^a", "description": "[maxLength: 3]"}),
            "required": ["a"],
            "additionalProperties": False,
        },
        (("/properties/a", "maxLength", "dropped"),),
    ),
    Rewrite(
        "any value",
        {**obj(a={}), "required": ["a"], "additionalProperties": False},
        {
            **obj(a={"anyOf": [{"type": t} for t in ("string", "number", "boolean", "null")]}),
            "required": ["a"],
            "additionalProperties": False,
        },
        (("/properties/a", "type", "changed"),),
    ),
    Rewrite(
        "recursion stays",
        {"$ref": "#/$defs/Tree", "$defs": {"Tree": TREE}},
        {**TREE, "$defs": {"Tree": TREE}},
    ),
    Rewrite(
        "no parameters",
        {},
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        (("", "type", "changed"), ("", "additionalProperties", "changed")),
    ),
    Rewrite(
        "a listed object is closed",
        {
            **obj(a={"const": {"b": 1, "c": {"d": "x"}}}),
            "required": ["a"],
            "additionalProperties": False,
        },
        _closed(a=_closed(b=_only(1), c=_closed(d=_only("x")))),
    ),
    Rewrite(
        "listed objects and other values",
        {
            **obj(a={"enum": [{"b": True}, {}, "x", None], "description": "A."}),
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
    Rewrite(
        "an optional listed object",
        {**obj(a={"const": {"b": 1}}), "additionalProperties": False},
        _closed(a={**_closed(b=_only(1)), "type": ["object", "null"]}),
        (("", "required", "changed"),),
    ),
    Rewrite(
        "listed arrays",
        {
            **obj(a={"const": [1, 1]}, b={"const": []}, c={"const": [1, "x"]}),
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
    Rewrite(
        "a listed object at the top",
        {"const": {"a": 1}, "title": "T"},
        {**_closed(a=_only(1)), "title": "T"},
    ),
    Rewrite(
        "listed objects at the top",
        {"enum": [{"a": 1}, {"a": 2}]},
        _closed(a={"anyOf": [_only(1), _only(2)]}),
        (("", "anyOf", "weakened"),),
    ),
    Rewrite(
        "what looks around goes into the description",
        {
            **obj(a={"type": "string", "pattern": "^(?!x)"}, b={"type": "integer"}),
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        _closed(
            a={"type": "string", "description": "[pattern: ^(?!x)]"},
            b={"type": "integer"},
        ),
        (("/properties/a", "pattern", "dropped"),),
    ),
    Rewrite(
        "a format is one of texts",
        {
            **obj(a={"type": "integer", "format": "date"}),
            "required": ["a"],
            "additionalProperties": False,
        },
        _closed(a={"type": "integer", "description": "[format: date]"}),
        (("/properties/a", "format", "dropped"),),
    ),
    Rewrite(
        "not an object at the top",
        {"type": "string"},
        {"type": "string"},
        (("", "type", "over_limit"),),
    ),
)


@pytest.mark.parametrize("case", STRICT, ids=lambda case: case.id)
def test_strict_mode_gets_closed_objects_with_all_properties_required(case: Rewrite) -> None:
    """Every place that became stricter is reported as changed."""
    assert_rewritten(case, "openai_strict")


def test_null_for_an_optional_argument_is_read_as_absence() -> None:
    """What strict mode makes of an optional argument is undone when arguments are read."""
    schema = {
        **obj(a={"type": "string"}, b={"type": "integer"}, c={"type": ["string", "null"]}),
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
        deep = {**obj(a=deep), "required": ["a"], "additionalProperties": False}
    deep["properties"]["e"] = {"enum": [str(number) for number in range(1001)]}
    deep["required"].append("e")
    losses = rewrite_schema(deep, "openai_strict").losses
    assert [(loss.keyword, loss.kind) for loss in losses] == [
        ("properties", "over_limit"),
        ("enum", "over_limit"),
    ]
    assert losses[0].why == "11 levels; at most 10 are accepted"


def test_the_length_of_names_and_values_is_limited_in_strict_mode() -> None:
    """All of them together, and those of one long list."""
    listed = {"enum": [f"{number:0100}" for number in range(251)]}
    losses = rewrite_schema(_closed(a=listed), "openai_strict").losses
    assert losses_of(losses) == (("/properties/a", "enum", "over_limit"),)
    names = {f"{number:0100}": {"type": "string"} for number in range(1201)}
    losses = rewrite_schema(_closed(**names), "openai_strict").losses
    assert losses_of(losses) == (("", "properties", "over_limit"),)
    assert losses[0].why.startswith("120100 characters")


def test_a_listed_value_may_be_nested_as_deep_as_it_likes() -> None:
    """It is cut with a loss; a schema cannot make rewriting run out of stack."""
    value: Any = {}
    for _ in range(300):
        value = {"a": value}
    rewritten = rewrite_schema(_closed(a={"const": value}), "openai_strict")
    assert ("/properties/a", "enum", "weakened") in losses_of(rewritten.losses)
