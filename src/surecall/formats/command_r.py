"""Command R and R+: `Action:` and a JSON fence with an array of calls."""

from typing import Final

from .base import CallFormat, Found
from .names import PLACEHOLDERS
from .shapes import read_json_calls
from .source import Source

__all__ = ["CommandR"]

_LABEL: Final = "Action:"
_FENCE: Final = "```"


class CommandR(CallFormat):
    """An array of `tool_name` and `parameters` in the fence behind `Action:`."""

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
        calls = read_json_calls(source.text[here:end], ended=whole)
        if not calls:
            return None
        kept = tuple(call for call in calls if call.name.strip().lower() not in PLACEHOLDERS)
        after = source.skip_space(end)
        if source.starts(_FENCE, after):
            end = after + len(_FENCE)
        return Found(end=end, calls=kept, grade="damaged")
