"""Questions about a text: asked again they cost as much, and give the same answer."""

import pytest

from surecall.calls import NeedMore, Source, ToolNames
from surecall.calls.json_spans import find_extent
from surecall.calls.source import MAX_QUESTIONS, TooMuchWork
from surecall.calls.unmarked_json import read_row
from surecall.calls.written_python import read_calls_in_python


def source_of(text: str, *, final: bool = True) -> Source:
    """Return a text without tools."""
    return Source(text, ToolNames(), final=final)


def cost(source: Source, at: int) -> int:
    """Return how many questions reading a row takes."""
    source.begin()
    read_row(source, at)
    return source.questions


def read_often(source: Source, times: int) -> None:
    """Read the same row again and again, as one reader would."""
    for _ in range(times):
        read_row(source, 0)


def test_a_row_that_was_read_costs_as_many_questions_again() -> None:
    """Where reading gives up must not depend on what was read before."""
    text = '{"a":1}\n{"b":[2]}\n{"c":3} x'
    used = source_of(text)
    first = [cost(used, at) for at in (0, 8, 18)]
    assert first == [cost(used, at) for at in (0, 8, 18)]
    assert first == [cost(source_of(text), at) for at in (0, 8, 18)]


def test_a_row_that_was_read_gives_the_same_row_again() -> None:
    """A second look finds the same spans."""
    source = source_of('{"a":1}; {"b":2} x')
    first = read_row(source, 0)
    assert first is not None
    assert first.spans == ((0, 7), (9, 16))
    assert read_row(source, 0) == first


def test_asking_again_comes_to_an_end_as_well() -> None:
    """Answers that are known count against the bound, too."""
    source = source_of("{} {}")
    read_row(source, 0)
    with pytest.raises(TooMuchWork):
        read_often(source, MAX_QUESTIONS)


def test_nothing_is_remembered_of_a_value_that_may_go_on() -> None:
    """A row that the end of the text leaves open is not decided."""
    source = source_of('{"a":1}\n{"b"', final=False)
    for _ in range(2):
        with pytest.raises(NeedMore):
            read_row(source, 0)


@pytest.mark.parametrize(
    ("text", "found"),
    [("<tool_calls>", "<tool_calls>"), ("<tool_call>", "<tool_call>"), ("<tool", ""), ("", "")],
)
def test_the_longest_literal_that_stands_there_is_found(text: str, found: str) -> None:
    """Literals may begin with one another, and the order they are given in does not matter."""
    source = source_of(text)
    assert source.starts_any(("<tool_call>", "<tool_calls>"), 0) == found
    assert source.starts_any(("<tool_calls>", "<tool_call>"), 0) == found


def test_a_literal_that_may_still_come_is_waited_for() -> None:
    """The beginning of a literal at the end of a text that goes on decides nothing."""
    with pytest.raises(NeedMore):
        source_of("<tool_call", final=False).starts_any(("<tool_call>", "<x>"), 0)
    assert source_of("<y> and more", final=False).starts_any(("<tool_call>", "<x>"), 0) == ""


def test_what_was_found_is_found_again_from_anywhere_before_it() -> None:
    """A literal is looked for once, and an earlier place is looked at for itself."""
    text = source_of("..a..b..a")
    assert [text.find("a", at) for at in (3, 4, 8, 9, 0, 2, 3)] == [8, 8, 8, -1, 2, 2, 8]
    found = [text.find_any(("b", "a"), at) for at in (3, 5, 6, 9, 0)]
    assert found == [(5, "b"), (5, "b"), (8, "a"), (-1, ""), (2, "a")]


def test_a_value_of_very_many_brackets_is_given_up() -> None:
    """Brackets and quotes count, whichever way the end is looked for."""
    for text in ("[" + "[]," * 250_000, "['" + "a','" * 250_000, "[" + '"",[],' * 250_000):
        with pytest.raises(TooMuchWork):
            source_of(text).value_end(0)
        with pytest.raises(TooMuchWork):
            find_extent(source_of(text), 0)


def test_long_strings_are_not_passed_over_for_ever() -> None:
    """What is between the brackets counts as well, when there is much of it."""
    text = '["a" + [\\"<JSON>' * 500_000
    for look in (lambda: source_of(text).plain_end(0), lambda: find_extent(source_of(text), 0)):
        with pytest.raises(TooMuchWork):
            look()


@pytest.mark.parametrize("unit", ['"a",', "[],", "{1: 2},"], ids=["texts", "lists", "pairs"])
def test_a_call_in_python_syntax_of_very_many_values_is_given_up(unit: str) -> None:
    """Each value, comma and bracket counts."""
    few, many = (f"[fit(a=[{unit * count}])]" for count in (5_000, 50_000))
    assert read_calls_in_python(source_of(few), 0).state == "whole"
    with pytest.raises(TooMuchWork):
        read_calls_in_python(source_of(many), 0)
