"""Numbers for text fields keep the spelling of the model."""

from dataclasses import dataclass
from typing import Any

import pytest

from surecall.reading import read_arguments

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


@dataclass(frozen=True)
class Spelled:
    id: str
    text: str
    schema: dict[str, Any]
    value: dict[str, Any]


SPELLED = (
    Spelled("version", '{"v": 3.10}', _object(v=TEXT), {"v": "3.10"}),
    Spelled("exponent", '{"v": 1e5}', _object(v=TEXT), {"v": "1e5"}),
    Spelled("leading zeros", "{zip: 01234}", _object(zip=TEXT), {"zip": "01234"}),
    Spelled("plus", '{"v": +4712345}', _object(v=TEXT), {"v": "+4712345"}),
    Spelled("hexadecimal", '{"v": 0x1F}', _object(v=TEXT), {"v": "0x1F"}),
    Spelled("underscores", '{"v": 1_000}', _object(v=TEXT), {"v": "1_000"}),
    Spelled("plain", '{"v": 5}', _object(v=TEXT), {"v": "5"}),
    Spelled("renamed", '{"V": 3.10}', _object(v=TEXT), {"v": "3.10"}),
    Spelled(
        "beside text", '{"v": 1.1, "w": "1.10"}', _object(v=TEXT, w=TEXT), {"v": "1.1", "w": "1.10"}
    ),
    Spelled(
        "number field", '{"v": 1.10, "n": 2.50}', _object(v=TEXT, n=NUMBER), {"v": "1.10", "n": 2.5}
    ),
    Spelled(
        "in a list",
        '{"v": [1.10, 2]}',
        _object(v={"type": "array", "items": TEXT}),
        {"v": ["1.10", "2"]},
    ),
    Spelled(
        "in JSON text", '{"o": "{\\"v\\": 1.10}"}', _object(o=_object(v=TEXT)), {"o": {"v": "1.10"}}
    ),
    Spelled("among options", '{"v": 1.10}', _object(v={"enum": ["1.1", "1.10"]}), {"v": "1.10"}),
)


@pytest.mark.parametrize("case", SPELLED, ids=lambda case: case.id)
def test_a_number_for_a_text_field_is_the_text_that_was_written(case: Spelled) -> None:
    """The value, and the last receipt, have the spelling of the model."""
    reading = read_arguments(case.text, case.schema)
    assert (reading.value, reading.errors) == (case.value, ())
    (receipt, *_) = [one for one in reading.receipts if one.rule == "write_as_text"]
    assert receipt.after in repr(case.value)


def test_one_number_in_two_spellings_is_refused() -> None:
    """Which of them belongs to the text field cannot be told any more."""
    reading = read_arguments('{"v": 1.10, "n": 1.1}', _object(v=TEXT, n=NUMBER))
    (error,) = reading.errors
    assert error.code == "ARGUMENTS_INVALID"
    assert "/v must be a string, got a number that was spelled 1.10 or 1.1" in error.message


def test_a_spelling_must_fit_the_schema() -> None:
    """The text is checked as it was written, not as the number would be."""
    reading = read_arguments('{"v": 1.10}', _object(v={**TEXT, "maxLength": 3}))
    (error,) = reading.errors
    assert error.path == "/v"


def test_an_object_has_no_spelling() -> None:
    """A number that came without text is written as JSON writes it."""
    assert read_arguments({"v": 3.1}, _object(v=TEXT)).value == {"v": "3.1"}


def test_numbers_beyond_a_float_do_not_disturb() -> None:
    """They stand in text here, and are passed over."""
    reading = read_arguments(
        '{"o": "{\\"v\\": 2.0, \\"w\\": \\"1e999\\"}"}', _object(o=_object(v=TEXT, w=TEXT))
    )
    assert reading.value == {"o": {"v": "2.0", "w": "1e999"}}
