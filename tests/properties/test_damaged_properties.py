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
