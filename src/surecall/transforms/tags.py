"""Finding `<tool_call>` tags in text, and reading what is between them.

Tags that are only quoted are not calls: those that start inside a fenced block, inline code or a
template span, and those whose opener is escaped. Only where a tag starts matters; what is inside a
tag is taken as it was written, whatever it looks like.
"""

import re
from bisect import bisect_left
from typing import Any, Final, NamedTuple, cast

from surecall.errors import JSONTextError
from surecall.jsontext import decode_noting, encode_text

__all__ = ["CLOSER", "OPENER", "Tag", "TagCall", "find_tags", "parse_payload"]

OPENER: Final = "<tool_call>"
CLOSER: Final = "</tool_call>"

# Literals and single-character runs only: none of these can backtrack.
_POINTS: Final = re.compile(r"<tool_call>|`+|~{3,}|\{\{|\{%")
_BACKTICKS: Final = re.compile(r"`+")
_TEMPLATE_CLOSERS: Final = {"{{": "}}", "{%": "%}"}
_MAX_INDENT: Final = 64

_NAME_CHARACTERS: Final = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
)
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters")
_KEYS_BESIDE_ARGUMENTS: Final = frozenset({"description", "function", "id", "name", "type"})


class Tag(NamedTuple):
    """Where one tag is: from its opener to behind its closer."""

    start: int
    end: int


class TagCall(NamedTuple):
    """What a tag asks for: a tool's name and the text of its arguments."""

    name: str
    arguments: str


def find_tags(text: str) -> list[Tag]:
    """Return every closed tag that is not quoted, in order, in one pass over the text."""
    if OPENER not in text or CLOSER not in text:
        return []
    zones = _Zones(text)
    tags: list[Tag] = []
    position = 0
    while point := _POINTS.search(text, position):
        if point[0] != OPENER:
            position = zones.end_of(point)
        elif point.start() > 0 and text[point.start() - 1] == "\\":
            position = point.end()
        else:
            closer = text.find(CLOSER, point.end())
            if closer < 0:
                break
            position = closer + len(CLOSER)
            tags.append(Tag(point.start(), position))
    return tags


def parse_payload(payload: str) -> TagCall | None:
    """Return the call written between an opener and a closer, or `None` when it is not one.

    Forms: an object with `name` and `arguments` (or `args`, `parameters`), the same inside
    `function`, a bare name, or a bare name followed by an object. Arguments are passed on as
    text, also when they are no object: refusing them is the reader's work.
    """
    payload = payload.strip()
    if payload.startswith("{"):
        return _parse_object(payload)
    name, rest = [*payload.split(maxsplit=1), "", ""][:2]
    if not name or not _NAME_CHARACTERS.issuperset(name):
        return None
    if not rest:
        return TagCall(name, "{}")
    return TagCall(name, rest) if rest.startswith("{") else None


class _Zones:
    """Where the verbatim zones of a text end; every question moves forward only."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._runs: dict[int, list[int]] | None = None
        self._blank_line = -1
        self._exhausted: set[str] = set()

    def end_of(self, opener: re.Match[str]) -> int:
        """Return where the zone that `opener` starts ends; behind `opener` when it starts none."""
        kind = opener[0]
        if kind in _TEMPLATE_CLOSERS:
            return self._end_of_template(kind, opener.end())
        if len(kind) >= 3 and self._starts_line(opener.start()):
            rest = self._text[opener.end() : self._line_end(opener.end())]
            if "`" not in rest or kind[0] == "~":
                return self._end_of_fence(kind, opener.end())
        if kind[0] == "`" and not self._is_escaped_backtick(opener):
            return self._end_of_inline_code(len(kind), opener.end())
        return opener.end()

    def _end_of_template(self, kind: str, start: int) -> int:
        if kind in self._exhausted:
            return start
        end = self._text.find(_TEMPLATE_CLOSERS[kind], start)
        if end < 0:
            self._exhausted.add(kind)
            return start
        return end + 2

    def _end_of_fence(self, fence: str, start: int) -> int:
        """A fence ends at a line with at least as many marks; without one, at the end of text."""
        text = self._text
        position = text.find(fence, start)
        while position >= 0:
            end = position
            while end < len(text) and text[end] == fence[0]:
                end += 1
            line_end = self._line_end(end) if self._starts_line(position) else -1
            if line_end >= 0 and not text[end:line_end].strip():
                return end
            position = text.find(fence, end)
        return len(text)

    def _end_of_inline_code(self, length: int, start: int) -> int:
        """Inline code ends at a run of as many backticks, in the same paragraph."""
        if self._runs is None:
            self._runs = {}
            for run in _BACKTICKS.finditer(self._text, start):
                self._runs.setdefault(run.end() - run.start(), []).append(run.start())
        same = self._runs.get(length, [])
        index = bisect_left(same, start)
        if index == len(same):
            return start
        if self._blank_line < start:
            found = self._text.find("\n\n", start)
            self._blank_line = found if found >= 0 else len(self._text)
        return same[index] + length if same[index] < self._blank_line else start

    def _starts_line(self, position: int) -> bool:
        before = self._text[max(0, position - _MAX_INDENT) : position].rstrip(" \t")
        return before.endswith("\n") or (not before and position <= _MAX_INDENT)

    def _line_end(self, position: int) -> int:
        end = self._text.find("\n", position)
        return end if end >= 0 else len(self._text)

    def _is_escaped_backtick(self, run: re.Match[str]) -> bool:
        return len(run[0]) == 1 and run.start() > 0 and self._text[run.start() - 1] == "\\"


def _parse_object(payload: str) -> TagCall | None:
    try:
        decoded = decode_noting(payload)
    except JSONTextError:
        return None
    # Which of two differing values was meant cannot be known.
    if decoded.duplicates:
        return None
    # The text begins with a brace, so what was decoded is an object.
    body = cast("dict[str, Any]", decoded.value)
    wrapped = body.get("function")
    inner = cast("dict[str, Any]", wrapped) if isinstance(wrapped, dict) else body
    name = inner.get("name")
    arguments = _arguments_text({**body, **inner})
    if not isinstance(name, str) or not name.strip() or arguments is None:
        return None
    return TagCall(name.strip(), arguments)


def _arguments_text(body: dict[str, Any]) -> str | None:
    """Return the arguments as text; `None` when they may be under a key that is not known."""
    for key in _ARGUMENT_KEYS:
        if key in body:
            value = body[key]
            if isinstance(value, str):
                return value
            try:
                return "{}" if value is None else encode_text(value)
            except JSONTextError:
                return None
    return "{}" if _KEYS_BESIDE_ARGUMENTS.issuperset(body) else None
