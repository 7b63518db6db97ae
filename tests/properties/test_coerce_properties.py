"""Whatever the schema and the value: coercion changes only what is wrong, and tells all of it."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from surecall.base.records import Receipt
from surecall.schema import (
    Coerced,
    SchemaChecker,
    coerce_arguments,
    property_schema,
    type_text_value,
)
from surecall.text import encode, encode_text, parse_pointer

NAMES = ("a", "b", "due_days", "dueDays", "userId", "input", "kind")
WORDS = ("red", "Red", "dark_blue", "darkBlue", "1", "2", "true", "null", "", "x-1")
TEXTS = (
    *WORDS, "RED", "dark-blue", " 3 ", "3.0", "-0", "1e3", "1,000", "yes", "None", "[1]", '["1"]',
    '{"a":"1"}', '{"A":1,"b":null}', '"[1]"', "2026/11/15", "2026-11-15", "10:00", "[", "{",
    "['1']", "{'a': '1',}", "[1, 2",
)  # fmt: skip

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e22]),
    st.sampled_from(TEXTS),
    st.text(max_size=6),
)
keys = st.sampled_from(
    [*NAMES, "A", "B ", "due-days", "Due Days", "user_id", '"b"', "arguments", "args", "type", "z"]
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)

leaf_schemas = st.one_of(
    st.sampled_from(
        [
            {"type": "integer"},
            {"type": "integer", "minimum": 2},
            {"type": "number"},
            {"type": "boolean"},
            {"type": "string"},
            {"type": "string", "format": "date"},
            {"type": "string", "format": "time"},
            {"type": "string", "pattern": "^[a-z]"},
            {"type": "null"},
            {"type": ["integer", "null"]},
            {"type": ["string", "integer"]},
            {"type": ["boolean", "number"]},
            {"type": "array"},
            {"type": "object"},
            {"$ref": "#/$defs/n"},
            {},
        ]
    ),
    st.lists(st.sampled_from([*WORDS, 1, 2, True, None]), min_size=1, max_size=4).map(
        lambda options: {"enum": options}
    ),
)


def _object(properties: dict[str, Any], required: list[str], closed: bool | None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if closed is not None:
        schema["additionalProperties"] = not closed
    return schema


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        _object,
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
        st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        st.sampled_from([True, True, False, None]),
    )


part_schemas = st.recursive(
    leaf_schemas,
    lambda inner: st.one_of(
        _objects(inner),
        inner.map(lambda items: {"type": "array", "items": items}),
        st.lists(inner, min_size=1, max_size=3).map(lambda branches: {"anyOf": branches}),
        st.lists(inner, min_size=1, max_size=2).map(lambda branches: {"oneOf": branches}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
    ),
    max_leaves=6,
)
NODE = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/n"}},
    "additionalProperties": False,
}
schemas = _objects(part_schemas).map(lambda schema: {**schema, "$defs": {"n": NODE}})

LIKELY: dict[str, list[Any]] = {
    "integer": [3, "3", " 4 ", "3.0", 3.0, "x", None, "null"],
    "number": [2.5, "2.5", "1e3", 3, "None"],
    "boolean": [True, "true", "False", "yes", "0", None],
    "string": ["red", 5, True, 2.5, None, "2026/11/15", "10:00"],
    "null": [None, "null", "None"],
}
SPELLINGS = (str, str, str.upper, str.title, lambda name: f'"{name}"', lambda name: f"{name} ")


def _likely(draw: st.DrawFn, schema: dict[str, Any]) -> Any:
    """Draw what a model may send for a schema: right, or wrong in a common way."""
    if "$ref" in schema:
        schema = NODE | {"properties": {"a": {"type": "integer"}}}
    for keyword in ("anyOf", "oneOf", "allOf"):
        if keyword in schema:
            return _likely(draw, draw(st.sampled_from(schema[keyword])))
    if "enum" in schema:
        option = draw(st.sampled_from(schema["enum"]))
        return draw(st.sampled_from([option, str(option), str(option).upper()]))
    kind = schema.get("type", "string")
    kind = draw(st.sampled_from(kind)) if isinstance(kind, list) else kind
    if kind == "object":
        value: Any = {}
        for name, part in schema.get("properties", {}).items():
            if draw(st.booleans()) or name in schema.get("required", ()):
                value[draw(st.sampled_from(SPELLINGS))(name)] = _likely(draw, part)
    elif kind == "array":
        element = _likely(draw, schema.get("items", {"type": "integer"}))
        value = draw(st.sampled_from([[element], [element, element], element]))
    else:
        return draw(st.sampled_from(LIKELY[kind]))
    return draw(st.sampled_from([value, value, encode_text(value), repr(value)]))


@st.composite
def likely_calls(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """Draw a schema, and arguments that are nearly right for it."""
    schema = draw(schemas)
    value = _likely(draw, schema)
    return schema, draw(st.sampled_from([value, value, value, {"arguments": value}, [value]]))


any_calls = st.one_of(
    st.tuples(schemas, st.dictionaries(keys, values, max_size=4)),
    st.tuples(schemas, values),
    likely_calls(),
    likely_calls(),
)


def _replay(value: Any, receipts: tuple[Receipt, ...]) -> Any:
    """Apply receipts one after the other, and see that each says what was there before."""
    for receipt in receipts:
        if "@" not in receipt.place:  # a repair inside the text that the receipt before is about
            value = _replayed(value, parse_pointer(receipt.place), receipt)
    return value


def _replayed(value: Any, parts: tuple[str, ...], receipt: Receipt) -> Any:
    if parts and receipt.rule in ("rename_key", "drop_null") and len(parts) == 1:
        assert isinstance(value, dict)
        assert parts[0] in value
        if receipt.rule == "drop_null":
            assert encode(value[parts[0]]) == encode(receipt.before)
            return {key: item for key, item in value.items() if key != parts[0]}
        assert receipt.before == parts[0]
        assert receipt.after not in value
        return {receipt.after if key == parts[0] else key: item for key, item in value.items()}
    if not parts:
        assert encode(value) == encode(receipt.before)
        return receipt.after
    if isinstance(value, list):
        at = int(parts[0])
        return [*value[:at], _replayed(value[at], parts[1:], receipt), *value[at + 1 :]]
    return {**value, parts[0]: _replayed(value[parts[0]], parts[1:], receipt)}


def _check(value: Any, schema: dict[str, Any], result: Coerced) -> None:
    before = encode(value)
    is_valid = SchemaChecker(schema).is_valid(result.value) and isinstance(result.value, dict)
    assert is_valid == (not result.errors)
    assert bool(result.receipts) == (encode(result.value) != before)
    assert encode(_replay(value, result.receipts)) == encode(result.value)
    for receipt in result.receipts:
        if receipt.rule != "drop_null" and "@" not in receipt.place:
            assert encode(receipt.before) != encode(receipt.after)


@settings(max_examples=100, deadline=None)
@given(call=any_calls)
def test_every_change_has_a_receipt_and_the_rest_an_error(call: tuple[dict[str, Any], Any]) -> None:
    """The result fits or has errors, receipts lead from the input to it, the input is unchanged."""
    schema, value = call
    before = encode(value)
    result = coerce_arguments(value, schema, tool_name="z")
    assert encode(value) == before
    _check(value, schema, result)


@settings(max_examples=100, deadline=None)
@given(call=any_calls)
def test_coercing_twice_changes_nothing_more(call: tuple[dict[str, Any], Any]) -> None:
    """What coercion made stays as it is, whether it fits or not."""
    schema, value = call
    once = coerce_arguments(value, schema)
    twice = coerce_arguments(once.value, schema)
    assert twice.receipts == ()
    assert twice.value is once.value
    assert bool(twice.errors) == bool(once.errors)


@settings(max_examples=100, deadline=None)
@given(schema=schemas, value=st.dictionaries(st.sampled_from(NAMES), values, max_size=3))
def test_a_value_that_fits_is_never_altered(schema: dict[str, Any], value: dict[str, Any]) -> None:
    """The same object comes back, without receipts."""
    assume(SchemaChecker(schema).is_valid(value))
    result = coerce_arguments(value, schema)
    assert result.value is value
    assert (result.receipts, result.errors) == ((), ())


@settings(max_examples=100, deadline=None)
@given(
    schema=schemas,
    value=st.dictionaries(st.sampled_from(NAMES), values, max_size=3),
    wrong=st.sampled_from(["3", "x", None, True, [1]]),
)
def test_a_property_that_fits_is_kept_beside_one_that_does_not(
    schema: dict[str, Any], value: dict[str, Any], wrong: Any
) -> None:
    """Only parts that do not fit are touched."""
    assume(SchemaChecker(schema).is_valid(value))
    properties = {**schema["properties"], "wrong": {"type": "integer", "minimum": 3}}
    result = coerce_arguments({**value, "wrong": wrong}, {**schema, "properties": properties})
    assert all(receipt.place == "/wrong" for receipt in result.receipts)
    for key, item in value.items():
        assert result.value[key] is item


@settings(max_examples=100, deadline=None)
@given(text=st.one_of(st.sampled_from(TEXTS), st.text(max_size=20)), schema=schemas)
def test_typed_text_is_the_text_or_what_it_says(text: str, schema: dict[str, Any]) -> None:
    """Any schema and any text give a JSON value; a string parameter keeps every character."""
    assert type_text_value(text, {"type": "string"}) is text
    for name in schema["properties"]:
        encode_text(type_text_value(text, property_schema(schema, name)))


@settings(max_examples=100, deadline=None)
@given(value=values)
def test_json_and_python_spellings_of_a_container_are_the_same_value(value: Any) -> None:
    """An object or array is read from its JSON and from its Python literal."""
    for kind in (dict, list):
        if isinstance(value, kind):
            schema = {"type": "object" if kind is dict else "array"}
            text = encode_text(value)
            assert type_text_value(text, schema) == value
            if text.isprintable() and '\\"' not in text:  # see below
                assert type_text_value(repr(value), schema) == value


@pytest.mark.parametrize("value", [['a "b" c'], ['a"b'], {"k": 'say "hi" now'}])
def test_quotes_inside_quotes_of_the_other_kind_are_text(value: Any) -> None:
    """As in Python's literals."""
    schema = {"type": "object" if isinstance(value, dict) else "array"}
    assert type_text_value(repr(value), schema) == value


def test_a_lone_quote_at_the_edge_of_others_may_be_a_slip() -> None:
    """The text stays what it is, and does not fit the schema."""
    assert type_text_value("['\"', 'x']", {"type": "array"}) == "['\"', 'x']"
