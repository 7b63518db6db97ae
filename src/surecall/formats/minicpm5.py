"""MiniCPM5: `<function name="N"><param name="K">VALUE</param></function>`."""

from collections.abc import Sequence
from typing import Final

from .base import Found
from .blocks import end_of_calls, have_arguments, read_calls
from .names import ToolNames
from .source import Source
from .tags import ElementGrammar

__all__ = ["MiniCpm5"]

_GRAMMAR: Final = ElementGrammar(calls=("function",), values=("param", "parameter"))


class MiniCpm5:
    """Functions and parameters with their names as attributes; values may be CDATA."""

    name: str = "minicpm5"
    line_start: bool = False
    trims: bool = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return how a function begins, also where the space was lost or leaked as a symbol."""
        return ("<function name=", "<functionname=", "<function\u0120name=")

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
