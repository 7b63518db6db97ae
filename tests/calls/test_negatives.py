"""Texts in which nothing is called: how often a call is read in them all the same."""

from collections import Counter

import pytest

from support.fresh_negatives import OFFERED as FRESHLY_OFFERED
from support.fresh_negatives import fresh_negatives
from support.negatives import KINDS, OFFERED, negatives
from support.spoken_calls import KINDS as SPOKEN_KINDS
from support.spoken_calls import OFFERED as SPOKEN_OFFERED
from support.spoken_calls import spoken_calls
from support.third_negatives import third_negatives
from surecall.calls import ToolNames
from surecall.reading import read_reply

MIN_TEXTS = 3_000
MIN_KINDS = 40
MAX_LIKELY = 0.35
MAX_FRESH_LIKELY = 0.25
"""Their places make these calls; only their words take them back, which nobody asks."""
MIN_FRESH_TEXTS = 1_800
NAMES = ToolNames(OFFERED)


def test_nothing_is_called_in_texts_that_only_speak_of_calls() -> None:
    """No kind of text gives a certain call, and one text in three at most a likely one."""
    texts: Counter[str] = Counter()
    likely: list[str] = []
    for kind, text in negatives():
        texts[kind] += 1
        reading = read_reply(text, tools=NAMES, accept="likely", finish_reason="stop")
        assert all(call.certainty == "likely" for call in reading.calls), (kind, text)
        if reading.calls:
            likely.append(text)
    assert texts.total() >= MIN_TEXTS
    assert len(texts) == len(KINDS) >= MIN_KINDS
    assert len(likely) <= MAX_LIKELY * texts.total(), likely


def test_texts_without_a_call_are_left_as_they_are() -> None:
    """Nothing runs unasked, and the text does not lose a character."""
    for kind, text in negatives():
        if kind in {"reasoning", "echoed result"} or "</s>" in text:  # markup that is taken out
            continue
        reading = read_reply(text, tools=NAMES, finish_reason="stop")
        assert (reading.content, reading.calls) == (text, ()), kind


@pytest.mark.parametrize("held_out", [False, True])
def test_nothing_is_called_in_other_words(held_out: bool) -> None:
    """Other words give no certain call, and one text in four at most a likely one."""
    names = ToolNames(FRESHLY_OFFERED)
    texts = list(fresh_negatives(held_out=held_out))
    likely: list[str] = []
    for kind, text in texts:
        reading = read_reply(text, tools=names, accept="likely", finish_reason="stop")
        assert all(call.certainty == "likely" for call in reading.calls), (kind, text)
        if reading.calls:
            likely.append(text)
    assert len(texts) > MIN_FRESH_TEXTS
    assert len(likely) <= MAX_FRESH_LIKELY * len(texts), likely


def test_nothing_is_called_by_agents_that_talk_about_their_work() -> None:
    """Plans, reports, reviews, pages and settings give no certain call, and few a likely one."""
    names = ToolNames(FRESHLY_OFFERED)
    texts = list(third_negatives())
    likely: list[str] = []
    for kind, text in texts:
        reading = read_reply(text, tools=names, accept="likely", finish_reason="stop")
        assert all(call.certainty == "likely" for call in reading.calls), (kind, text)
        if reading.calls:
            likely.append(text)
    assert len({kind for kind, _ in texts}) == 25
    assert len(texts) == 1_000
    assert len(likely) <= MAX_FRESH_LIKELY * len(texts), likely


def test_nothing_is_called_where_calls_are_only_spoken_of() -> None:
    """Talk, pages, records and ten languages give no certain call, and few a likely one."""
    names = ToolNames(SPOKEN_OFFERED)
    texts = list(spoken_calls())
    likely: list[str] = []
    for kind, text in texts:
        reading = read_reply(text, tools=names, accept="likely", finish_reason="stop")
        assert all(call.certainty == "likely" for call in reading.calls), (kind, text)
        if reading.calls:
            likely.append(text)
    assert len(SPOKEN_KINDS) > 35
    assert len(texts) > 2_000
    assert len(likely) <= MAX_FRESH_LIKELY * len(texts), likely
