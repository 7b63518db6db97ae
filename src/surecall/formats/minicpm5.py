"""MiniCPM5: `<function name="N"><param name="K">VALUE</param></function>`."""

from typing import Final

from .base import CallFormat, Found
from .blocks import end_of_calls, have_arguments, read_calls
from .source import Source
from .tags import ElementGrammar

__all__ = ["MiniCpm5"]

_GRAMMAR: Final = ElementGrammar(calls=("function",), values=("param", "parameter"))


class MiniCpm5(CallFormat):
    """Functions and parameters with their names as attributes; values may be CDATA."""

    name = "minicpm5"
    literals = ("<function name=", "<functionname=", "<function\u0120name=")

    def read(self, source: Source, at: int) -> Found | None:
        """Read functions in a row."""
        head = _GRAMMAR.tag(source, at)
        if head is None:
            if not _GRAMMAR.is_begun(source, at):
                return None
            begun = source.text[at:].partition("=")[2].strip("\"'")
            cut = any(name.startswith(begun) for name in source.tools.names)
            return Found(end=len(source.text)) if cut else None
        marked = not head.rule and not head.closed
        if head.kind != "open_call" or not head.label:
            return None
        if not marked and source.tools.resolve(head.label) is None:
            return None
        calls, end = read_calls(source, _GRAMMAR, at)
        if not calls or not have_arguments(calls):
            return None
        end, invented = end_of_calls(source, end)
        return Found(
            end=end,
            calls=tuple(calls),
            grade="marked" if marked else "damaged",
            ends_message=invented,
        )
