"""Arguments of every shape, and the words of the refusals."""

from typing import Any

import pytest

from support.argument_shapes import ARGUMENT_SHAPES, ArgumentShape
from surecall.reading import read_arguments
from surecall.wire.substitutes import UNREADABLE_KEY


@pytest.mark.parametrize("shape", ARGUMENT_SHAPES, ids=lambda shape: shape.id)
def test_every_shape_has_its_one_outcome(shape: ArgumentShape) -> None:
    """Arguments are read to the expected object with its receipts, or refused with one code."""
    reading = read_arguments(shape.raw)
    assert reading.value == shape.value
    assert reading.state == shape.state
    assert tuple(receipt.rule for receipt in reading.receipts) == shape.rules
    assert [error.code for error in reading.errors] == ([shape.code] if shape.code else [])


def test_the_table_of_shapes_is_large_and_names_each_shape_once() -> None:
    """At least sixty shapes are pinned."""
    assert len(ARGUMENT_SHAPES) >= 60
    assert len({shape.id for shape in ARGUMENT_SHAPES}) == len(ARGUMENT_SHAPES)


@pytest.mark.parametrize("shape", ARGUMENT_SHAPES, ids=lambda shape: shape.id)
def test_an_end_that_is_known_changes_no_outcome_but_that_of_missing_brackets(
    shape: ArgumentShape,
) -> None:
    """Only brackets missing at the end of text that came to its own end are added."""
    reading = read_arguments(shape.raw, ended=True)
    if shape.id == "cut before the last brace":
        assert (reading.state, reading.value) == ("whole", {"a": {"b": 1}})
        assert [receipt.rule for receipt in reading.receipts] == ["close_missing_brackets"]
    else:
        assert reading == read_arguments(shape.raw)


def test_an_object_is_used_as_it_is() -> None:
    """Arguments that are an object already are not copied."""
    value = {"a": [1]}
    assert read_arguments(value).value is value


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        pytest.param('{"a": "é"}', 11, id="text"),
        pytest.param({"a": "é"}, 10, id="object"),
        pytest.param("  ", 2, id="blank"),
        pytest.param(None, 0, id="null"),
        pytest.param("x" * 200_001, 200_001, id="too large"),
    ],
)
def test_the_size_of_what_arrived_is_told(raw: Any, size: int) -> None:
    """Bytes are counted, not characters."""
    assert read_arguments(raw).bytes == size


def test_the_limit_counts_what_is_inside_the_space() -> None:
    """Space around the text does not count against the limit."""
    text = '```json\n{"a":1}\n```'
    assert read_arguments(f"  {text}  ", max_bytes=len(text)).value == {"a": 1}
    assert read_arguments(f"  {text}  ", max_bytes=len(text) - 1).value is None


def test_a_refusal_for_size_names_the_largest_fields() -> None:
    """The model learns the size, the limit, and which values to shorten."""
    raw = '{"title": "t", "body": "' + "x" * 500 + '", "note": "' + "y" * 50 + '", "k": 1}'
    (error,) = read_arguments(raw, max_bytes=100).errors
    assert f"{len(raw):,} bytes; the limit is 100 bytes" in error.message
    assert "body (502 bytes), note (52 bytes), title (3 bytes)" in error.message
    assert error.hint == "Send shorter values, or split the work into several calls."


def test_a_refusal_for_size_of_an_object_names_the_largest_fields() -> None:
    """Arguments that came as an object are measured the same way."""
    (error,) = read_arguments({"a": 1, "b": "x" * 100}, max_bytes=50).errors
    assert "b (102 bytes), a (1 bytes)" in error.message


def test_a_huge_text_is_refused_without_reading_it() -> None:
    """Above two mebibytes the fields are not looked for."""
    (error,) = read_arguments('{"a":"' + "x" * 3_000_000 + '"}').errors
    assert error.message == "The arguments are 3,000,008 bytes; the limit is 200,000 bytes."


@pytest.mark.parametrize(
    ("raw", "words", "hint"),
    [
        pytest.param('{"a": @}', "at character 6 near", "Send one JSON object", id="syntax"),
        pytest.param('{"a": NaN}', "the number NaN", "Send null", id="not finite"),
        pytest.param("[1]", "are an array, not a JSON object", "Send one JSON object", id="array"),
        pytest.param('"hi"', "are text ('hi'), not", "Send one JSON object", id="text"),
        pytest.param('{"a":1,"a":2}', "'/a' more than once", "Send each key once.", id="key"),
        pytest.param('{"a": "\\ud800"}', "surrogate", "Send the whole character", id="half"),
        pytest.param('{"a": [1,', "after '{\"a\": [1,'", "with less", id="cut"),
    ],
)
def test_a_refusal_says_what_was_wrong_and_what_to_do(raw: str, words: str, hint: str) -> None:
    """The message names the fault and its place, the hint the next step."""
    (error,) = read_arguments(raw).errors
    assert words in error.message
    assert error.hint is not None
    assert hint in error.hint


def test_a_refusal_echoes_little_of_what_arrived() -> None:
    """However long the arguments are, the message stays short."""
    (error,) = read_arguments('{"a": ' + "@" * 100_000 + "}").errors
    assert len(error.message) < 400


def test_receipts_show_what_was_changed() -> None:
    """Before and after are in the receipt, clipped."""
    (receipt,) = read_arguments('```json\n{"a": 1}\n```').receipts
    assert receipt.before == '```json\n{"a": 1}\n```'
    assert receipt.after == '{"a": 1}'
    assert receipt.lossless


def test_a_python_value_nested_beyond_the_stack_is_refused() -> None:
    """Depth never becomes a RecursionError."""
    value: dict[str, Any] = {}
    for _ in range(50_000):
        value = {"a": value}
    reading = read_arguments(value)
    assert reading.state == "unreadable"
    assert reading.errors[0].code in {"ARGUMENTS_TOO_DEEP", "ARGUMENTS_JSON_PARSE_ERROR"}


def test_an_object_nested_too_deep_is_refused() -> None:
    """The limit of depth holds for objects as for text."""
    value: dict[str, Any] = {}
    for _ in range(128):
        value = {"a": value}
    assert read_arguments(value).errors[0].code == "ARGUMENTS_TOO_DEEP"
    assert read_arguments(value["a"]).value == value["a"]


@pytest.mark.parametrize("schema", [None, {"type": "object"}], ids=["no_schema", "open_schema"])
@pytest.mark.parametrize("raw", [{UNREADABLE_KEY: "{"}, '{"_unreadable_arguments": "{"}'])
def test_what_stands_for_unreadable_arguments_is_refused(
    raw: Any, schema: dict[str, Any] | None
) -> None:
    """A translation or a model that copies its history must not make them readable."""
    reading = read_arguments(raw, schema)
    assert (reading.value, reading.state) == (None, "unreadable")
    assert [error.code for error in reading.errors] == ["ARGUMENTS_JSON_PARSE_ERROR"]


DOUBTFUL = [
    '{"amount"1264}',
    '{"amount": 11238 "dry_run": true}',
    '{"rows": [1, , 3]}',
    '{"rows": [1, 2, ]}',
    '{"amount": .5}',
    '{"amount": +21}',
    '{"amount": 7}}',
    '{"amount": : 7}',
    '{amount": 7}',
    '{"note": say}',
    '{"note": "say "hi" now"}',
    '{"note": "a\\]"}',
    '{"note": "a" "dry_run": true}',
    '{"note"; "a"}',
    '{"note" = "a"}',
    '{{"note": "a"}}',
    '{"note": "a"} or so',
    '{"a": 1 // "b": 2\n}',
]
"""Texts that a lost piece of other arguments may have left behind."""
OTHER_NOTATIONS = [
    "{'note': 'it\\'s', 'dry_run': True}",
    "{note: 'a', /* all */ dry_run: true}",
    '```json\n{"note": "a"}\n```',
    'Here is what I mean:\n```json\n{"note": "a"}\n```\nThat is all.',
    'Here are the arguments: {"note": "a"}',
    '"{\\"note\\": \\"a\\"}"',
    '{"note": "def f():\n    return 1\n"}',
    '\ufeff{"note": "a"}',
]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_what_a_lost_piece_leaves_behind_is_not_certain(text: str) -> None:
    """It is likely at most, with a doubt and a receipt that says that something may be lost."""
    reading = read_arguments(text, ended=True)
    if reading.value is not None:
        assert (reading.certainty, bool(reading.doubt)) == ("likely", True)
        assert not all(receipt.lossless for receipt in reading.receipts)


@pytest.mark.parametrize("text", OTHER_NOTATIONS)
def test_another_notation_is_certain(text: str) -> None:
    """Every character of it is grammar that can be read in one way only."""
    reading = read_arguments(text)
    assert reading.value is not None
    assert (reading.certainty, reading.doubt) == ("certain", "")
    assert all(receipt.lossless for receipt in reading.receipts)


def test_a_comma_at_the_end_is_no_doubt_where_every_property_is_there() -> None:
    """Then no member can be lost; with an inner object, or without a property, one may be."""
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    certain = read_arguments('{"a": 1, "b": 2,}', schema)
    assert (certain.certainty, certain.receipts[0].lossless) == ("certain", True)
    for text in ('{"a": 1,}', '{"a": 1, "b": [2,]}', '{"a": {"b": 1,}, "b": 1}'):
        assert read_arguments(text, schema).certainty == "likely"


def test_damaged_json_in_a_text_is_not_certain() -> None:
    """A text that is read as the object its schema asks for may have lost a piece, too."""
    schema = {"type": "object", "properties": {"x": {"type": "array"}}}
    assert read_arguments({"x": "['a', 'b']"}, schema).certainty == "certain"
    reading = read_arguments({"x": '["a", , "b"]'}, schema)
    assert reading.value is None or reading.certainty == "likely" or reading.errors


def test_an_empty_text_behind_no_arguments_says_nothing() -> None:
    """Some servers send both for a tool that has no parameters; for others it is refused."""
    nothing = {"type": "object", "properties": {}}
    assert read_arguments('{}""', nothing).value == {}
    assert read_arguments('{}""', {"type": "object", "properties": {"a": {}}}).value is None
