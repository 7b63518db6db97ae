"""Qwen-Agent's florette format: `✿FUNCTION✿: name`, `✿ARGS✿: {...}`."""

from typing import Final

from .base import CallFormat, Found, TextCall
from .source import Source

__all__ = ["Florette", "FloretteAnswer"]

_FUNCTION: Final = "✿FUNCTION✿"
_ARGS: Final = "✿ARGS✿"
_MAX_LINE: Final = 256
_RETURN: Final = "✿RETURN✿:"
_RESULTS: Final = ("✿RESULT✿", "✿RETURN✿")


class FloretteAnswer(CallFormat):
    """The marker before an answer, which is dropped."""

    name = "florette"
    line_start = True
    trims = False
    literals = (_RETURN,)

    def read(self, source: Source, at: int) -> Found | None:
        """Pass over the marker."""
        return Found(end=source.skip_space(at + len(_RETURN)), grade="damaged")


class Florette(CallFormat):
    """Pairs of a name and its arguments; results that follow are made up."""

    name = "florette"
    literals = (_FUNCTION,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read pairs up to a result or the end."""
        calls: list[TextCall] = []
        end = here = at
        while source.starts(_FUNCTION, here):
            line = _line_end(source, here)
            name = source.text[here + len(_FUNCTION) : line].strip().removeprefix(":").strip()
            if line < 0 or not name or source.tools.resolve(name) is None:
                break
            if source.at_end(line):
                return Found(end=line, calls=tuple(calls), grade="damaged")
            call, end = _read_arguments(source, name, source.skip_space(line))
            calls.append(call)
            here = source.skip_space(end)
        if not calls:
            return None
        if source.begun_at_end((*_RESULTS, _FUNCTION), here):
            return Found(end=len(source.text), calls=tuple(calls), grade="damaged")
        if source.starts_any(_RESULTS, here):
            return Found(end=here, calls=tuple(calls), grade="damaged", ends_message=True)
        return Found(end=end, calls=tuple(calls), grade="damaged")


def _line_end(source: Source, at: int) -> int:
    """Return where the line of a name ends, or -1 when it is longer than names are."""
    found = source.text.find("\n", at, at + _MAX_LINE)
    if found >= 0:
        return found
    return len(source.text) if source.at_end(at + _MAX_LINE) else -1


def _read_arguments(source: Source, name: str, at: int) -> tuple[TextCall, int]:
    if source.at_end(at):
        return TextCall(name=name, arguments="", state="cut"), at
    if not source.starts(_ARGS, at):
        partial = source.text[at : at + len(_ARGS)]
        if _ARGS.startswith(partial):
            return TextCall(name=name, arguments="", state="cut"), len(source.text)
        return TextCall(name=name, arguments=None), at
    here = source.skip_space(at + len(_ARGS))
    if source.char(here) == ":":
        here = source.skip_space(here + 1)
    if source.at_end(here):
        return TextCall(name=name, arguments="", state="cut"), here
    if source.char(here) != "{":
        end = source.line_end(here)
        return TextCall(name=name, arguments=source.text[here:end]), end
    end = source.value_end(here)
    if end is None:
        return TextCall(name=name, arguments=source.text[here:], state="cut"), len(source.text)
    return TextCall(name=name, arguments=source.text[here:end]), end
