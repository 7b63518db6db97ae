"""What is left of calls that no reader knows: a tool's name, and its parameters beside it."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from surecall.calls.families import FORMATS
from surecall.calls.names import ToolNames, parameter_names
from surecall.calls.tags import differ_by_one

from .layout import Span
from .naming import Name, find_names
from .phrases import CALL_LANGUAGES

_REACH: Final = 240
_MAX_TRACES: Final = 64
_MAX_LINES: Final = 12
_OPENS: Final = frozenset("<([{|>=:")
_CLOSES: Final = frozenset(">)]}|")
_STRUCTURE: Final = re.compile(r"[<(\[{|｜✿}\])>\"']")
_ENDS: Final = ">)]}|\"'`"


_NEAR: Final = 60
_MAX_BETWEEN: Final = 8
_FENCES: Final = ("```", "~~~", "**")
_MIN_OPENER: Final = 5
_MIN_MARK: Final = 3
_MAX_WORD: Final = 7
_MIN_LANGUAGE: Final = 4
_IN_STRUCTURE: Final = re.compile(
    r"[{\[]{1,2}+\s*+[\"']|<[|｜]|\[/?[A-Z]{3}|\W{0,2}[\w-]*+[\"']?[\w-]*+[\"']\s*+:"
    r"|[{\[]?[=:,;]++\s*+[\"']?\Z|<\W{0,4}>|</"
)
_REST: Final = re.compile(
    r"[\])}\"']*+\s*+(?:,\s*+[\"'{\[]|,\s*+\w++=|[\"'][\w-]++[\"']\s*+:|[}\])])|\w"
)
_OPEN_ENDS: Final = "])}"
_PLAIN_TAG: Final = re.compile(r"<[a-z]++>")
_OPENED: Final = re.compile(
    r"[\[({<>][\s\"'\w:=-]{0,40}\Z|[\"']\w{1,20}[\"']?[\s\]}:=\"']{1,6}\Z|=[\w.]{1,40}\Z"
)
"""A bracket, tag or key right before a name."""
_ON_NEXT_LINE: Final = re.compile(r"[ \t]*+\n\s*+[{\[\"'}\]:]")
_END_MARK: Final = re.compile(
    r"<[|｜][^<>\s|｜]{1,60}+[|｜]>|<[\w.:]{1,60}+[|｜]>|<(?:bot_end|end_\w{1,40}+)>|\[/TOOL"
    r"|</[\w:.｜-]{0,40}(?:tool|func|call|action|invoke)",
    re.IGNORECASE,
)
"""What ends a call, and no sentence."""
_DECLARES: Final = re.compile(
    r"[\"']properties[\"']|[\"']role[\"']\s*+:|\*args|\)\s*+->|\.{3}|…|[\"']description[\"']\s*+:"
)
"""What a tool's declaration, its result or its signature has, and a call has not."""


class Trace(NamedTuple):
    """What seems to be a call, and the tool it names."""

    start: int
    end: int
    tool: str
    named: int
    """Where the name of the tool stands."""


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
    if opened is not None and _OPENED.search(before, max(0, len(before) - _NEAR)):
        return True
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
    start = name.start if opened is None else opened.start()
    return Trace(start, end, name.tool, name.start)


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
    object or tag that it is a part of. Behind it, it is the rest of its arguments, or what ends a
    call in some format.
    """
    begun = max(text.rfind("\n", 0, start) + 1, start - _REACH)
    before = text[begun:start].strip()
    inner = before.strip("[({")
    is_alone = not inner or (inner == '"' and '"' not in text[end : _line_end(text, end)])
    if not before and start:  # the opener is on the line above
        before = text[max(0, start - _NEAR) : start].strip().rpartition("\n")[2]
    if before and (_IN_STRUCTURE.match(before) or _has_opener(before)):
        return True
    if _END_MARK.search(text, end, end + _REACH):
        return True
    if not is_alone:
        return False
    over = _line_end(text, end)
    found = _REST.match(text, end, over)
    if found is not None and (found.end() - end > 1 or text[end - 1] in _OPEN_ENDS):
        return True
    return _is_unbalanced(text[begun:start] + text[end:over])


def is_on_its_line(text: str, trace: Trace) -> bool:
    """Tell whether a name is all that stands on its line, and a bracket or quote below it."""
    begun = text.rfind("\n", 0, trace.named) + 1
    named = text[trace.named : _line_end(text, trace.named)].rstrip()
    is_all = not text[begun : trace.named].strip() and len(named.split()) == 1
    return is_all and _ON_NEXT_LINE.match(text, trace.named + len(named)) is not None


def _is_unbalanced(text: str) -> bool:
    """Tell whether a line closes more than was opened on it, or has one quote of a pair."""
    closed = text.count("}") > text.count("{") or text.count("]") > text.count("[")
    return closed or text.strip() == '"'


def begins_with_opener(text: str) -> bool:
    """Tell whether a text begins with an opener that is no word, no tag and no fence."""
    start = text.lstrip()[:_NEAR]
    return any(
        start.startswith(opener)
        for opener in _openers()
        if not (opener[0].isalpha() or opener.startswith(_FENCES) or _PLAIN_TAG.fullmatch(opener))
    )


def _has_opener(before: str) -> bool:
    """Tell whether a line ends with an opener, or is one with one character wrong."""
    bare = before.rstrip(" :=\"'[({]>")
    for opener in _openers():
        is_plain = _PLAIN_TAG.fullmatch(opener) is not None
        found = before.rfind(opener)
        between = len(before) - found - len(opener)
        if is_plain or len(opener) < _MIN_OPENER:
            if 0 <= found <= 1 and 0 < between <= _MAX_BETWEEN:
                return True
        elif found >= 0 and _is_near(opener, found, between):
            return True
        for length in (len(opener) - 1, len(opener), len(opener) + 1):
            for line in (before, bare):
                is_slip = length >= len(line) and (" " not in line or len(opener) > _MIN_OPENER)
                is_slip = is_slip or not (is_plain or len(opener) <= _MIN_OPENER)
                if is_slip and line != opener and differ_by_one(line[-length:], opener):
                    return True
    return False


def _is_near(opener: str, found: int, between: int) -> bool:
    """Tell whether an opener begins a line, or stands near its end and is more than a word."""
    if between <= _MAX_BETWEEN:
        return found == 0 or len(opener) > _MAX_WORD
    return found == 0 and not opener.strip(":").isalpha()


@lru_cache(maxsize=1)
def _openers() -> tuple[str, ...]:
    """Return the openers of all families that are more than a bracket."""
    literals = {literal.strip().rstrip("[{") for form in FORMATS for literal in form.literals}
    literals |= {f"```{language}" for language in CALL_LANGUAGES if len(language) >= _MIN_LANGUAGE}
    return tuple(
        sorted(
            it
            for it in literals
            if len(it) >= _MIN_OPENER or (len(it) >= _MIN_MARK and not it.isalpha())
        )
    )


@lru_cache(maxsize=256)
def is_near_language(language: str) -> bool:
    """Tell whether a block of code names a language of calls with one character wrong, or more."""
    return any(
        language.startswith(known) or differ_by_one(language.split(" ", maxsplit=1)[0], known)
        for known in CALL_LANGUAGES
        if len(known) >= _MIN_LANGUAGE
    )
