"""Which calls and texts are the expected ones."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.evals.suites.custom import next_step
from surecall.evals.suites.custom.document import CaseDoc, ChecksDoc
from surecall.evals.suites.custom.matching import (
    CalledTool,
    check_calls,
    check_text,
    is_expected,
    same_value,
)

A = {"tool": "a", "arguments": {"x": 1}}
B = {"tool": "b", "arguments": {}}
SUBSET = {"tool": "a", "arguments": {"x": 1}, "match": "subset"}


def case_of(calls: Any, **fields: Any) -> CaseDoc:
    """Return a case that expects these calls."""
    return msgspec.convert({"id": "c", "prompt": "?", "calls": calls, **fields}, CaseDoc)


def ran(*calls: tuple[str, dict[str, Any]]) -> list[CalledTool]:
    """Return calls that ran."""
    return [CalledTool(name=name, arguments=arguments) for name, arguments in calls]


@dataclass(frozen=True)
class Row:
    """What is expected, what ran, and which reasons there are."""

    id: str
    calls: Any
    made: list[CalledTool]
    reasons: tuple[str, ...] = ()
    fields: tuple[tuple[str, Any], ...] = ()


MISSING, EXTRA = "CALL_MISSING", "CALL_UNEXPECTED"
ANY = (("order", "any"),)
ALLOW = (("extra_calls", "allow"),)

ROWS = [
    Row("exact", [A], ran(("a", {"x": 1}))),
    Row("exact, a key more", [A], ran(("a", {"x": 1, "y": 2})), (MISSING, EXTRA)),
    Row("exact, a key less", [A], ran(("a", {})), (MISSING, EXTRA)),
    Row("other tool", [A], ran(("b", {"x": 1})), (MISSING, EXTRA)),
    Row("number as text", [A], ran(("a", {"x": "1"})), (MISSING, EXTRA)),
    Row("whole as float", [A], ran(("a", {"x": 1.0}))),
    Row("true is not one", [A], ran(("a", {"x": True})), (MISSING, EXTRA)),
    Row("subset", [SUBSET], ran(("a", {"x": 1, "y": 2}))),
    Row("subset, other value", [SUBSET], ran(("a", {"x": 2, "y": 2})), (MISSING, EXTRA)),
    Row("subset, absent", [{**SUBSET, "absent": ["y"]}], ran(("a", {"x": 1, "z": 2}))),
    Row(
        "absent is there",
        [{**SUBSET, "absent": ["y"]}],
        ran(("a", {"x": 1, "y": 2})),
        (MISSING, EXTRA),
    ),
    Row("one of", [{"tool": "a", "one_of": {"x": [1, 2]}}], ran(("a", {"x": 2}))),
    Row(
        "none of", [{"tool": "a", "one_of": {"x": [1, 2]}}], ran(("a", {"x": 3})), (MISSING, EXTRA)
    ),
    Row(
        "one of, left out", [{"tool": "a", "one_of": {"x": [1]}}], ran(("a", {})), (MISSING, EXTRA)
    ),
    Row("first alternative", [{"any_of": [A, B]}], ran(("a", {"x": 1}))),
    Row("second alternative", [{"any_of": [A, B]}], ran(("b", {}))),
    Row("no alternative", [{"any_of": [A, B]}], ran(("c", {})), (MISSING, EXTRA)),
    Row("none expected", [], []),
    Row("none expected, one made", [], ran(("a", {})), (EXTRA,)),
    Row("not judged", None, ran(("a", {}))),
    Row("none made", [A], [], (MISSING,)),
    Row("in order", [A, B], ran(("a", {"x": 1}), ("b", {}))),
    Row("out of order", [A, B], ran(("b", {}), ("a", {"x": 1})), (MISSING, EXTRA)),
    Row("any order", [A, B], ran(("b", {}), ("a", {"x": 1})), fields=ANY),
    Row("twice", [A], ran(("a", {"x": 1}), ("a", {"x": 1})), (EXTRA,)),
    Row("twice in any order", [B], ran(("b", {}), ("b", {})), (EXTRA,), ANY),
    Row("more allowed", [B], ran(("a", {}), ("b", {}), ("a", {})), fields=ALLOW),
    Row("more allowed, none right", [B], ran(("a", {})), (MISSING,), ALLOW),
    Row(
        "the wide one leaves the other",
        [SUBSET, A],
        ran(("a", {"x": 1}), ("a", {"x": 1, "y": 2})),
        fields=ANY,
    ),
    Row(
        "deep",
        [{"tool": "a", "arguments": {"x": [{"y": [1, None]}]}}],
        ran(("a", {"x": [{"y": [1, None]}]})),
    ),
    Row(
        "list in another order",
        [{"tool": "a", "arguments": {"x": [1, 2]}}],
        ran(("a", {"x": [2, 1]})),
        (MISSING, EXTRA),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_calls_are_compared_as_the_case_says(row: Row) -> None:
    """Exact or subset, in order or not, alternatives, absent arguments, and calls too many."""
    case = case_of(row.calls, **dict(row.fields))
    assert tuple(reason.code for reason in check_calls(case, row.made)) == row.reasons


def test_a_call_is_exact_when_any_expected_one_is_it() -> None:
    """Place and order do not count for a single call."""
    case = case_of([A, {"any_of": [B, {"tool": "c"}]}])
    made = ran(("c", {}), ("a", {"x": 1}), ("a", {}))
    assert [is_expected(case, call) for call in made] == [True, True, False]


@pytest.mark.parametrize(
    ("calls", "made", "said"),
    [
        ([A], ran(("a", {"x": 2})), "expected a {'x': 1}, got a {'x': 2}"),
        ([A], ran(("b", {})), "expected a {'x': 1}"),
        ([A], [], "expected a {'x': 1}"),
        ([{"any_of": [A, B]}], ran(("b", {"y": 1})), "expected a {'x': 1} or b {}, got b {'y': 1}"),
        ([A, A], ran(("a", {"x": 1}), ("a", {})), "expected a {'x': 1}, got a {}"),
    ],
)
def test_a_missing_call_is_shown_beside_what_came(calls: Any, made: Any, said: str) -> None:
    """Of the same tool, and only a call that is not another expected one."""
    assert check_calls(case_of(calls), made)[0].message == said


@pytest.mark.parametrize(
    ("checks", "text", "count"),
    [
        ({"text_equals": "Yes."}, " Yes.\n", 0),
        ({"text_equals": "Yes."}, "yes.", 1),
        ({"text_equals": "Yes.", "ignore_case": True}, "YES.", 0),
        ({"text_one_of": ["a", "b"]}, "b", 0),
        ({"text_one_of": ["a", "b"]}, "c", 1),
        ({"text_contains": ["tea", "salt"]}, "salt and tea", 0),
        ({"text_contains": ["tea", "salt"]}, "milk", 2),
        ({"text_contains": ["TEA"], "ignore_case": True}, "Tea", 0),
        ({"text_contains": ["a.c"]}, "abc", 1),
        ({"text_lacks": ["<tool"]}, "fine", 0),
        ({"text_lacks": ["<tool"]}, "<tool_call>", 1),
        ({}, "", 0),
    ],
)
def test_texts_are_compared_as_they_are(checks: dict[str, Any], text: str, count: int) -> None:
    """No pattern is special; only spaces around a text do not count."""
    found = list(check_text(msgspec.convert(checks, ChecksDoc), text))
    assert [reason.code for reason in found] == ["TEXT_WRONG"] * count


@pytest.mark.parametrize(
    ("mine", "theirs", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("a", "a", True),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1], (1,), True),
        ([], {}, False),
        ({}, [], False),
    ],
)
def test_values_are_the_same_as_json_has_them(mine: Any, theirs: Any, same: bool) -> None:
    """Numbers count by value, and nothing else is taken for something else."""
    assert same_value(mine, theirs) is same


# what a good model does

TOOLS = {
    name: ToolSpec(
        name=name,
        parameters={
            "type": "object",
            "required": ["x", "mood", "count", "note"],
            "properties": {
                "x": {"type": "integer"},
                "mood": {"enum": ["calm", "cross"]},
                "count": {"type": "integer", "minimum": 3},
                "note": {"type": "string"},
            },
        },
    )
    for name in ("a", "b")
}


def request(*calls: tuple[str, dict[str, Any]]) -> ModelRequest:
    """Return a request in which these calls were made and answered."""
    messages = [Message("user", "?")]
    for number, (name, arguments) in enumerate(calls):
        call = ToolCall(id=f"c{number}", name=name, arguments=arguments)
        messages.append(Message("assistant", None, (call,)))
        messages.append(Message("tool", '{"ok":true}', tool_call_id=call.id))
    return ModelRequest(model="m", messages=tuple(messages), tools=tuple(TOOLS.values()))


def test_expected_calls_are_made_one_by_one_where_the_order_counts() -> None:
    """What was made already is not made again, and the text comes last."""
    case = case_of([A, B], checks={"text_contains": ["tea", "salt"]})
    steps = [
        next_step(case, TOOLS, request()),
        next_step(case, TOOLS, request(("a", {"x": 1}))),
        next_step(case, TOOLS, request(("a", {"x": 1}), ("b", {}))),
    ]
    assert [[call.name for call in step.calls] for step in steps] == [["a"], ["b"], []]
    assert steps[2].text == "tea salt"


def test_expected_calls_are_made_together_where_the_order_is_free() -> None:
    """One reply is enough."""
    step = next_step(case_of([A, B], order="any"), TOOLS, request())
    assert [call.name for call in step.calls] == ["a", "b"]


def test_what_the_case_leaves_open_is_filled_in() -> None:
    """Required arguments get a value that the schema takes, unless they must be absent."""
    wanted = {**SUBSET, "one_of": {"note": ["first", "second"]}}
    (call,) = next_step(case_of([wanted]), TOOLS, request()).calls
    assert call.arguments == {"x": 1, "note": "first", "mood": "calm", "count": 3}
    (call,) = next_step(case_of([{"any_of": [A, B]}]), TOOLS, request()).calls
    assert (call.name, call.arguments) == ("a", {"x": 1})


@pytest.mark.parametrize(
    ("checks", "text"),
    [({"text_equals": "Yes."}, "Yes."), ({"text_one_of": ["x", "y"]}, "x"), ({}, "Done.")],
)
def test_the_final_text_is_one_that_passes(checks: dict[str, Any], text: str) -> None:
    """Without anything that is asked for, it says that it is done."""
    assert next_step(case_of([], checks=checks), TOOLS, request()).text == text


@pytest.mark.parametrize(
    ("checks", "right", "wrong"),
    [
        ({"text_number": 4}, "Two and two is 4.", "It is 5."),
        ({"text_matches": "^[A-Z]{3}-[0-9]+$"}, "ABC-12", "abc"),
        ({"text_schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', '{"b": 1}'),
        ({"text_schema": {"type": "object"}}, "{}", "none"),
    ],
)
def test_a_text_is_compared_with_a_number_a_pattern_or_a_schema(
    checks: dict[str, Any], right: str, wrong: str
) -> None:
    """Each of the three is a check of its own."""
    doc = ChecksDoc(**checks)
    assert list(check_text(doc, right)) == []
    assert [reason.code for reason in check_text(doc, wrong)] == ["TEXT_WRONG"]
