"""What is left of calls that no reader knows: a tool's name, and its parameters beside it."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from surecall.calls.catalog import FORMATS
from surecall.calls.names import ToolNames, parameter_names
from surecall.calls.tags import differ_by_one

from .layout import Span
from .naming import Name, find_names

_REACH: Final = 240
_MAX_TRACES: Final = 64
_MAX_LINES: Final = 12
_OPENS: Final = frozenset("<([{|>=:")
_CLOSES: Final = frozenset(">)]}|")
_STRUCTURE: Final = re.compile(r"[<(\[{|｜✿}\])>\"']")
_ENDS: Final = ">)]}|\"'`"


_NEAR: Final = 60
_MAX_BETWEEN: Final = 8
_MIN_OPENER: Final = 6
_IN_STRUCTURE: Final = re.compile(r"[{\[]{1,2}+\s*+[\"']|<[|｜]|\[/?[A-Z]{3}")
_REST: Final = re.compile(
    r"[\])}\"']*+\s*+(?:,\s*+[\"'{\[]|,\s*+\w++=|[\"'][\w-]++[\"']\s*+:|[}\])])"
)
_PLAIN_TAG: Final = re.compile(r"<[a-z]++>")
_DECLARES: Final = re.compile(
    r"[\"']properties[\"']|[\"']role[\"']\s*+:|\*args|\)\s*+->|\.{3}|…|[\"']description[\"']\s*+:"
)
"""What a tool's declaration, its result or its signature has, and a call has not."""


class Trace(NamedTuple):
    """What seems to be a call, and the tool it names."""

    start: int
    end: int
    tool: str


def find_traces(text: str, tools: ToolNames, known: Sequence[Span]) -> list[Trace]:
    """Return the names of tools beside which arguments stand, outside of what is known."""
    names = find_names(text, tools)
    if not names:
        return []
    text = _without(text, known)
    found: list[Trace] = []
    for name in names:
        if text[name.start].isspace() or (found and name.start < found[-1].end):
            continue
        keys = parameter_names(tools.parameters(name.tool))
        if keys and _has_arguments(text, name, _key_pattern(keys)):
            trace = _trace(text, name)
            if not _DECLARES.search(text, trace.start, trace.end):
                found.append(trace)
            if len(found) == _MAX_TRACES:
                break
    return found


def _without(text: str, known: Sequence[Span]) -> str:
    """Return the text with blanks in the place of what is known."""
    parts: list[str] = []
    here = 0
    for start, end in known:
        parts += (text[here:start], " " * (end - start))
        here = end
    return "".join((*parts, text[here:]))


def _has_arguments(text: str, name: Name, key: re.Pattern[str]) -> bool:
    """Tell whether a parameter with its value stands behind a bracket or tag next to a name."""
    after = text[name.end : name.end + _REACH]
    opened = key.search(after)
    if opened is not None and not _OPENS.isdisjoint(after[: opened.start() + 1]):
        return True
    before = text[max(0, name.start - _REACH) : name.start]
    closed = max(before.rfind(closer) for closer in _CLOSES)
    given = key.search(before)
    return given is not None and given.end() <= closed


def _trace(text: str, name: Name) -> Trace:
    """Return the lines around a name that look like those of a call, without the words beside."""
    begun = text.rfind("\n", 0, name.start) + 1
    for _ in range(_MAX_LINES):
        above = text.rfind("\n", 0, max(0, begun - 1)) + 1
        if above >= begun - 1 or not _STRUCTURE.match(text[above:begun].lstrip()):
            break
        begun = above
    opened = _STRUCTURE.search(text, begun, name.start)
    over = _line_end(text, name.end)
    for _ in range(_MAX_LINES):
        below = _line_end(text, over + 1)
        if below <= over + 1 or not _STRUCTURE.match(text[over + 1 : below].lstrip()):
            break
        over = below
    line = text[name.end : over]
    end = name.end + max(map(line.rfind, _ENDS)) + 1
    return Trace(name.start if opened is None else opened.start(), end, name.tool)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


@lru_cache(maxsize=256)
def _key_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds a key with what notations put around one."""
    either = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    return re.compile(
        r"(?:<[/\w=:|. -]{0,40}|[\"'`“‘]|[({,\[>|\s]|\\[\"n])"
        rf"(?:{either})(?!\w)"
        r"[ \t\"'`”’\\]{0,3}(?:[:=<>]|(?<=[\"'] )\w{1,20}=)"
        rf"|--(?:{either})\s"
    )


def is_damaged(text: str, start: int, end: int) -> bool:
    """Tell whether what stands right around a call is the rest of one, and no words of a sentence.

    Before it that is an opener with one character wrong, or one that something follows; or the
    object or tag that it is a part of. Behind it, it is the rest of its arguments.
    """
    begun = max(text.rfind("\n", 0, start) + 1, start - _REACH)
    before = text[begun:start].strip()
    if not before and start:  # the opener is on the line above
        before = text[max(0, start - _NEAR) : start].strip().rpartition("\n")[2]
    if before and (_IN_STRUCTURE.match(before) or _has_opener(before)):
        return True
    behind = text[end : _line_end(text, end)]
    return not text[begun:start].strip() and _REST.match(behind) is not None


def _has_opener(before: str) -> bool:
    for opener in _openers():
        found = before.rfind(opener)
        if found >= 0 and len(before) - found <= len(opener) + _MAX_BETWEEN:
            return True
        for length in (len(opener) - 1, len(opener), len(opener) + 1):
            if differ_by_one(before[-length:], opener):
                return True
    return False


@lru_cache(maxsize=1)
def _openers() -> tuple[str, ...]:
    """Return the openers of all families that are long enough to be told with a slip in them."""
    literals = {literal.strip().rstrip("[{") for form in FORMATS for literal in form.literals}
    return tuple(
        sorted(it for it in literals if len(it) >= _MIN_OPENER and not _PLAIN_TAG.fullmatch(it))
    )
