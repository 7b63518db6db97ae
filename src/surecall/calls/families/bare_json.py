"""JSON calls without any marker: an object, an array or objects in a row."""

from typing import Final

from surecall.calls.endings import note_leftovers, skip_leftovers, skip_to_end
from surecall.calls.fitting import begins_like_call, gate_row, read_row
from surecall.calls.formats import CallFormat, Found, add_receipts
from surecall.calls.json_block import receipt
from surecall.calls.source import Source

_CLOSERS: Final = {
    f"</{tag}>": f"<{tag}>" for tag in ("tool_call", "tool_calls", "function_call", "TOOLCALL")
}
"""Tags that close calls; what opens them may be in the prompt, or be lost."""


class BareJson(CallFormat):
    """JSON from the start of a line to a closer or the end of the message, all calls that fit."""

    name = "bare_json"
    line_start = True
    literals = ("{", "[")

    def read(self, source: Source, at: int) -> Found | None:
        """Read values up to a closer, or to the end of the message."""
        if not begins_like_call(source, at):
            return None
        row = read_row(source, at)
        if row is None:
            return None
        rest = row.end if row.is_cut else skip_leftovers(source, row.end)
        closer = "" if row.is_cut else source.starts_any(_CLOSERS, source.skip_space(rest))
        if closer:
            end = source.skip_space(rest) + len(closer)
        else:
            end = rest if row.is_cut else skip_to_end(source, rest)
        if end is None:
            return None
        gated = gate_row(source, row)
        if gated is None or (closer and not gated.calls):
            return None
        extra = source.text[row.end : rest].strip("; \t\r\n")
        calls = note_leftovers(gated.calls, source.text[at : row.end], extra)
        if closer:
            why = f"only {closer} is there"
            calls = add_receipts(calls, receipt("missing_opener", "", _CLOSERS[closer], why))
        return Found(
            end=end,
            calls=calls,
            content=gated.content,
            reasoning=gated.reasoning,
            grade="damaged" if closer else "bare",
        )
