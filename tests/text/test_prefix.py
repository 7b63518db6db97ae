"""The beginning of a JSON object, in pieces."""

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.text import ObjectPrefix, continue_json

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)


def takes_all(name: str, start: str) -> bool:
    """Take every argument."""
    return True


def length_taken(text: str, size: int) -> int:
    """Return how much of a text is taken, in pieces of one size."""
    prefix = ObjectPrefix(takes_all)
    for at in range(0, len(text), size):
        if not prefix.feed(text[at : at + size]):
            return at
    return len(text)


@given(OBJECTS, st.booleans(), st.sampled_from([None, 2]), st.integers(1, 9))
def test_everything_but_the_last_brace_is_taken(
    value: Any, is_ascii: bool, indent: int | None, size: int
) -> None:
    """Whatever is in the object, and in whatever pieces it comes."""
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert length_taken(text[:-1], size) == len(text) - 1
    assert length_taken(text, 1) == len(text) - 1


@given(OBJECTS, st.integers(0, 200), st.sampled_from(string.printable))
def test_what_is_taken_may_become_an_object(value: Any, at: int, damage: str) -> None:
    """Of damaged text too: Python's own reader finds nothing wrong with it but its end."""
    text = json.dumps(value)
    text = text[:at] + damage + text[at + 1 :]
    taken = text[: length_taken(text, 1)]
    try:
        json.loads(taken)
    except json.JSONDecodeError as error:
        rest = taken[error.pos :]
        is_open = error.msg.startswith(("Unterminated", "Invalid"))
        assert is_open or not rest.strip() or rest.strip()[0] in "tfn-0123456789,.eE"
    else:
        pytest.fail(f"{taken!r} is whole")


_DOUBTS = """
[
'
{"a" 1
{"a": 01
{"a": tru3
{"a": 1, "a":
{"a": "\t
{"a": "\\x
{"a": [1}
{"a": 1]
{}
{"a": 1,}
{"a": "\\ud800x
{"a": NaN
"""


@pytest.mark.parametrize("text", _DOUBTS.strip().split("\n"))
def test_doubts(text: str) -> None:
    """The last character of each cannot be there."""
    assert length_taken(text, 1) < len(text)
    assert not ObjectPrefix(takes_all).feed(text)


def test_names_and_kinds_of_arguments() -> None:
    """Those of the object itself are asked about, and no others."""
    asked: list[tuple[str, str]] = []
    prefix = ObjectPrefix(lambda name, start: not asked.append((name, start)))
    assert prefix.feed('{"a": {"b": 1}, "c\\u0064": [2], "e": -')
    assert asked == [("a", "{"), ("cd", "["), ("e", "-")]
    assert not ObjectPrefix(lambda name, start: name != "x").feed('{"x": 1')


@given(OBJECTS, st.integers(1, 60), st.booleans())
def test_the_rest_makes_the_value(value: Any, at: int, is_ascii: bool) -> None:
    """Where there is a rest, it is right; behind plain text there is one."""
    text = json.dumps(value, ensure_ascii=is_ascii)
    begun = text[:at]
    rest = continue_json(begun, value)
    if rest is not None:
        assert json.loads(begun + rest) == value
    else:
        assert "\\" in begun or "." in begun or "e" in begun or begun[-1] in "-0123456789"


def test_no_rest_for_another_value() -> None:
    """What was sent cannot be taken back."""
    assert continue_json('{"a": "1', {"a": 1}) is None
    assert continue_json('{"a": "x", "b"', {"a": "x"}) is None
    assert continue_json('{"a": "x\\', {"a": "x"}) is None
    assert continue_json('{"a": "x"', {"a": "x", "b": 2}) == ',"b":2}'
