"""Cohere: a list of calls behind `Action:`, between tokens or in a fence."""

from typing import Final

from surecall.calls.formats import CallFormat, Found
from surecall.calls.json_block import read_after_token
from surecall.calls.names import PLACEHOLDERS
from surecall.calls.shapes import read_json_calls
from surecall.calls.source import Source

_OPENER: Final = "<|START_ACTION|>"
_CLOSER: Final = "<|END_ACTION|>"
_ANSWER_ENDS: Final = ("<|END_RESPONSE|>", "<|END_TEXT|>")
_CITED: Final = "<co>"
_CITED_END: Final = "</co"


class CohereAction(CallFormat):
    """An array of `{"tool_call_id", "tool_name", "parameters"}`."""

    name = "cohere_action"
    trims = False
    literals = (_OPENER, _CITED, *_ANSWER_ENDS)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls up to the end of the action, or the span that is cited."""
        if source.starts(_CITED, at):
            return _read_citation(source, at)
        if ended := source.starts_any(_ANSWER_ENDS, at):
            at = source.skip_space(at + len(ended))
            if not source.starts(_OPENER, at):
                return None
        return read_after_token(source, at + len(_OPENER), _OPENER, (_CLOSER,), closes=True)


def _read_citation(source: Source, at: int) -> Found | None:
    """Read `<co>span</co: 0:[1]>`, of which only the span is for a person to see."""
    start = at + len(_CITED)
    end, literal = source.find_any((_CITED_END, _CITED, "\n"), start)
    if literal != _CITED_END:
        return None
    closed, literal = source.find_any((">", "\n"), end)
    if literal != ">":
        return None
    return Found(end=closed + 1, content=source.text[start:end])


_LABEL: Final = "Action:"
_FENCE: Final = "```"


class CommandR(CallFormat):
    """An array of `tool_name` and `parameters` in the fence after `Action:`."""

    name = "command_r"
    line_start = True
    literals = (_LABEL,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the array; `directly-answer` among the names calls nothing."""
        here = source.skip_space(at + len(_LABEL))
        for opener in (f"{_FENCE}json", _FENCE):
            if source.starts(opener, here):
                here = source.skip_space(here + len(opener))
                break
        else:
            return None
        if source.char(here) != "[":
            return None
        end = source.value_end(here)
        whole = end is not None
        end = len(source.text) if end is None else end
        calls = read_json_calls(
            source.text[here:end], ended=whole, tools=source.tools, spend=source.spend_on_marks
        )
        if not calls:
            return None
        kept = tuple(call for call in calls if call.name.strip().lower() not in PLACEHOLDERS)
        after = source.skip_space(end)
        if source.starts(_FENCE, after):
            end = after + len(_FENCE)
        return Found(end=end, calls=kept, grade="damaged")
