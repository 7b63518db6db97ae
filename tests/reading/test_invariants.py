"""What holds for every reading: no call in silence, no markup in a value, no call twice."""

import random
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import damaged_calls
from support.cut_calls import RENDERERS, TARGET
from surecall import read_reply
from surecall.base.records import Reading
from surecall.calls import ToolNames

NAMES = ToolNames([TARGET])
ARGUMENTS: dict[str, Any] = {"path": "/tmp/a", "count": 5, "keep": ["b"]}
CALLS = {family: write([("clean", ARGUMENTS)], "", "") for family, write in RENDERERS.items()}
PLACES = {
    "alone": "{}",
    "behind words": "I will clean up: {}",
    "on a line": "I will clean up.\n\n{}\n\nThat is all.",
    "result": "Here is the result: {}",
    "item": "- {}",
    "number": "1. {}",
    "bold": "**{}**",
    "label": "Tool call: {}",
    "parentheses": "({})",
    "indented": "    {}",
    "inside a sentence": "Before {} after.",
    "code": "`{}`",
    "quoted line": "> {}",
    "guillemets": "« {} »",
    "corner brackets": "「{}」",
    "row": "| a | {} |",
    "heading": "# {}",
    "in Chinese": "我来清理一下：{}",
    "example": "<example>{}</example>",
    "another's turn": "User: {}\nAssistant: I cannot do that.",
    "result of a tool": "<tool_result>\n{}\n</tool_result>\nIt gave back its request.",
    "twice": "{0}\n{0}",
}
WORDS = st.sampled_from(["I", "will", "clean", "the", "old", "files", "now", "42", "then", "ok"])
SENTENCES = st.lists(WORDS, max_size=8).map(lambda words: " ".join(words) + "." if words else "")
MARKED = sorted(family for family, call in CALLS.items() if re.search(r"[<✿]|\[[A-Z]", call))
"""Those in which markup says that a call is meant, whatever became of its name."""
MARKS = re.compile(r"</[^\s<>/][^<>/\n]{0,60}>|<\|[^<>|\n]{1,40}\|>|\[/[A-Z_]{2,40}\]")


def is_noticed(reading: Reading) -> bool:
    """Tell whether a caller learns that a call may have been meant."""
    return bool(reading.calls or reading.seen or reading.defects)


@pytest.mark.parametrize("place", PLACES)
def test_no_call_of_an_offered_tool_is_passed_over(place: str) -> None:
    """In every format it ends among the calls, the calls that were seen, or the defects."""
    texts = {family: PLACES[place].format(call) for family, call in CALLS.items()}
    silent = {
        family for family, text in texts.items() if not is_noticed(read_reply(text, tools=NAMES))
    }
    assert silent <= {"harmony_bare"}  # its header has no token, so it begins a line


@given(
    family=st.sampled_from(sorted(CALLS)),
    before=SENTENCES,
    between=st.sampled_from(["\n", "\n\n"]),
)
def test_no_call_behind_prose_is_passed_over(family: str, before: str, between: str) -> None:
    """Whatever was said before it."""
    text = f"{before}{between}{CALLS[family]}"
    assert is_noticed(read_reply(text, tools=NAMES))


@pytest.mark.parametrize("family", MARKED)
def test_no_damaged_call_is_passed_over(family: str) -> None:
    """What cannot be read leaves a defect, as long as it still has the name of the tool."""
    for case in damaged_calls.damaged_calls(family, 11, 15):
        if re.search(r"\bclean\b", case.text):
            assert is_noticed(read_reply(case.text, tools=NAMES)), case.text


@pytest.mark.parametrize("sign", "{}[]()\"',:;<>|")
@pytest.mark.parametrize("at", range(11))
def test_no_call_with_a_stray_sign_before_its_name_is_passed_over(at: int, sign: str) -> None:
    """Wherever it stands between the first brace and the name."""
    head = '{"name": "'
    text = f'{head[:at]}{sign}{head[at:]}clean", "dry_run": false, "path": "/tmp/a"}}'
    assert is_noticed(read_reply(text, tools=NAMES)), text


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from texts_in(item)


@pytest.mark.parametrize("family", sorted(damaged_calls.RENDERERS))
def test_no_value_holds_a_closing_tag_of_its_own_format(family: str) -> None:
    """A damaged call whose value swallowed its closing tag is refused; no certain one has such."""
    own = set(MARKS.findall(CALLS[family]))
    for case in damaged_calls.damaged_calls(family, 5, 25):
        reading = read_reply(case.text, tools=NAMES, accept="likely")
        for call in (*reading.calls, *reading.seen):
            if call.certainty == "likely" and all(one.lossless for one in call.receipts):
                continue  # undamaged, the value may speak of the format
            held = {mark for text in texts_in(call.arguments) for mark in MARKS.findall(text)}
            assert not held & own, case.text


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "clean", "arguments": {"note": "</tool_call> ends it"}}</tool_call>',
        '<invoke name="clean"><parameter name="note">a <b>word</b></parameter></invoke>',
        '<function name="clean"><param name="note"><![CDATA[a </param>]]></param></function>',
    ],
)
def test_markup_that_is_quoted_or_another_is_text(text: str) -> None:
    """In JSON, in CDATA, and of a page."""
    (call,) = read_reply(text, tools=NAMES).calls
    assert (call.state, call.certainty) == ("whole", "certain")


@pytest.mark.parametrize("family", sorted(CALLS.keys() - {"react_lines"}))
def test_the_markup_of_a_page_is_a_value_like_any_other(family: str) -> None:
    """Also where its names begin like those of the format: `a`, `p`, `f`, `i`, `t`."""
    for note in ("<p>see <a href=/x>it</a></p>", "a <i>b</i> <t>c</t> <f>d</f>", "end</p> </a>"):
        text = RENDERERS[family]([("clean", {"note": note})], "", "")
        calls = read_reply(text, tools=NAMES, accept="likely", finish_reason="stop").calls
        assert [(call.state, call.arguments) for call in calls] == [("whole", {"note": note})]


def test_one_call_is_returned_once() -> None:
    """A call in markup and the same call in words next to it are one; another one is another."""
    chance = random.Random(3)
    spoken = ("bare_array", "bare_objects", "pythonic", "flat_bare", "text_arguments")
    for _, written in sorted(CALLS.items()):
        for other in chance.sample(spoken, 3):
            text = f"I will clean up now.\n{written}\n\n{CALLS[other]}"
            reading = read_reply(text, tools=NAMES, accept="likely")
            certain = [call for call in reading.calls if call.certainty == "certain"]
            likely = [call for call in (*reading.calls, *reading.seen) if call not in certain]
            if certain:
                assert [call for call in likely if call.arguments == ARGUMENTS] == [], text


@pytest.mark.parametrize("family", sorted(CALLS.keys() - {"react_lines"}))
def test_a_call_that_is_said_again_is_returned_once(family: str) -> None:
    """In a block of code each, with words between them, it is one call."""
    text = f"I clean up:\n\n```\n{CALLS[family]}\n```\n\nOnce more:\n\n```\n{CALLS[family]}\n```"
    reading = read_reply(text, tools=NAMES, accept="likely")
    calls = [call for call in (*reading.calls, *reading.seen) if call.certainty == "likely"]
    assert len([call for call in calls if call.arguments == ARGUMENTS]) <= 1
    assert reading.calls


@pytest.mark.parametrize("accept", ["certain", "likely"])
def test_a_call_in_its_field_is_not_read_from_the_text_again(accept: Any) -> None:
    """Models say what they call and call it; only another call is listed."""
    function = {"name": "clean", "arguments": '{"path": "/tmp/a", "count": 5, "keep": ["b"]}'}
    calls = [{"id": "a", "type": "function", "function": function}]
    for written in CALLS.values():
        message = {"role": "assistant", "content": f"I clean up.\n{written}", "tool_calls": calls}
        reading = read_reply(message, tools=NAMES, accept=accept)
        assert [call.id for call in reading.calls] == ["a"]
        assert [call for call in reading.seen if call.arguments == ARGUMENTS] == []
