"""Texts that were written before any rule for them are read; where they make no call, none is."""

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.reading import CORPUS, TOOLS
from support.fresh_forms import CLASSES, OFFERED, Fresh, mentioned, written, written_values
from surecall import read_reply, read_value
from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.reading import ReplyReader

NAMES = ToolNames(OFFERED)
READ = {"early closer": 25, "arrows": 24}
"""How many texts of a class are read, where it is not all of them."""
every_class = pytest.mark.parametrize("kind", CLASSES)


def stripped(value: Any) -> Any:
    """Return a value whose texts have no blanks around them: layout is a matter of taste."""
    if isinstance(value, dict):
        return {key: stripped(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [stripped(item) for item in cast("list[Any]", value)]
    return value.strip() if isinstance(value, str) else value


def whole_calls(reading: Reading) -> list[tuple[str, Any]]:
    """Return the calls that may run."""
    calls = [call for call in reading.calls if call.state == "whole" and not call.errors]
    return [(call.name, stripped(call.arguments)) for call in calls]


def is_certain(reading: Reading) -> bool:
    """Tell whether a call may run without a doubt."""
    return any(it.certainty == "certain" and it.arguments is not None for it in reading.calls)


def is_read(fresh: Fresh) -> bool:
    """Tell whether a text is read as exactly the calls it stands for."""
    reading = read_reply(fresh.text, tools=NAMES, accept="likely", finish_reason="stop")
    return whole_calls(reading) == [(name, stripped(given)) for name, given in fresh.calls]


@every_class
def test_calls_are_read_at_least_as_likely(kind: str) -> None:
    """Each with exactly the arguments that were written."""
    texts = written(kind)
    assert len(texts) >= 20
    assert sum(map(is_read, texts)) >= READ.get(kind, len(texts))


@every_class
def test_what_is_certain_is_right(kind: str) -> None:
    """No text of a call is certainly another one."""
    for fresh in written(kind):
        reading = read_reply(fresh.text, tools=NAMES, finish_reason="stop")
        assert not is_certain(reading) or is_read(fresh), fresh.text


@every_class
def test_no_call_is_certain_where_it_is_spoken_of(kind: str) -> None:
    """In quotations, examples, programs, logs, tables and what others said."""
    texts = mentioned(kind)
    assert len(texts) >= 20
    for fresh in texts:
        reading = read_reply(fresh.text, tools=NAMES, finish_reason="stop")
        assert not is_certain(reading), fresh.text


@pytest.mark.parametrize("kind", written_values())
def test_values_are_read(kind: str) -> None:
    """The one that fits, without what is optional and absent; what is certain is right."""
    for case in written_values()[kind]:
        reading = read_value(case.text, case.schema, accept="likely")
        assert (reading.state, reading.errors, reading.value) == ("whole", (), case.value)
        certain = read_value(case.text, case.schema)
        assert certain.state != "whole" or certain.value == case.value


# Splits

EVERY_TEXT = [
    (fresh.text, NAMES) for kind in CLASSES for fresh in (*written(kind), *mentioned(kind))
]
GOLDEN = [
    (line["reply"], TOOLS[line["tools"]])
    for line in map(json.loads, CORPUS.read_text("utf-8").splitlines())
    if isinstance(line["tools"], str)
]


@settings(max_examples=400, deadline=None)
@given(
    given_text=st.sampled_from(EVERY_TEXT) | st.sampled_from(GOLDEN),
    cuts=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    accept=st.sampled_from(["certain", "likely"]),
)
def test_every_split_of_every_text_reads_the_same(
    given_text: tuple[str, ToolNames], cuts: list[float], accept: Any
) -> None:
    """Calls, text, reasoning, receipts and defects, wherever it was split."""
    text, names = given_text
    reader = ReplyReader(names, accept=accept)
    at = 0
    for cut in sorted(round(cut * len(text)) for cut in cuts):
        reader.feed(text[at:cut])
        at = cut
    reader.feed(text[at:])
    whole = ReplyReader(names, accept=accept).read_whole(text, "stop")
    assert reader.close("stop") == whole


@every_class
def test_every_third_text_reads_the_same_in_single_characters(kind: str) -> None:
    """Which is at every split at once."""
    for fresh in (*written(kind), *mentioned(kind))[::3]:
        reader = ReplyReader(NAMES)
        for char in fresh.text:
            reader.feed(char)
        assert reader.close("stop") == ReplyReader(NAMES).read_whole(fresh.text, "stop")


# Silence

ASIDE = ("<example>", "<think>", "<tool_response>", "User:", "Q:")
"""What others said, examples, results and thoughts: nobody is told of calls in them."""


@every_class
def test_every_mention_with_arguments_is_noticed(kind: str) -> None:
    """It is a call, seen or a defect, whether it is made or spoken of."""
    if kind == "one text":  # where its text has no name, it is markup like any other
        return
    for fresh in (*written(kind), *mentioned(kind)):
        reading = read_reply(fresh.text, tools=NAMES, finish_reason="stop")
        is_noticed = reading.calls or reading.seen or reading.defects
        assert is_noticed or fresh.text.startswith(ASIDE), fresh.text
