"""What is refused, what is cut, and what a refusal says."""

from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, ToolDefinitionError
from surecall.reading import ValueCandidate
from surecall.schema import SchemaChecker

from .test_answers import BOOLEAN, INTEGER, MOOD, PEOPLE, PERSON, STRING, TAGS, nullable, obj

BO = {"name": "Bo", "age": 3}

AMBIGUOUS = [
    ("HAPPY or SAD", MOOD),
    ("HAPPY, SAD", MOOD),
    ("could be HAPPY, could be neutral", MOOD),
    ("between 5 and 10", INTEGER),
    ("5-10", INTEGER),
    ("2026-03-31", INTEGER),
    ("yes and no", BOOLEAN),
    ("It may be true, or it may be false", BOOLEAN),
    ('{"m": "HAPPY | SAD"}', obj(m=MOOD)),
    ('{"m": ["HAPPY", "SAD"]}', obj(m=MOOD)),
    ('[{"name": "Bo", "age": 3}, {"name": "Al", "age": 4}]', PERSON),
    ('{"name": "Bo", "age": 3} or {"name": "Al", "age": 4}', PERSON),
    ('```json\n{"name": "Bo", "age": 3}\n```\n\n```json\n{"name": "Bo", "age": 4}\n```', PERSON),
    ("a@example.com or b@example.com", {"type": "string", "format": "email"}),
]

INVALID = [
    ('{"name": "Bo"}', PERSON, {"name": "Bo"}),
    ('{"name": null, "age": 3}', PERSON, {"name": None, "age": 3}),
    ('{"name": "Bo", "age": 3.7}', PERSON, {"name": "Bo", "age": 3.7}),
    ('{"name": "Bo", "age": "soon"}', PERSON, {"name": "Bo", "age": "soon"}),
    ("3.7", INTEGER, 3.7),
    ("-5", {"type": "integer", "minimum": 0}, -5),
    ('["HAPPY", "odd"]', {"type": "array", "items": MOOD}, ["HAPPY", "odd"]),
    ('["a", null]', TAGS, ["a", None]),
    ('{"when": "03/04/2026"}', obj(when={"type": "string", "format": "date"}),
     {"when": "03/04/2026"}),
]  # fmt: skip

NOT_FOUND = [
    ("", INTEGER),
    ("   ", PERSON),
    ("I cannot help with that.", PERSON),
    ("I cannot help with that.", INTEGER),
    ("No idea", MOOD),
    ("version 1.2.3", INTEGER),
    ("There are no errors.", BOOLEAN),
    ("HAPP", MOOD),
    ("happiness", MOOD),
    ("I'm happy to help!", MOOD),
]

CUT = [
    ('{"name": "Bo", "age', PERSON, {"name": "Bo"}),
    ('{"name": "Bo', PERSON, {"name": "Bo"}),
    ('[{"name": "Bo", "age": 3}, {"name": "A', PEOPLE, [BO, {"name": "A"}]),
    ('["red", "gre', TAGS, ["red", "gre"]),
    ('Sure: {"name": "Bo", "home": {"city": "Os', obj(name=STRING, home=obj(city=STRING)),
     {"name": "Bo", "home": {"city": "Os"}}),
    ('```json\n{"name": "Bo", ', PERSON, {"name": "Bo"}),
]  # fmt: skip


def codes(reading: Any) -> set[str]:
    """Return the codes of a reading."""
    return {error.code for error in reading.errors}


@pytest.mark.parametrize(("text", "schema"), AMBIGUOUS)
def test_what_could_be_two_things_is_refused(text: str, schema: Any) -> None:
    """None of them is taken, and the message names them."""
    reading = surecall.read_value(text, schema, accept="likely", finish_reason="stop")
    assert reading.state == "unreadable"
    assert codes(reading) == {Code.VALUE_AMBIGUOUS}
    assert " or " in reading.errors[0].message


@pytest.mark.parametrize(("text", "schema", "value"), INVALID)
def test_what_does_not_fit_is_refused_and_shown(text: str, schema: Any, value: Any) -> None:
    """What is missing is not made up; what is there can be looked at."""
    reading = surecall.read_value(text, schema, accept="likely", finish_reason="stop")
    assert reading.state == "unreadable"
    assert codes(reading) == {Code.VALUE_INVALID}
    assert reading.value == value


@pytest.mark.parametrize(("text", "schema"), NOT_FOUND)
def test_what_names_no_value_is_refused(text: str, schema: Any) -> None:
    """A refusal or a remark is not turned into a value."""
    reading = surecall.read_value(text, schema, accept="likely", finish_reason="stop")
    assert (reading.state, reading.value) == ("unreadable", None)
    assert codes(reading) == {Code.VALUE_NOT_FOUND}


@pytest.mark.parametrize("finish_reason", [None, "stop", "length"])
@pytest.mark.parametrize(("text", "schema", "value"), CUT)
def test_what_is_cut_is_never_whole(
    text: str, schema: Any, value: Any, finish_reason: str | None
) -> None:
    """What can be saved is shown where likely readings are accepted, and it stays cut."""
    reading = surecall.read_value(text, schema, accept="likely", finish_reason=finish_reason)
    assert (reading.state, reading.value) == ("cut", value)
    assert codes(reading) == {Code.VALUE_TRUNCATED}
    assert surecall.read_value(text, schema, finish_reason=finish_reason).value is None
    closed = surecall.read_value(text, schema, cut="close")
    assert (closed.state, closed.value) == ("cut", value)


@pytest.mark.parametrize("schema", [PERSON, STRING, True])
def test_the_finish_reason_cuts_what_looks_whole(schema: Any) -> None:
    """Nobody can tell what was still to come."""
    reading = surecall.read_value('{"name": "Bo", "age": 3}', schema, finish_reason="length")
    assert (reading.state, reading.value) == ("cut", None)
    assert "token limit" in reading.errors[0].message


def test_a_finish_reason_that_nobody_knows_leaves_a_doubt() -> None:
    """The value is only likely then."""
    text = '{"name": "Bo", "age": 3}'
    reading = surecall.read_value(text, PERSON, accept="likely", finish_reason="odd")
    assert (reading.value, reading.state, reading.certainty) == (BO, "whole", "likely")
    assert "odd" in reading.doubt
    assert codes(surecall.read_value(text, PERSON, finish_reason="odd")) == {Code.VALUE_NOT_CERTAIN}


def test_missing_brackets_are_added_only_behind_an_end() -> None:
    """As elsewhere: the model must have come to its own end."""
    text = '[{"name": "Bo", "age": 3}'
    ended = surecall.read_value(text, PEOPLE, accept="likely", finish_reason="stop")
    assert (ended.state, ended.value, ended.certainty) == ("whole", [BO], "likely")
    assert surecall.read_value(text, PEOPLE, accept="likely").state == "cut"


def test_a_likely_value_is_listed_where_only_certain_ones_are_taken() -> None:
    """The caller sees what would have been taken, and why it was not."""
    reading = surecall.read_value('Here: {"name": "Bo", "age": 3}', PERSON)
    assert (reading.state, reading.value) == ("unreadable", None)
    assert codes(reading) == {Code.VALUE_NOT_CERTAIN}
    assert reading.candidates[0] == ValueCandidate(BO, "prose", fits=True)
    assert reading.doubt in reading.errors[0].message


def test_what_was_beaten_is_listed() -> None:
    """The best fit is taken, and the others can be looked at."""
    text = 'Draft {"name": "Bo", "age": 2}, final answer {"name": "Bo", "age": 3}, not {"x": 1}'
    reading = surecall.read_value(text, PERSON, accept="likely")
    assert reading.value == BO
    assert [item.fits for item in reading.candidates] == [True, False]
    assert reading.candidates[0].value == {"name": "Bo", "age": 2}


def test_an_ambiguous_text_lists_its_candidates() -> None:
    """Each of the values that fit equally is there."""
    text = '{"name": "Bo", "age": 3} or {"name": "Al", "age": 4}'
    reading = surecall.read_value(text, PERSON, accept="likely")
    assert [item.value["name"] for item in reading.candidates] == ["Bo", "Al"]
    assert reading.value is None


def test_extra_properties_stay_where_they_are_allowed() -> None:
    """Only a schema that allows no others has them dropped, with a receipt that says so."""
    text = '{"name": "Bo", "age": 3, "mood": "fine"}'
    kept = surecall.read_value(text, {**PERSON, "additionalProperties": True})
    assert kept.value == {**BO, "mood": "fine"}
    dropped = surecall.read_value(text, PERSON, accept="likely")
    assert dropped.value == BO
    (receipt,) = dropped.receipts
    assert (receipt.rule, receipt.place, receipt.lossless) == ("drop_extra_key", "/mood", False)


def test_defaults_are_left_alone() -> None:
    """A property that is left out stays out."""
    schema = obj("name", name=STRING, age={"type": "integer", "default": 5})
    assert surecall.read_value('{"name": "Bo"}', schema).value == {"name": "Bo"}
    optional = obj("name", name=STRING, age=nullable(INTEGER))
    assert surecall.read_value('{"name": "Bo"}', optional).value == {"name": "Bo"}


def test_receipts_inside_a_text_say_where() -> None:
    """A repair of JSON that came as text has the pointer and the span."""
    reading = surecall.read_value(
        '{"home": "{city: \'Oslo\'}", "more": 1}', obj(home=obj(city=STRING)), accept="likely"
    )
    assert reading.value == {"home": {"city": "Oslo"}}
    assert any(receipt.place.startswith("/home@") for receipt in reading.receipts)


def test_a_long_text_is_refused_unread() -> None:
    """The limit is the caller's."""
    assert codes(surecall.read_value("12345", INTEGER, max_bytes=3)) == {Code.JSON_TOO_LARGE}


def test_a_schema_that_cannot_be_used_is_an_error_of_the_program() -> None:
    """It is not the model's fault."""
    with pytest.raises(ToolDefinitionError):
        surecall.read_value("1", {"type": "whatever"})


def test_boolean_schemas_and_compiled_ones_are_taken() -> None:
    """`true` takes anything, `false` nothing."""
    assert surecall.read_value("[1]", True).value == [1]
    assert surecall.read_value("[1]", False, accept="likely").state == "unreadable"
    checker = SchemaChecker(INTEGER)
    assert surecall.read_value("5", INTEGER, checker=checker).value == 5
