"""One engine for calls and answers: its table, its rates over classes, and what always holds."""

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.reading import RULES, read_arguments, read_value
from surecall.schema import SchemaChecker, coerce_arguments
from surecall.schema.conversions import CONVERSIONS
from surecall.text import encode, resolve_pointer

from .fitting_sets import CLASSES, NOTHING, Item, closed

INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
STRING: dict[str, Any] = {"type": "string"}
CITY = closed("city", city=STRING, days=INTEGER)


def read(item: Item) -> tuple[Any, str]:
    """Return the value of an item and how sure it is; `NOTHING` when it is refused."""
    reading: Any
    if item.entrance == "arguments":
        reading = read_arguments(item.given, item.schema)
    else:
        reading = read_value(item.given, item.schema, accept="likely", finish_reason="stop")
    if reading.state != "whole" or reading.errors:
        return NOTHING, ""
    assert SchemaChecker(item.schema).is_valid(reading.value)
    return reading.value, reading.certainty


# The table


def test_every_conversion_has_a_listed_rule() -> None:
    """A rule of the table loses something, or can be switched off, exactly as the list says."""
    for rule in {item.rule for item in CONVERSIONS}:
        rows = [item for item in CONVERSIONS if item.rule == rule]
        assert RULES[rule].lossless == all(item.lossless for item in rows), rule
        is_for_calls = any(item.entrance != "answer" for item in rows)
        assert RULES[rule].switchable == is_for_calls, rule


def test_what_loses_something_is_only_likely() -> None:
    """A certain conversion leaves nothing out."""
    assert all(item.lossless or item.grade == "likely" for item in CONVERSIONS)
    assert {item.grade for item in CONVERSIONS} == {"certain", "likely"}


# Rates


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_read_at_least_as_likely(name: str) -> None:
    """At least 85 % of the positives have the value meant; no negative is certain."""
    items = list(CLASSES[name](Random(name)))
    positives = [item for item in items if item.value is not NOTHING]
    negatives = [item for item in items if item.value is NOTHING]
    assert min(len(positives), len(negatives)) >= 20
    wrong = [item for item in positives if not _is_same(read(item)[0], item.value)]
    assert len(wrong) <= 0.15 * len(positives), wrong
    assert [item for item in negatives if read(item)[1] == "certain"] == []


def _is_same(one: Any, other: Any) -> bool:
    return one is not NOTHING and json.dumps(one) == json.dumps(other)


# One answer at both entrances

TEXTS = ["1,5", "1,250.50", "$5", "1.2.3", "3 or 4", "50%", "1/2", "", "12", "0x10", "7 miles"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_number_has_one_answer(text: str) -> None:
    """What a call and an answer both read is the same value; only a foreign unit is refused."""
    schema = closed("n", n=NUMBER)
    call = read(Item("arguments", {"n": text}, schema))
    answer = read(Item("answer", json.dumps({"n": text}), schema))
    assert call == answer or (text, call[0]) == ("7 miles", NOTHING)


def test_a_comma_before_one_digit_is_decimal_and_likely() -> None:
    """`"1,5"` is 1.5, with a receipt and a doubt."""
    reading = read_arguments('{"n": "1,5"}', closed("n", n=NUMBER))
    assert (reading.value, reading.certainty) == ({"n": 1.5}, "likely")
    (receipt,) = reading.receipts
    assert (receipt.rule, receipt.place, receipt.before, receipt.after) == (
        "find_number", "/n", "1,5", 1.5,
    )  # fmt: skip
    assert reading.doubt == (
        '/n must be a number, got the string "1,5". ' + receipt.why.replace(".", ": /n.")
    )


# Forbidden names


def test_a_forbidden_name_is_left_out_as_likely() -> None:
    """The receipt holds what is lost; certain readings go without it."""
    reading = read_arguments('{"city": "Oslo", "foo": 1}', CITY)
    assert (reading.value, reading.certainty, reading.errors) == ({"city": "Oslo"}, "likely", ())
    (receipt,) = reading.receipts
    assert (receipt.rule, receipt.place, receipt.before) == ("drop_extra_key", "/foo", 1)
    assert not receipt.lossless
    assert "/foo" in reading.doubt
    certain = coerce_arguments({"city": "Oslo", "foo": 1}, CITY)
    assert certain.errors
    assert certain.receipts == ()


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"city": "Oslo", "dayz": 3}, id="misspelt"),
        pytest.param({"city": "Oslo", "das": 3}, id="lost a piece"),
        pytest.param({"foo": 1}, id="nothing known"),
        pytest.param({"foo": {"days": 2}, "city": "Oslo"}, id="holds an argument"),
        pytest.param({"City": "Oslo", "CITY": "Bergen"}, id="said twice"),
        pytest.param({"name": "other", "arguments": {"city": "Oslo"}}, id="another call"),
    ],
)
def test_a_name_that_may_mean_an_argument_is_not_left_out(arguments: Any) -> None:
    """What would be lost then may be what was meant; the model is asked."""
    assert read_arguments(arguments, CITY).errors


def test_the_names_of_nested_objects_are_left_out_as_well() -> None:
    """Each has its own receipt."""
    schema = closed("at", at={"type": "array", "items": closed("x", x=INTEGER)})
    given: Any = {"at": [{"x": 1, "z": 2}, {"x": "3", "z": 4}]}
    reading = read_arguments(given, schema)
    assert reading.value == {"at": [{"x": 1}, {"x": 3}]}
    assert [item.place for item in reading.receipts] == ["/at/0/z", "/at/1/x", "/at/1/z"]


def test_a_parameterless_tool_takes_nothing() -> None:
    """Whatever is sent to it is left out, and only likely meant so."""
    reading = read_arguments({"input": ""}, closed())
    assert (reading.value, reading.certainty) == ({}, "likely")


# What always holds

SCHEMAS: list[dict[str, Any]] = [
    CITY,
    closed("n", n=NUMBER, tags={"type": "array", "items": STRING}),
    closed("mood", mood={"enum": ["HAPPY", "VERY_SAD"]}, at={"type": "string", "format": "date"}),
    closed("v", v={"anyOf": [INTEGER, {"type": "null"}, closed("n", n=NUMBER)]}),
    closed("ok", ok={"type": "boolean"}, when={"type": ["integer", "null"]}),
]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.floats(-9, 9),
    st.sampled_from(["3", "1,5", "happy", "Very sad", "true", "null", "a, b", "2026/3/1", "[1]"]),
    st.text(max_size=5),
)  # fmt: skip
NAMES = ["city", "City", "days", "n", "tags", "mood", "at", "v", "ok", "when", "foo"]
values = st.dictionaries(
    st.sampled_from(NAMES),
    scalars
    | st.lists(scalars, max_size=3)
    | st.dictionaries(st.sampled_from(NAMES), scalars, max_size=2),
    max_size=4,
)
schemas = st.sampled_from(SCHEMAS)


@given(values, schemas)
def test_what_fits_is_returned_unchanged(value: Any, schema: dict[str, Any]) -> None:
    """Neither entrance touches it, and neither writes a receipt."""
    if not SchemaChecker(schema).is_valid(value):
        return
    coerced = coerce_arguments(value, schema, accept="likely")
    assert coerced.value is value
    assert (coerced.receipts, coerced.errors, coerced.doubt) == ((), (), "")
    reading = read_value(encode(value).decode(), schema)
    assert (reading.value, reading.receipts, reading.certainty) == (value, (), "certain")


@given(values, schemas)
def test_fitting_twice_is_fitting_once(value: Any, schema: dict[str, Any]) -> None:
    """What was fitted fits."""
    once = coerce_arguments(value, schema, accept="likely")
    if not once.errors:
        twice = coerce_arguments(once.value, schema, accept="likely")
        assert (twice.value, twice.receipts) == (once.value, ())


@given(values, schemas)
def test_what_is_certain_is_so_at_both_levels(value: Any, schema: dict[str, Any]) -> None:
    """Accepting likely readings changes no certain one."""
    certain = coerce_arguments(value, schema)
    if not certain.errors:
        assert coerce_arguments(value, schema, accept="likely") == certain


@given(values, schemas)
def test_a_lossless_change_can_be_told_back(value: Any, schema: dict[str, Any]) -> None:
    """The receipt of one changed value holds what stood at its place."""
    found = coerce_arguments(value, schema, accept="likely")
    if len(found.receipts) == 1 and found.receipts[0].rule not in ("fill_null", "fill_constant"):
        (receipt,) = found.receipts
        before = resolve_pointer(value, receipt.place)
        told = receipt.place.rsplit("/")[-1] if receipt.rule == "rename_key" else before
        assert encode(receipt.before) == encode(told)


@given(values, schemas)
def test_both_entrances_give_one_answer(value: Any, schema: dict[str, Any]) -> None:
    """Where a call and an answer are both read as certain, they are the same."""
    call = coerce_arguments(value, schema)
    answer = read_value(encode(value).decode(), schema)
    if not call.errors and answer.state == "whole":
        assert encode(call.value) == encode(answer.value)
