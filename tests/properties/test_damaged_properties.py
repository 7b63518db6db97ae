"""Whatever is damaged in a call that is written as text, it never runs as another call."""

import pytest

from support.cut_calls import TARGET
from support.damaged_calls import RENDERERS, DamagedCall, damaged_calls, judge
from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.reading import ReplyReader

_TEXTS = 80
_STRUCTURE = frozenset(
    {
        "bracket moved up", "closer moved up", "damaged closer", "doubled bracket",
        "doubled character of a tag", "doubled tag", "early bracket", "lost character of a tag",
        "lost tag", "members before", "members behind", "members beside", "members in braces",
        "members moved out", "stray closer", "stray closer, and more",
        "swapped characters of a tag", "text behind", "text between", "wrong character in a tag",
    }
)  # fmt: skip
_NAMES = ToolNames([TARGET])


def _sample(family: str) -> list[DamagedCall]:
    calls = damaged_calls(family, 11, _TEXTS)
    return [call for call in calls if call.kind in _STRUCTURE]


@pytest.mark.parametrize("family", sorted(RENDERERS))
def test_a_damaged_call_never_runs_as_another(family: str) -> None:
    """Unless a strict reader of the damaged text would run it."""
    for call in _sample(family):
        assert judge(call) != "WRONG", (call.kind, call.text)


@pytest.mark.parametrize("family", sorted(RENDERERS))
def test_damaged_text_in_pieces_reads_as_the_whole(family: str) -> None:
    """What follows a call is looked at before the call is told."""
    for call in _sample(family)[::4]:
        whole = _read(call.text, len(call.text))
        for size in (1, 5):
            assert _read(call.text, size) == whole, (call.kind, size, call.text)


def _read(text: str, size: int) -> Reading:
    reader = ReplyReader(_NAMES)
    for start in range(0, len(text), size):
        reader.feed(text[start : start + size])
    return reader.close("stop")


_M3 = "]<]minimax[>["
_TWO_SECTIONS = "<![CDATA[5]]]]><![CDATA[>5]]>"


def _call_in_m3(item: str) -> str:
    items = f"{_M3}<item>1{_M3}</item>{_M3}<{item}>2{_M3}</item>"
    body = f'{_M3}<invoke name="clean">{_M3}<keep>{items}{_M3}</keep>{_M3}</invoke>'
    return f"{_M3}<tool_call>{body}{_M3}</tool_call>"


@pytest.mark.parametrize(
    "text",
    [
        '<function name="clean"><param name="count"><![CDATA[5]]><![CDATA[5]]></param></function>',
        '<function name="clean"><param name="note"><![CDATA12]]></param></function>',
        '<function name="clean"><param name="note">![CDATA[12]]></param></function>',
        "<tool_calls>\n- name: clean\n  arguments:\n    options:\n    count: 5\n</tool_calls>",
        _call_in_m3("it_m"),
    ],
)
def test_markup_that_no_rule_explains_makes_a_call_likely(text: str) -> None:
    """It is text of a value, or a value without its text, only to a reader that trusts it."""
    reading = _read(text, len(text))
    assert not [call for call in reading.calls if call.certainty == "certain" and not call.errors]
    (call,) = reading.calls
    assert call.doubt
    assert any(not receipt.lossless for receipt in call.receipts)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (
            f'<function name="clean"><param name="note">{_TWO_SECTIONS}</param></function>',
            {"note": "5]]>5"},
        ),
        (_call_in_m3("item"), {"keep": [1, 2]}),
    ],
)
def test_markup_of_the_format_is_certain(text: str, arguments: dict[str, object]) -> None:
    """Sections around a closer, as XML writes it, and tags of items."""
    (call,) = _read(text, len(text)).calls
    assert (call.certainty, call.arguments) == ("certain", arguments)
