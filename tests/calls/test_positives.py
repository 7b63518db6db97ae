"""Calls outside any family's markup, in the shapes that models write them."""

from typing import Any

import pytest

from support.negatives import OFFERED
from support.positives import BROKEN_SHAPES, SHAPES, Positive, positives
from surecall.base.errors import Code
from surecall.base.records import ToolCall
from surecall.calls import ToolNames
from surecall.reading import read_reply

NAMES = ToolNames(OFFERED)
CERTAIN = {
    "doubled braces", "doubled braces on lines", "keyed in a list", "keyed, two in a list",
    "tokens of another family", "tokens around Python", "semicolons", "commas",
    "commas between JSON", "two in a wrapper", "unclosed wrapper", "mismatched wrapper",
    "a name as tag", "a name as tag, JSON in it",
}  # fmt: skip
"""Markup of a family, or messages that are nothing but calls."""
UNREAD = {
    "missing parenthesis",  # the last value may go on
    "call with", "I call with", "inline code behind words", "inline JSON behind words",
    "a sentence that it is glued to", "help offered behind it",
}  # fmt: skip
"""What only the words around them would make calls: a defect names them."""


def written(calls: tuple[ToolCall, ...]) -> list[tuple[str, Any]]:
    """Return the names and arguments of calls."""
    return [(call.name, call.arguments) for call in calls]


def by_shape(shapes: dict[str, str]) -> dict[str, list[Positive]]:
    """Return the texts of each shape."""
    found: dict[str, list[Positive]] = {shape: [] for shape in shapes}
    for positive in positives(shapes):
        found[positive.shape].append(positive)
    return found


DOUBTED = frozenset({"doubled braces", "doubled braces on lines"})
"""A lost key before the inner object would leave the same text."""


@pytest.mark.parametrize("texts", by_shape(SHAPES).values(), ids=SHAPES)
def test_shapes_that_models_write_are_read(texts: list[Positive]) -> None:
    """They are taken in the likely tier, and otherwise seen; some of them are certain."""
    for shape, text, calls in texts:
        reading = read_reply(text, tools=NAMES, accept="likely", finish_reason="stop")
        if shape in UNREAD:
            assert (reading.calls, reading.content) == ((), text)
            assert [defect.code for defect in reading.defects] == [Code.CALL_IN_TEXT_NOT_READ]
            continue
        assert written(reading.calls) == calls, text
        careful = read_reply(text, tools=NAMES, finish_reason="stop")
        if shape in CERTAIN and "<search>" not in text:  # which is also an element of HTML
            assert written(careful.calls) == calls, text
            wanted = "likely" if shape in DOUBTED else "certain"
            assert all(call.certainty == wanted for call in careful.calls), text
        elif not careful.calls:  # a name without underscores has nothing to escape
            assert written(careful.seen) == calls, text
            assert careful.content == text
            codes = [defect.code for defect in careful.defects]
            assert codes == [Code.CALL_IN_TEXT_NOT_READ] * len(calls)


LEADS = (
    "",
    "I look.",
    "Hmm.",
    "One moment.",
    "Here you go:",
    "Let me look that up.",
    "Ich sehe nach.",
    "Je regarde.",
    "Based on your request, the function call is:",
)
CALLS = (
    '{"name": "search", "arguments": {"query": "tea"}}',
    'search(query="tea")',
    '```json\n{"name": "search", "arguments": {"query": "tea"}}\n```',
)


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("remark", ["", "Done.", "Done", "Let me know if you need anything else!"])
def test_remarks_around_a_call_leave_it_one(lead: str, call: str, remark: str) -> None:
    """A short sentence before it, and a word behind it, speak of nothing else."""
    text = "\n".join(part for part in (lead, call, remark) if part)
    reading = read_reply(text, tools=NAMES, accept="likely", finish_reason="stop")
    assert [(made.name, made.arguments) for made in reading.calls] == [("search", {"query": "tea"})]


@pytest.mark.parametrize("texts", by_shape(BROKEN_SHAPES).values(), ids=BROKEN_SHAPES)
def test_broken_and_made_up_shapes_are_read(texts: list[Positive]) -> None:
    """What the text leaves no doubt about is read; the rest never runs with another value."""
    for shape, text, calls in texts:
        reading = read_reply(text, tools=NAMES, accept="likely", finish_reason="stop")
        if shape in UNREAD:
            assert all(call.arguments is None for call in reading.calls), text
        else:
            assert written(reading.calls) == calls, text


def test_a_likely_call_says_which_judgement_made_it_one() -> None:
    """In its doubt and in a receipt."""
    reading = read_reply("Sure.\n\nrun('make')\nDone", tools=NAMES, accept="likely")
    (call,) = reading.calls
    assert "read from text" in call.doubt
    assert "judge_call_in_text" in {receipt.rule for receipt in call.receipts}
    assert reading.content == "Sure.\nDone"
