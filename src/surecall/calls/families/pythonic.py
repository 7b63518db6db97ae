"""Calls in Python syntax without tags: a list or a line of them, Gorilla and NexusRaven."""

from collections.abc import Sequence
from typing import Final

from msgspec import structs

from surecall.calls.endings import skip_to_end
from surecall.calls.fitting import fits
from surecall.calls.formats import CallFormat, Found, TextCall
from surecall.calls.names import ToolNames
from surecall.calls.python_calls import (
    PythonCall,
    PythonCalls,
    read_calls_in_python,
    read_python_calls,
    text_calls_of,
)
from surecall.calls.source import NeedMore, Source

_MAX_LISTS: Final = 64
_MAX_NESTED_CHARS: Final = 4096


class Pythonic(CallFormat):
    """A list of calls, or calls in a row, from the start of a line to the end of the message."""

    name = "pythonic"
    line_start = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return a bracket, and the name of every tool with its parenthesis."""
        return ("[", *(f"{name}(" for name in tools.names))

    def read(self, source: Source, at: int) -> Found | None:
        """Read calls that run to the end of the message and fit their tools exactly."""
        is_list = source.char(at) == "["
        found = read_calls_in_python(source, at)
        if is_list and found.state == "not_calls" and not found.calls:
            found = _read_nested_quotes(source, at) or found
        elif is_list and found.state == "whole":
            found = _read_more_lists(source, at, found)
        end = skip_to_end(source, found.end, also=".;") if found.state == "whole" else None
        if found.state == "not_calls" or (found.state == "whole" and end is None):
            return None
        if not all(_fits_exactly(source, call) for call in found.calls):
            return None
        calls = text_calls_of(source, found)
        if not calls:
            return None
        if found.state == "cut":
            if found.cut_name is not None and source.tools.resolve(found.cut_name) is None:
                return None
            if found.cut_name is None and _is_remark(source, found.end):
                return None
            # Without its bracket a list may have lost calls, so none of them counts as whole.
            lacks_bracket = not source.text[found.end :].strip()
            calls = tuple(_cut(call, is_complete=lacks_bracket) for call in calls)
            return Found(end=len(source.text), calls=calls, grade="bare")
        return None if end is None else Found(end=end, calls=calls, grade="bare")


def _is_remark(source: Source, at: int) -> bool:
    """Tell whether a last word begins no call, such as "Done." behind `ping()`.

    A word in small letters with a stop behind it may begin a name, such as `functions.search`.
    """
    word = source.text[at:].strip()
    if word[:1].isupper():
        word = word.removesuffix(".")
    return word.isidentifier() and not any(name.startswith(word) for name in source.tools.names)


def _cut(call: TextCall, *, is_complete: bool) -> TextCall:
    unclosed = call.arguments if is_complete and call.state == "whole" else None
    return structs.replace(call, state="cut", unclosed=unclosed)


def _read_nested_quotes(source: Source, at: int) -> PythonCalls | None:
    """Read a list that is the rest of the message, with quotes in strings that are not escaped."""
    name, end = source.read_name(source.skip_space(at + 1))
    if source.char(end) != "(" or source.tools.resolve(name) is None:
        return None
    if len(source.text) - at > _MAX_NESTED_CHARS:
        return None
    if not source.final:
        raise NeedMore
    found = read_python_calls(source.text, at, nested_quotes=True, spend=source.spend_on_marks)
    return found if found.state == "whole" else None


def _read_more_lists(source: Source, at: int, found: PythonCalls) -> PythonCalls:
    """Add the lists that follow the first one, unless they are known not to end the message."""
    followed = source.once(_make_followed, 0)
    if at in followed:
        return found
    begins, calls, end = [at], list(found.calls), found.end
    while len(begins) <= _MAX_LISTS and source.char(at := source.skip_space(end)) == "[":
        more = read_calls_in_python(source, at)
        if more.state != "whole":
            break
        begins.append(at)
        calls += more.calls
        end = more.end
    if skip_to_end(source, end, also=".;") is None:
        followed.update(begins)
    return structs.replace(found, calls=tuple(calls), end=end)


def _make_followed(_source: Source, _at: int) -> set[int]:
    return set()


def _fits_exactly(source: Source, call: PythonCall) -> bool:
    parameters = source.tools.parameters(call.name)
    return parameters is not None and not call.positional and fits(parameters, call.keywords)


_GORILLA: Final = "<<function>>"
_RAVEN: Final = "Call:"
_RAVEN_END: Final = "<bot_end>"


class Gorilla(CallFormat):
    """OpenFunctions: calls after `<<function>>`, separated by commas."""

    name = "gorilla"
    literals = (_GORILLA,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls behind the marker."""
        return _read(source, at + len(_GORILLA))


class NexusRaven(CallFormat):
    """Calls after `Call:` at the start of a line, ended by `<bot_end>`."""

    name = "nexus_raven"
    line_start = True
    literals = (_RAVEN,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls behind the label; nested calls are refused."""
        found = _read(source, at + len(_RAVEN))
        if found is None:
            return None
        end = source.skip_space(found.end)
        if source.starts(_RAVEN_END, end):
            return Found(end=end + len(_RAVEN_END), calls=found.calls, grade=found.grade)
        at_line_end = "\n" in source.text[found.end : end] or source.at_end(end)
        return found if at_line_end else None


def _read(source: Source, at: int) -> Found | None:
    here = source.skip_space(at)
    if source.at_end(here):
        return None
    found = read_calls_in_python(source, here, nested_quotes=True)
    calls = None if found.state == "not_calls" else text_calls_of(source, found)
    if not calls:
        return None
    end = len(source.text) if found.state == "cut" else found.end
    return Found(end=end, calls=calls, grade="damaged")
