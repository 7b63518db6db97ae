"""Calls behind a word: Gorilla's `<<function>>name(...)` and NexusRaven's `Call: name(...)`."""

from typing import Final

from .base import CallFormat, Found
from .pythonic import read_calls_in_python, text_calls_of
from .source import Source

__all__ = ["Gorilla", "NexusRaven"]

_GORILLA: Final = "<<function>>"
_RAVEN: Final = "Call:"
_RAVEN_END: Final = "<bot_end>"


class Gorilla(CallFormat):
    """OpenFunctions: calls behind `<<function>>`, separated by commas."""

    name = "gorilla"
    literals = (_GORILLA,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls behind the marker."""
        return _read(source, at + len(_GORILLA))


class NexusRaven(CallFormat):
    """Calls behind `Call:` at the start of a line, ended by `<bot_end>`."""

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
