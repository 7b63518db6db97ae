"""Calls outside markup: whatever the text is, reading them is safe, repeatable and bounded."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cut_calls import FINISHES
from support.negatives import OFFERED
from support.positives import BROKEN_SHAPES, SHAPES, Positive, positives
from support.work import count_calls
from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.calls.finder import find_likely_calls
from surecall.reading import ReplyReader, read_reply

NAMES = ToolNames(OFFERED)
MAX_GROWTH = 2.5
PIECES = (
    "search", "get_weather", "get\\_weather", "functions.", "geo.distance", "query", "city", "=",
    "(", ")", "[", "]", "{", "}", "{{", '"', "'", ",", ":", ";", "\n", "\n\n", " ", "    ", "```",
    "```json\n", "```python\n", "~~", "> ", "| ", "# ", "<search>", "</search>", "<tool_call>",
    "</tool_call>", "<|im_start|>", "<tool_response>", "name", "arguments", '{"name": "search", ',
    '"arguments": {"query": "a"}}', "search(query='a')", "get_weather('Oslo')", "Sure. ", "Done",
    "I will call ", "Shall I?", "or", "User: ", "Here is the call:", "...", "“", "”", "5", "ä",
)  # fmt: skip
soups = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
finishes = st.sampled_from(FINISHES)
HOSTILE = (
    "search(query='a')\nfoo bar\n\n", "search(", "search({", '{"search": ', "[search", "<search>",
    "search(query='", "search(query='a', ", 'search {"query": "a"} or ', "```\nsearch(query='a')\n",
    '```json\n{"name": "search"}\n```\n', "| search(query='a') | a\n", "search:\n  query: a\n",
    "a.a.a.search(", '<tool_call name="search" ', "here is the search", "search(query='a')? ",
)  # fmt: skip


def read(text: str, finish: str | None, **options: str) -> Reading:
    """Read a text with the tools of the corpora."""
    return read_reply(text, tools=NAMES, finish_reason=finish, **options)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(text=soups, finish=finishes)
def test_any_text_is_read_twice_the_same_and_judged(text: str, finish: str | None) -> None:
    """Nothing raises, and every likely call says what made it one."""
    reading = read(text, finish, accept="likely")
    assert reading == read(text, finish, accept="likely")
    for call in reading.calls:
        if call.certainty == "likely":
            assert call.doubt
            if "read from text" in call.doubt:
                assert "judge_call_in_text" in {receipt.rule for receipt in call.receipts}
    assert not reading.seen


@settings(max_examples=150, deadline=None)
@given(text=soups, finish=finishes)
def test_what_is_only_seen_stays_in_the_text(text: str, finish: str | None) -> None:
    """The careful tier has the same text as without a look, and lists what the other takes."""
    careful, bold = read(text, finish), read(text, finish, accept="likely")
    assert careful.calls == bold.calls[: len(careful.calls)]
    taken = [(call.name, call.raw) for call in bold.calls[len(careful.calls) :]]
    assert [(call.name, call.raw) for call in careful.seen] == taken
    for call in careful.seen:
        assert any(call.name in defect.message for defect in careful.defects)
    if not careful.seen:
        assert careful.content == bold.content


@settings(max_examples=100, deadline=None)
@given(text=soups, finish=finishes, data=st.data())
def test_a_stream_ends_in_the_same_reading(
    text: str, finish: str | None, data: st.DataObject
) -> None:
    """Wherever it is split."""
    at = data.draw(st.integers(0, len(text)))
    reader = ReplyReader(NAMES, accept="likely")
    reader.feed(text[:at])
    reader.feed(text[at:])
    whole = ReplyReader(NAMES, accept="likely").read_whole(text, finish)
    assert reader.close(finish) == whole


@pytest.mark.parametrize("unit", HOSTILE)
def test_twice_a_hostile_text_takes_twice_the_work(unit: str) -> None:
    """At most: the candidates that are looked at are counted."""
    half, whole = (unit * (size // len(unit)) for size in (40_000, 80_000))
    least = count_calls(lambda: find_likely_calls(half, NAMES))
    assert count_calls(lambda: find_likely_calls(whole, NAMES)) <= MAX_GROWTH * least


def _one_of_each() -> list[Positive]:
    shapes = {**SHAPES, **{f"broken {shape}": text for shape, text in BROKEN_SHAPES.items()}}
    return [next(islice(positives({shape: text}), 1, None)) for shape, text in shapes.items()]


@pytest.mark.parametrize("positive", _one_of_each(), ids=lambda positive: positive.shape)
def test_a_cut_text_is_never_certain_of_another_value(positive: Positive) -> None:
    """At every character and for every word, certain values are those of the whole text."""
    _, text, calls = positive
    for end in range(1, len(text)):
        finish = FINISHES[end % 4]
        reading = read(text[:end], finish, accept="likely")
        for call in reading.calls:
            if call.arguments is None or call.errors or (call.name, call.arguments) in calls:
                continue
            assert call.certainty == "likely", (finish, text[:end])
            assert finish != "length", text[:end]
