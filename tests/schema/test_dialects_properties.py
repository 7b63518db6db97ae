"""Rewritten schemas, for any schema and any value."""

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.schema import rewrite_schema
from surecall.schema.dialects import Dialect

DIALECTS: tuple[Dialect, ...] = ("gemini", "openai_strict", "llama_cpp")
TEXTS = {"title", "description"}
KNOWN: dict[str, set[str]] = {
    "gemini": TEXTS
    | {"type", "nullable", "enum", "format", "properties", "required", "propertyOrdering"}
    | {"items", "minItems", "maxItems", "minProperties", "maxProperties", "minLength"}
    | {"maxLength", "pattern", "minimum", "maximum", "anyOf", "default"},
    "openai_strict": TEXTS
    | {"type", "enum", "format", "properties", "required", "additionalProperties", "items"}
    | {"minItems", "maxItems", "pattern", "minimum", "maximum", "exclusiveMinimum"}
    | {"exclusiveMaximum", "multipleOf", "anyOf", "$ref", "$defs"},
    "llama_cpp": TEXTS
    | {"type", "enum", "format", "properties", "required", "additionalProperties", "items"}
    | {"minItems", "maxItems", "pattern", "minimum", "maximum", "minLength", "maxLength"}
    | {"anyOf", "$ref", "$defs"},
}

names = st.sampled_from(["a", "b", "c"])
counts = st.integers(0, 3)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 4)
    | st.sampled_from([0.5, 1.0, 2.5])
    | st.sampled_from(["", "a", "ab", "abc", "7", "2026-01-02"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
types = st.sampled_from(["string", "integer", "number", "boolean", "object", "array", "null"])


def _members(inner: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(names, inner, max_size=3)
    return {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=3),
        "const": values,
        "minimum": st.integers(-1, 3) | st.just(1.5),
        "maximum": st.integers(-1, 3) | st.just(1.5),
        "exclusiveMinimum": st.integers(-1, 3) | st.just(0.5),
        "exclusiveMaximum": st.integers(-1, 3),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "minLength": counts,
        "maxLength": counts,
        "pattern": st.sampled_from(["^a", "^[a-c]+$", r"^\d$", "^.$", "b", "^(a|ab)$", "^a|b$"]),
        "format": st.sampled_from(["date", "email", "date-time", "unheard-of"]),
        "minItems": counts,
        "maxItems": counts,
        "uniqueItems": st.booleans(),
        "items": inner | st.booleans(),
        "prefixItems": several,
        "contains": inner,
        "properties": named,
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": inner | st.booleans(),
        "patternProperties": st.dictionaries(st.just("^a"), inner, max_size=1),
        "minProperties": counts,
        "maxProperties": counts,
        "propertyNames": st.just({"maxLength": 1}),
        "dependentRequired": st.just({"a": ["b"]}),
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
        "not": inner,
        "if": inner,
        "then": inner,
        "$ref": st.sampled_from(["#/$defs/T", "#/$defs/U", "#", "#/$defs/None"]),
        "title": st.just("Title"),
        "description": st.just("Described."),
        "default": scalars,
        "examples": st.just(["x"]),
        "nullable": st.booleans(),
    }


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> dict[str, Any]:
    members = _members(inner)
    chosen = draw(st.lists(st.sampled_from(sorted(members)), max_size=4, unique=True))
    return {name: draw(members[name]) for name in chosen}


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    """Any schema, with two definitions that may refer to each other and to the whole."""
    inner = st.recursive(_objects(st.just({})) | st.booleans(), _objects, max_leaves=5)
    schema = draw(_objects(inner))
    schema["$defs"] = {"T": draw(_objects(inner)), "U": draw(_objects(st.just({})))}
    return schema


def _as_json_schema(schema: Any, dialect: str) -> Any:
    """Turn `nullable` into what a JSON Schema validator understands."""
    if dialect != "gemini" or not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key != "nullable"}
    if "properties" in plain:
        inner = plain["properties"].items()
        plain["properties"] = {name: _as_json_schema(item, dialect) for name, item in inner}
    if "items" in plain:
        plain["items"] = _as_json_schema(plain["items"], dialect)
    if "anyOf" in plain:
        plain["anyOf"] = [_as_json_schema(item, dialect) for item in plain["anyOf"]]
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") else plain


def _unknown(schema: Any, dialect: str) -> list[str]:
    """List every keyword that the dialect does not know."""
    found: list[str] = []
    stack = [schema]
    while stack:
        item = stack.pop()
        if not isinstance(item, dict):
            found.append(repr(item))
            continue
        found += [key for key in item if key not in KNOWN[dialect]]
        for key in ("properties", "$defs"):
            stack += list(item.get(key, {}).values())
        stack += item.get("anyOf", [])
        if "items" in item:
            stack.append(item["items"])
        if item.get("additionalProperties", False) is not False:
            stack.append(item["additionalProperties"])
        if dialect == "gemini":
            found += [value for value in item.get("enum", []) if not isinstance(value, str)]
            found += ["type list"] if isinstance(item.get("type"), list) else []
        if dialect == "openai_strict":
            kinds = item.get("type", [])
            kinds = [kinds] if isinstance(kinds, str) else kinds
            found += ["bare object"] if "object" in kinds and "properties" not in item else []
            found += ["bare array"] if "array" in kinds and "items" not in item else []
        if dialect == "openai_strict" and "properties" in item:
            found += sorted(set(item["properties"]) ^ set(item["required"]))
            found += ["open"] if item.get("additionalProperties") is not False else []
        if dialect == "llama_cpp" and "anyOf" in item:
            found += sorted(set(item) - TEXTS - {"anyOf", "$defs"})
    return found


def _validator(schema: dict[str, Any]) -> Any:
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True)
    except (ValueError, jsonschema_rs.ValidationError):
        return None


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=120, deadline=None)
@given(schema=schemas(), instances=st.lists(values, min_size=5, max_size=5))
def test_what_was_valid_stays_valid_unless_a_change_is_reported(
    dialect: Dialect, schema: dict[str, Any], instances: list[Any]
) -> None:
    """Only a loss of kind `changed` lets the rewritten schema refuse a value."""
    rewritten = rewrite_schema(schema, dialect)
    if any(loss.kind == "changed" for loss in rewritten.losses):
        return
    before, after = _validator(schema), _validator(_as_json_schema(rewritten.schema, dialect))
    assert after is not None
    if before is None or _is_endless(schema):
        return
    for instance in instances:
        if before.is_valid(instance):
            assert after.is_valid(instance), (instance, rewritten)


def _is_endless(schema: dict[str, Any]) -> bool:
    """Tell whether references of the schema may apply a schema to one value without end."""
    stack: list[Any] = [schema]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if "$ref" in item:
                return True
            stack += list(item.values())
        elif isinstance(item, list):
            stack += item
    return False


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=120, deadline=None)
@given(schema=schemas())
def test_only_known_keywords_are_written_and_twice_is_once(
    dialect: Dialect, schema: dict[str, Any]
) -> None:
    """No other keyword is left, the given schema stays as it is, and nothing more happens."""
    untouched = copy.deepcopy(schema)
    rewritten = rewrite_schema(schema, dialect)
    assert schema == untouched
    assert _unknown(rewritten.schema, dialect) == []
    again = rewrite_schema(rewritten.schema, dialect)
    assert again.schema == rewritten.schema


@settings(max_examples=100, deadline=None)
@given(schema=schemas(), instances=st.lists(values, min_size=8, max_size=8))
def test_a_schema_without_losses_means_the_same(
    schema: dict[str, Any], instances: list[Any]
) -> None:
    """Where nothing is reported, the rewritten schema takes exactly the same values."""
    for dialect in DIALECTS:
        rewritten = rewrite_schema(schema, dialect)
        if rewritten.losses or _is_endless(schema) or "nullable" in repr(schema):
            continue
        before, after = _validator(schema), _validator(_as_json_schema(rewritten.schema, dialect))
        if before is None:
            continue
        for instance in instances:
            assert before.is_valid(instance) == after.is_valid(instance), rewritten
