"""Inference, checking and binding agree with each other and with the reference implementation."""

import datetime
import uuid
from dataclasses import make_dataclass
from typing import Any, Literal

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.schema import ArgumentBinder, SchemaChecker, infer_parameters, infer_schema

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 1.0])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)

Typed = tuple[Any, st.SearchStrategy[Any]]

LEAVES: list[Typed] = [
    (str, st.text(st.characters(codec="utf-8"), max_size=5)),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (None, st.none()),
    (Any, JSON),
    (Literal["a", 1, None], st.sampled_from(["a", 1, None])),  # noqa: PYI061
    (datetime.date, st.dates().map(str)),
    (datetime.datetime, st.datetimes().map(datetime.datetime.isoformat)),
    (datetime.time, st.times().map(datetime.time.isoformat)),
    (uuid.UUID, st.uuids().map(str)),
]


def widen(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    """Build containers, unions and records of types, each with the values that belong to it."""

    def listed(item: Typed) -> Typed:
        return list[item[0]], st.lists(item[1], max_size=3)

    def mapped(item: Typed) -> Typed:
        return dict[str, item[0]], st.dictionaries(st.sampled_from("abc"), item[1], max_size=3)

    def either(pair: tuple[Typed, Typed]) -> Typed:
        first, second = pair
        return first[0] | second[0] if first[0] or second[0] else None, first[1] | second[1]

    def fixed(pair: tuple[Typed, Typed]) -> Typed:
        return tuple[pair[0][0], pair[1][0]], st.tuples(pair[0][1], pair[1][1]).map(list)

    def record(pair: tuple[Typed, Typed]) -> Typed:
        cls = make_dataclass("Record", [("a", pair[0][0]), ("b", pair[1][0])])
        return cls, st.fixed_dictionaries({"a": pair[0][1], "b": pair[1][1]})

    pairs = st.tuples(inner, inner)
    return (
        inner.map(listed)
        | inner.map(mapped)
        | pairs.map(either)
        | pairs.map(fixed)
        | pairs.map(record)
    )


TYPES = st.recursive(st.sampled_from(LEAVES), widen, max_leaves=4)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_value_of_a_type_fits_its_schema_and_can_be_bound(data: st.DataObject) -> None:
    """What belongs to a type is valid against its schema, and binding accepts it."""
    annotation, values = data.draw(TYPES)
    value = data.draw(values)

    def function(argument: Any) -> None: ...

    function.__annotations__ = {"argument": annotation}
    assert SchemaChecker(infer_schema(annotation)).check(value) == ()
    assert SchemaChecker(infer_parameters(function)).check({"argument": value}) == ()
    assert set(ArgumentBinder(function)({"argument": value})) == {"argument"}


def schemas(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Build schemas around schemas."""
    branches = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            },
            optional={
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": st.booleans() | inner,
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"maxItems": st.integers(0, 2), "uniqueItems": st.booleans()},
        ),
        st.fixed_dictionaries(
            {}, optional={"anyOf": branches, "oneOf": branches, "allOf": branches, "not": inner}
        ),
    )


SCHEMAS = st.recursive(
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["string", "integer", "number", "boolean", "null"])}
        ),
        st.fixed_dictionaries({"enum": st.lists(JSON, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"const": JSON}),
        st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-3, 3)}),
        st.fixed_dictionaries(
            {"type": st.just("string"), "minLength": st.integers(0, 2), "pattern": st.just("^a")}
        ),
    ),
    schemas,
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(SCHEMAS, JSON)
def test_checker_agrees_with_the_reference_implementation(
    schema: dict[str, Any], value: Any
) -> None:
    """Valid means valid for both, and whatever is not valid has at least one message."""
    expected = jsonschema.Draft202012Validator(schema).is_valid(value)
    checker = SchemaChecker(schema)
    details = checker.check(value)
    assert checker.is_valid(value) is expected
    assert (details == ()) is expected
    assert all(detail.message.startswith("/") and detail.path is not None for detail in details)


@settings(max_examples=100, deadline=None)
@given(SCHEMAS, st.lists(JSON, min_size=1, max_size=3))
def test_large_value_is_refused_just_like_a_small_one(
    schema: dict[str, Any], values: list[Any]
) -> None:
    """Narrowing a large value down never loses the fact that it is wrong."""
    large = values * 2_500
    checker = SchemaChecker({"type": "array", "items": schema})
    assert (checker.check(large) == ()) is (checker.check(values) == ())
