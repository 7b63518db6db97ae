"""Forms that few models write are read, never certain where they are spoken of, never lost."""

import json
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.negatives import CALLS, NOTATIONS
from support.negatives import OFFERED as OFTEN_OFFERED
from support.unusual_forms import CLASSES, OFFERED, called, spoken_of
from surecall.calls import ToolNames
from surecall.reading import ReplyReader, read_reply

NAMES = ToolNames(OFFERED)
OFTEN = ToolNames(OFTEN_OFFERED)
LEAST_READ = 0.95
every_class = pytest.mark.parametrize("kind", CLASSES)


@every_class
def test_calls_are_read_at_least_as_likely(kind: str) -> None:
    """Each with exactly the arguments that were written."""
    texts = list(called(kind))
    read = [
        [(call.name, call.arguments) for call in reading.calls if not call.errors] == unusual.calls
        for unusual in texts
        for reading in [
            read_reply(unusual.text, tools=NAMES, accept="likely", finish_reason="stop")
        ]
    ]
    assert len(texts) >= 20
    assert sum(read) >= LEAST_READ * len(texts)


@every_class
def test_none_is_certain_where_it_is_spoken_of(kind: str) -> None:
    """In quotations, examples, documents, tables, questions and other people's turns."""
    texts = [unusual.text for unusual in spoken_of(kind)]
    assert len(texts) >= 40
    for text in texts:
        reading = read_reply(text, tools=NAMES, accept="likely", finish_reason="stop")
        assert all(call.certainty == "likely" for call in reading.calls), text


@every_class
def test_a_stream_reads_the_same_in_single_characters(kind: str) -> None:
    """Wherever it is split."""
    for unusual in (*islice(called(kind), 0, None, 4), *islice(spoken_of(kind), 0, None, 7)):
        reader = ReplyReader(NAMES, accept="likely")
        for char in unusual.text:
            reader.feed(char)
        whole = ReplyReader(NAMES, accept="likely").read_whole(unusual.text, "stop")
        assert reader.close("stop") == whole


@every_class
def test_no_value_holds_a_closing_tag_of_its_own_form(kind: str) -> None:
    """A call whose values would is read another way, or likely at most."""
    for unusual in (*called(kind), *spoken_of(kind)):
        reading = read_reply(unusual.text, tools=NAMES, accept="likely", finish_reason="stop")
        for call in reading.calls:
            values = json.dumps(call.arguments)
            assert "</parameter" not in values
            assert "</function" not in values


words = st.lists(
    st.sampled_from(
        ("I", "will", "call", "it", "now", "the", "result", "is", "never", "when", "you", "ask",
         "heute", "quand", "–", "1.", "-", "so", "then", "Done", "Note", "step", "two")
    ),
    max_size=6,
).map(" ".join)  # fmt: skip
joints = st.sampled_from((" ", ": ", ". ", "\n", "\n\n", ".\n\n", ":\n", " – ", ", "))


@settings(max_examples=300, deadline=None)
@given(
    before=words,
    joint=joints,
    call=st.sampled_from([it for it in CALLS if it[1]]),
    notation=st.sampled_from(sorted(NOTATIONS.keys() - {"pos"})),
    behind=joints,
    after=words,
)
def test_a_mention_with_arguments_is_never_lost_in_silence(
    before: str,
    joint: str,
    call: tuple[str, dict[str, object]],
    notation: str,
    behind: str,
    after: str,
) -> None:
    """It is a call, seen or a defect; and no call is returned twice."""
    text = f"{before}{joint}{NOTATIONS[notation](*call)}{behind}{after}"
    for accept in ("certain", "likely"):
        reading = read_reply(text, tools=OFTEN, accept=accept, finish_reason="stop")
        assert reading.calls or reading.seen or reading.defects
        assert len(reading.calls) + len(reading.seen) <= 1


@pytest.mark.parametrize("notation", ["py", "json", "keyed"])
def test_a_call_that_markup_made_is_not_returned_again(notation: str) -> None:
    """Neither as a likely call nor as one that was seen, whatever it is written as."""
    for name, arguments in CALLS:
        made = json.dumps({"name": name, "arguments": arguments})
        again = NOTATIONS[notation](name, arguments)
        text = f"<tool_call>{made}</tool_call>\n\nAs said:\n\n{again}\n"
        for accept in ("certain", "likely"):
            reading = read_reply(text, tools=OFTEN, accept=accept, finish_reason="stop")
            assert [(call.name, call.arguments) for call in reading.calls] == [(name, arguments)]
            assert reading.seen == ()
