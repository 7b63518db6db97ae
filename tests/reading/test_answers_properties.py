"""What holds for every text and schema."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import surecall
from surecall.reading import RULES, ValueReading
from surecall.schema import SchemaChecker
from surecall.text import encode_text

from .test_answers import MOOD, PEOPLE, PERSON, SHAPE, TAGS, nullable, obj

SCHEMAS: list[Any] = [
    True,
    {"type": "integer"},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "string"},
    {"type": "string", "format": "date"},
    MOOD,
    PERSON,
    PEOPLE,
    TAGS,
    SHAPE,
    nullable(PERSON),
    {"type": "array", "items": {"type": "number"}},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    obj("name", name={"type": "string"}, tags=TAGS, mood=nullable(MOOD)),
    {"$ref": "#/$defs/T", "$defs": {"T": {"anyOf": [
        {"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/T"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/T"}},
    ]}}},
]  # fmt: skip
PIECES = [
    '{"name": "Bo", "age": 3}', '{"kind": "circle", "r": 2}', '["a", 1]', "{", "}", "[", "]", '"',
    "name", "age", ":", ",", "\n", "- ", "|", "|---|", "```", "```json\n", "HAPPY", "sad", "not ",
    "1,234", "1/2", "50%", "-3", "yes", "true", "The answer is ", "**", "<name>", "</name>", " ",
    "2026-03-31", "May 3, 2026", "<think>", "</think>", "null", "é", "\ufeff", "\ud800", "'", "=",
]  # fmt: skip
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
schemas = st.sampled_from(SCHEMAS)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def as_dict(schema: Any) -> dict[str, Any]:
    """Return a schema that a checker takes."""
    return {} if schema is True else schema


@given(texts, schemas, st.sampled_from([None, "stop", "length", "odd"]))
def test_any_text_is_read_or_refused(text: str, schema: Any, finish_reason: str | None) -> None:
    """Nothing is raised; what is whole fits; what is refused has an error."""
    reading = surecall.read_value(text, schema, accept="likely", finish_reason=finish_reason)
    assert (reading.state == "whole") == (not reading.errors)
    if reading.state == "whole":
        assert SchemaChecker(as_dict(schema)).is_valid(reading.value)
        assert finish_reason != "length"
    assert (reading.certainty == "likely") == bool(reading.doubt)
    assert {receipt.rule for receipt in reading.receipts} <= RULES.keys()


@given(texts, schemas)
def test_reading_is_deterministic(text: str, schema: Any) -> None:
    """The same text means the same."""
    one = surecall.read_value(text, schema, accept="likely")
    assert one == surecall.read_value(text, schema, accept="likely")


@given(texts, schemas)
def test_what_is_certain_does_not_depend_on_what_is_accepted(text: str, schema: Any) -> None:
    """Both tiers agree on what is certain; only one takes what is likely."""
    likely = surecall.read_value(text, schema, accept="likely")
    certain = surecall.read_value(text, schema)
    if likely.state == "whole" and likely.certainty == "certain":
        assert certain == likely
    else:
        assert certain.state != "whole"
        assert certain.value is None or certain.errors


@given(json_values)
def test_json_is_returned_unchanged_and_certain(value: Any) -> None:
    """What fits is not touched."""
    reading = surecall.read_value(encode_text(value), True)
    assert reading == ValueReading(value=value)


@given(texts, schemas)
def test_every_change_has_a_receipt(text: str, schema: Any) -> None:
    """Without a receipt, the value is the text, or the JSON that it is."""
    reading = surecall.read_value(text, schema, accept="likely")
    if reading.state == "whole" and not reading.receipts:
        is_text = isinstance(reading.value, str) and reading.value.strip() == text.strip()
        assert is_text or surecall.read_value(text, True).value == reading.value


@given(st.text(max_size=300))
def test_text_for_a_string_is_kept_to_the_letter(text: str) -> None:
    """Nothing but reasoning is dropped; a text that is all a JSON string loses its quotes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    reading = surecall.read_value(text, {"type": "string"})
    has_reasoning = any(receipt.rule == "drop_reasoning" for receipt in reading.receipts)
    if not has_reasoning and not text.strip().startswith('"'):
        assert reading == ValueReading(value=text)


HOSTILE = {
    "openers": "{" * 50_000,
    "brackets": "[" * 50_000,
    "objects": '{"a":' * 20_000,
    "quotes": '"' * 50_000,
    "keys": "name: x\n" * 20_000,
    "bullets": "- a\n" * 20_000,
    "digits": "1" * 150_000,
    "groups": "1," * 60_000,
    "words": "happy " * 25_000,
    "stars": "**" * 60_000,
    "pipes": "|" * 100_000,
    "fences": "```\n" * 20_000,
    "tags": "<name>" * 20_000,
    "equals": "=" * 100_000,
    "blanks": " " * 150_000,
    "spans": "{a} " * 30_000,
    "small objects": '{"a": 1} ' * 20_000,
    "array": "[" + '{"name": 1, "age": "x"},' * 5_000 + "]",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("schema", [{"type": "integer"}, MOOD, PERSON, PEOPLE, TAGS, SHAPE])
def test_hostile_text_is_cheap(kind: str, schema: Any) -> None:
    """The work is bounded whatever the text is: what grows with its square takes minutes."""
    surecall.read_value(HOSTILE[kind], schema, accept="likely", finish_reason="stop")
