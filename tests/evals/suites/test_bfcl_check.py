"""Which calls count as the expected ones."""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.evals.cases import IdealCall
from surecall.evals.suites.single_turn import check_call, check_calls, fold_text


def doc(**properties: Any) -> dict[str, Any]:
    """Describe a function `f`; a parameter is required when its entry says so."""
    required = [name for name, entry in properties.items() if entry.pop("required", False)]
    return {"name": "f", "parameters": {"properties": properties, "required": required}}


@dataclass(frozen=True)
class Value:
    """One parameter `x`: how it is declared, what counts as right, and what was sent."""

    id: str
    declared: dict[str, Any]
    accepted: list[Any]
    sent: Any
    wrong: str | None = None


NUMBERS = {"type": "array", "items": {"type": "float"}}
WORDS = {"type": "array", "items": {"type": "string"}}
VALUES = (
    Value("equal", {"type": "integer"}, [5], 5),
    Value("other_number", {"type": "integer"}, [5], 6, "wrong_value"),
    Value("one_of_several", {"type": "integer"}, [5, 6], 6),
    Value("whole_for_float", {"type": "float"}, [5.0], 5),
    Value("whole_answer_for_float", {"type": "float"}, [5], 5),
    Value("float_for_integer", {"type": "integer"}, [5], 5.0, "wrong_type"),
    Value("flag_for_integer", {"type": "integer"}, [1], True, "wrong_type"),
    Value("text_for_integer", {"type": "integer"}, [5], "5", "wrong_type"),
    Value("null", {"type": "string"}, ["a", ""], None, "wrong_type"),
    Value("flag", {"type": "boolean"}, [True], True),
    Value("other_flag", {"type": "boolean"}, [True], False, "wrong_value"),
    Value("text_without_case", {"type": "string"}, ["New York"], "new york"),
    Value("text_without_marks", {"type": "string"}, ["St. John's, 4/5"], 'st_john"s 4-5'),
    Value("other_text", {"type": "string"}, ["Paris"], "Rome", "wrong_value"),
    Value("empty_text_is_absence", {"type": "string"}, ["a", ""], "", "wrong_value"),
    Value("list", NUMBERS, [[1.0, 2.5]], [1.0, 2.5]),
    Value("list_of_whole_numbers", NUMBERS, [[1, 2]], [1, 2]),
    Value("whole_number_within_list", NUMBERS, [[1.5, 2.0]], [1.5, 2], "wrong_type"),
    Value("list_in_other_order", WORDS, [["a", "b"]], ["b", "a"], "wrong_value"),
    Value("list_too_short", WORDS, [["a", "b"]], ["a"], "wrong_value"),
    Value("texts_in_a_list", WORDS, [["New York"]], ["new-york"]),
    Value("list_of_wrong_elements", WORDS, [["a"]], [1], "wrong_type"),
    Value("scalar_for_list", WORDS, [["a"]], "a", "wrong_type"),
    Value("variable", {"type": "integer"}, ["count"], "count"),
    Value("variable_is_literal", {"type": "integer"}, ["count"], "Count", "wrong_value"),
    Value("object", {"type": "dict"}, [{"a": [1, 2], "b": ["x", ""]}], {"a": 2}),
    Value("object_with_choice", {"type": "dict"}, [{"a": [1], "b": ["X"]}], {"a": 1, "b": "x"}),
    Value("object_lacks_key", {"type": "dict"}, [{"a": [1], "b": ["x"]}], {"a": 1}, "wrong_value"),
    Value("object_with_more", {"type": "dict"}, [{"a": [1]}], {"a": 1, "c": 2}, "wrong_value"),
    Value(
        "list_of_objects",
        {"type": "array", "items": {"type": "dict"}},
        [[{"a": [1]}, {"a": [2]}]],
        [{"a": 1}, {"a": 2}],
    ),
    Value("any_number", {"type": "any"}, [5], 5),
    Value("any_text", {"type": "any"}, ["A b"], "ab"),
    Value("several_types", {"type": ["string", "number"]}, [42], 42),
    Value("several_types_other", {"type": ["string", "number"]}, [42], "42", "wrong_value"),
)


@pytest.mark.parametrize("case", VALUES, ids=lambda case: case.id)
def test_a_value_counts_as_right_or_not(case: Value) -> None:
    """Type and value are judged by what is declared and what is accepted."""
    function = doc(x={**case.declared})
    reasons = check_call(IdealCall("f", {"x": case.sent}), function, {"f": {"x": case.accepted}})
    assert [reason.code for reason in reasons] == ([case.wrong] if case.wrong else [])


def test_an_optional_parameter_may_be_left_out() -> None:
    """An empty text among the values allows absence; without it the parameter must be there."""
    function = doc(x={"type": "integer"})
    call = IdealCall("f", {})
    assert check_call(call, function, {"f": {"x": [5, ""]}}) == ()
    (reason,) = check_call(call, function, {"f": {"x": [5]}})
    assert (reason.code, reason.message) == ("missing", "x should be given")


def test_a_required_parameter_is_missed_once() -> None:
    """What the function requires is missed even where the answer would allow absence."""
    function = doc(x={"type": "integer", "required": True})
    (reason,) = check_call(IdealCall("f", {}), function, {"f": {"x": [5, ""]}})
    assert (reason.code, reason.message) == ("missing", "x is required")


def test_a_parameter_that_is_not_expected_is_wrong() -> None:
    """Neither an unknown parameter nor one without accepted values may be sent."""
    function = doc(x={"type": "integer"}, y={"type": "integer"})
    answer = {"f": {"x": [5]}}
    for extra in ("y", "z"):
        (reason,) = check_call(IdealCall("f", {"x": 5, extra: 1}), function, answer)
        assert reason.code == "unexpected"


def test_another_function_is_wrong_whatever_its_arguments() -> None:
    """The name counts first."""
    (reason,) = check_call(IdealCall("g", {"x": 5}), doc(x={"type": "integer"}), {"f": {"x": [5]}})
    assert reason.message == "g instead of f"


def test_several_calls_match_in_any_order() -> None:
    """Every order of the expected calls is right."""
    functions = {"f": doc(x={"type": "integer"})}
    answers = [{"f": {"x": [number]}} for number in range(3)]
    for order in permutations(range(3)):
        calls = [IdealCall("f", {"x": number}) for number in order]
        assert check_calls(calls, functions, answers) == ()


def test_a_call_is_used_for_one_expected_call_only() -> None:
    """The same call twice does not stand for two different ones."""
    functions = {"f": doc(x={"type": "integer"})}
    calls = [IdealCall("f", {"x": 0}), IdealCall("f", {"x": 0})]
    reasons = check_calls(calls, functions, [{"f": {"x": [0]}}, {"f": {"x": [1]}}])
    assert [reason.code for reason in reasons] == ["no_match", "wrong_value"]


def test_a_match_is_found_where_taking_the_first_would_miss_it() -> None:
    """A call that fits two expected calls is left to the one that has no other."""
    functions = {"f": doc(x={"type": "integer"})}
    calls = [IdealCall("f", {"x": 1}), IdealCall("f", {"x": 2})]
    assert check_calls(calls, functions, [{"f": {"x": [1, 2]}}, {"f": {"x": [1]}}]) == ()


@pytest.mark.parametrize(("count", "code"), [(0, "no_call"), (2, "wrong_count")])
def test_the_number_of_calls_counts(count: int, code: str) -> None:
    """One call too many or none is wrong."""
    calls = [IdealCall("f", {"x": 5})] * count
    (reason,) = check_calls(calls, {"f": doc(x={"type": "integer"})}, [{"f": {"x": [5]}}])
    assert reason.code == code


@given(st.text(max_size=40))
@settings(max_examples=100)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    """What does not count is gone after one folding, whatever the text."""
    once = fold_text(text)
    assert fold_text(once) == once
    assert not set(once) & set(" ,./-_*^'")
