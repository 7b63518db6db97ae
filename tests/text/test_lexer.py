"""The scanner knows where a value ends, and where it has not ended yet."""

from dataclasses import dataclass

import pytest

from surecall.text import ValueScanner, scan_value_end


@dataclass(frozen=True)
class Extent:
    id: str
    text: str
    value: str
    start: int = 0


EXTENTS = [
    Extent("object", '{"a": 1} tail', '{"a": 1}'),
    Extent("array", "[1, [2, {}]], 3", "[1, [2, {}]]"),
    Extent("leading-blanks", ' \n\ufeff{"a": 1}', ' \n\ufeff{"a": 1}'),
    Extent("brackets-in-a-string", '{"a": "}]{["}x', '{"a": "}]{["}'),
    Extent("escaped-quote", r'{"a": "\"}"}x', r'{"a": "\"}"}'),
    Extent("escaped-backslash", r'{"a": "\\"}x', r'{"a": "\\"}'),
    Extent("single-quotes", "{'a': '}', 'b': 1} x", "{'a': '}', 'b': 1}"),
    Extent("double-in-single", "{'a': '\"}'} x", "{'a': '\"}'}"),
    Extent("apostrophe-in-bare-text", "{a: it's} x", "{a: it's}"),
    Extent("string", '"a } b" tail', '"a } b"'),
    Extent("number", "12, 13", "12"),
    Extent("word", "true}", "true"),
    Extent("after-a-marker", 'call:{"a": {}} {', 'call:{"a": {}}', start=5),
]


@pytest.mark.parametrize("case", EXTENTS, ids=lambda case: case.id)
def test_the_end_of_a_value_is_found(case: Extent) -> None:
    """The end is right after the value, whatever its strings hold."""
    assert scan_value_end(case.text, case.start) == len(case.value)


@pytest.mark.parametrize("case", EXTENTS, ids=lambda case: case.id)
def test_the_end_is_the_same_one_character_at_a_time(case: Extent) -> None:
    """Feeding single characters finds the same end, counted over all of them."""
    scanner = ValueScanner()
    found = [scanner.feed(mark) for mark in case.text[case.start :]]
    expected = len(case.value) - case.start
    assert found[-1] == expected
    # Words and numbers are known to have ended only at the character after them.
    assert found.index(expected) + 1 in {expected, expected + 1}


@pytest.mark.parametrize(
    "text", ["", "  ", "{", '{"a": [1', '{"a": "x', '{"a": "x\\', '{"a": "x\\"}', "12", "['"]
)
def test_an_open_value_has_no_end(text: str) -> None:
    """While the value may go on there is no end."""
    assert scan_value_end(text) is None


def test_the_state_follows_the_value() -> None:
    """State and depth can be asked for at any time."""
    scanner = ValueScanner()
    assert (scanner.state, scanner.depth) == ("before", 0)
    scanner.feed('  {"a": [')
    assert (scanner.state, scanner.depth) == ("inside", 2)
    scanner.feed('"x')
    assert scanner.feed('"]} more') == 14
    assert (scanner.state, scanner.depth) == ("complete", 0)
    assert scanner.feed("ignored") == 14


def test_a_number_ends_when_the_text_is_over() -> None:
    """Closing tells that a number or word is complete, and that an object is not."""
    number = ValueScanner()
    assert number.feed("12") is None
    assert number.close() == 2
    cut = ValueScanner()
    cut.feed('{"a": 12')
    assert cut.close() is None
    assert cut.state == "inside"


def test_a_single_quote_after_a_piece_that_ended_with_a_colon_opens_a_string() -> None:
    """What stood at the end of one piece decides what the next one begins with."""
    scanner = ValueScanner()
    assert scanner.feed("{'a':") is None
    assert scanner.feed("'}'}") == 9
