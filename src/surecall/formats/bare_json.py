"""JSON calls without any marker: an object, an array or objects in a row end the message."""

from .base import CallFormat, Found
from .endings import note_leftovers, skip_leftovers, skip_to_end
from .json_rows import begins_like_call, gate_row, read_row
from .source import Source

__all__ = ["BareJson"]


class BareJson(CallFormat):
    """JSON from the start of a line to the end of the message, all of it calls that fit."""

    name = "bare_json"
    line_start = True
    literals = ("{", "[")

    def read(self, source: Source, at: int) -> Found | None:
        """Read values up to the end of the message."""
        if not begins_like_call(source, at):
            return None
        row = read_row(source, at)
        if row is None:
            return None
        rest = row.end if row.is_cut else skip_leftovers(source, row.end)
        end = rest if row.is_cut else skip_to_end(source, rest)
        if end is None:
            return None
        gated = gate_row(source, row)
        if gated is None:
            return None
        leftovers = source.text[row.end : rest].strip("; \t\r\n")
        return Found(
            end=end,
            calls=note_leftovers(gated.calls, leftovers),
            content=gated.content,
            reasoning=gated.reasoning,
            grade="bare",
            is_whole_message=bool(leftovers),
        )
