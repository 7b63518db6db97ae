"""Text of strangers cannot steer a terminal."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.cli.terminal import bounded, escape_json, line_of, printable, shown_value

UNSAFE = set(range(0x20)) | set(range(0x7F, 0xA0)) | {0x2028, 0x2029, 0x202E, 0x2066, 0xFEFF}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[31mred", r"\x1b[2J\x1b[31mred"),
        ("a\x9b1m", r"a\x9b1m"),
        ("bell\x07 back\x08", r"bell\x07 back\x08"),
        ("safe\u202eexe.txt", r"safe\u202eexe.txt"),
        ("lone \ud800", r"lone \ud800"),
        ("line\r\nnext\ttab", "line\nnext\ttab"),
        ("over\rwritten", r"over\rwritten"),
    ],
)
def test_controls_are_shown_by_number(text: str, shown: str) -> None:
    """What steers a terminal is written out; newlines and tabs stay."""
    assert printable(text) == shown


@settings(max_examples=200)
@given(st.text(st.characters(), max_size=200))
def test_a_line_is_one_safe_line(text: str) -> None:
    """No text becomes more than one line or keeps a control character."""
    line = line_of(text)
    assert not {ord(char) for char in line} & UNSAFE
    assert line.splitlines() == ([line] if line else [])
    line.encode("utf-8")


@settings(max_examples=200)
@given(st.text(max_size=60), st.integers(1, 40))
def test_bounded_is_bounded(text: str, width: int) -> None:
    """A bounded line is never longer than asked."""
    assert len(bounded(text, width)) <= width


@settings(max_examples=200)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_escaped_json_means_the_same(text: str) -> None:
    """Escaping for the terminal does not change the value."""
    escaped = escape_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(escaped) == {"text": text}
    assert not {ord(char) for char in escaped} & UNSAFE


def test_values_are_shown_as_text_or_json() -> None:
    """Text stays as it is, anything else is JSON, and what is not JSON is still shown."""
    assert shown_value('{"a": 1}') == '{"a": 1}'
    assert shown_value({"a": [None, True]}) == '{"a":[null,true]}'
    assert shown_value(float("nan")) == "nan"
