"""JSON calls without any marker: an object, an array or objects in a row."""

import re
from typing import Final, NamedTuple

from msgspec import structs

from surecall.base.limits import MAX_VALUE_DEPTH
from surecall.text import repair_json

from .base import CallFormat, Found, TextCall, add_receipts
from .endings import note_leftovers, skip_leftovers, skip_to_end
from .fitting import KNOWN_KEYS, Gated, gate_value
from .json_block import receipt
from .shapes import read_json_calls
from .source import Source

_MAX_KEY: Final = 80
_MAX_VALUES: Final = 64
_NEAR: Final = 4096
_TOO_DEEP: Final = -1
_NO_MORE: Final = -1
_QUOTES: Final = {'"': '"', "'": "'", "“": "”"}
_CLOSERS: Final = {
    f"</{tag}>": f"<{tag}>" for tag in ("tool_call", "tool_calls", "function_call", "TOOLCALL")
}
"""Tags that close calls; what opens them may be in the prompt, or be lost."""
_PLAIN_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
_OPENERS_ONLY: Final = re.compile(
    rf'(?:(?:[^"{{}}\[\]]++|"(?:[^"\\]++|\\.)*+")*+[{{\[]){{{MAX_VALUE_DEPTH + 1}}}', re.DOTALL
)
"""As many brackets as are too many, and none that closes one: the usual way to be too deep."""
_MARKS: Final = re.compile(r'[{}\[\]]|"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)


class JsonRow(NamedTuple):
    """Where values stand in a row, and whether the text ended in the last one."""

    spans: tuple[tuple[int, int], ...]
    end: int
    is_cut: bool


def begins_like_call(source: Source, at: int) -> bool:
    """Tell whether the object, or the first one of the array, begins with a key of a call."""
    here = at
    if source.char(here) == "[":
        here = source.skip_space(here + 1)
    if source.char(here) != "{":
        return False
    here = source.skip_space(here + 1)
    if source.char(here) == "{":
        here = source.skip_space(here + 1)
    key = _read_key(source, here)
    return key in KNOWN_KEYS or key in source.tools.names


def read_row(source: Source, at: int) -> JsonRow | None:
    """Return the values that follow each other from `at` on; `None` when they cannot be calls."""
    spans: list[tuple[int, int]] = []
    here = at
    while True:
        if len(spans) == _MAX_VALUES:
            return None
        end, following = source.once(_read_value, here)
        if end == _TOO_DEEP:
            return None
        spans.append((here, end))
        if following is None:
            return JsonRow(tuple(spans), end, is_cut=True)
        if following == _NO_MORE:
            return JsonRow(tuple(spans), end, is_cut=False)
        here = following


def _read_value(source: Source, at: int) -> tuple[int, int | None]:
    """Return where a value ends and where the next begins; `None` when the text ends in it."""
    if _is_too_deep(source, at):
        return _TOO_DEEP, None
    end = source.value_end(at)
    if end is None:
        return len(source.text), None
    here = source.skip_space(end)
    if source.char(here) in (";", ","):
        here = source.skip_space(here + 1)
    return end, here if source.char(here) in ("{", "[") else _NO_MORE


def gate_row(source: Source, row: JsonRow) -> Gated | None:
    """Return the calls that the values stand for; all of them must be calls."""
    calls: list[TextCall] = []
    content: list[str] = []
    reasoning: list[str] = []
    for number, (start, end) in enumerate(row.spans, 1):
        last = number == len(row.spans)
        gated = _gate_text(source, source.text[start:end], is_cut=row.is_cut and last)
        if gated is None:
            return None
        calls += gated.calls
        content.append(gated.content)
        reasoning.append(gated.reasoning)
    return Gated(tuple(calls), "".join(content), "\n".join(filter(None, reasoning)))


def _gate_text(source: Source, text: str, *, is_cut: bool) -> Gated | None:
    tools, spend = source.tools, source.spend_on_marks
    if not is_cut:
        repaired = repair_json(text, ended=True)
        if repaired.state != "whole":
            return None
        return gate_value(repaired.value, tools, repaired.receipts)
    closed = repair_json(text, cut="close", ended=False)
    gated = gate_value(closed.value, tools, is_whole=False)
    if gated is None or not gated.calls:
        return None
    # Without its end an array may have lost calls, so none of them counts as whole.
    found = read_json_calls(text, ended=False, tools=tools, spend=spend)
    calls = tuple(_cut(call) for call in found)
    if not calls:
        calls = tuple(structs.replace(call, state="cut") for call in gated.calls)
    return Gated(calls, gated.content, gated.reasoning)


def _cut(call: TextCall) -> TextCall:
    if call.state == "cut":
        return call
    return structs.replace(call, state="cut", unclosed=call.arguments)


def _read_key(source: Source, at: int) -> str:
    """Return the key that stands here, or an empty text."""
    opener = source.char(at)
    window = source.text[at : at + _MAX_KEY]
    if opener in _QUOTES and opener:
        end = window.find(_QUOTES[opener], 1)
        if end < 0:
            source.at_end(at + _MAX_KEY - 1)
            return ""
        return window[1:end]
    match = _PLAIN_KEY.match(window)
    if match is None:
        return ""
    source.at_end(at + match.end())
    return match.group()


def _is_too_deep(source: Source, at: int) -> bool:
    """Tell whether a value is nested deeper than calls are.

    Where an unclosed value can hold only so many others, reading each of them to the end of the
    text costs a bounded number of looks at every character.
    """
    if _OPENERS_ONLY.match(source.text, at, at + _NEAR):
        return True
    depth = 0
    for number, mark in enumerate(_MARKS.finditer(source.text, at)):
        char = mark.group()[0]
        if char in "{[":
            depth += 1
            if depth > MAX_VALUE_DEPTH:
                source.spend(number)
                return True
        elif char in "}]":
            depth -= 1
            if depth <= 0:
                return False
    return False


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
