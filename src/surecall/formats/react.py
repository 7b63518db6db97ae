"""ReAct: an `Action:` line with a name, an `Action Input:` line with what it is given."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import structs

from surecall.errors import JSONTextError
from surecall.jsontext import decode
from surecall.records import Receipt, clip

from .base import Found, TextCall
from .fitting import has_required, single_parameter
from .json_rows import begins_like_call, gate_row, read_row
from .names import ToolNames
from .pythonic import read_calls_in_python, text_calls_of
from .source import Source

__all__ = ["ReAct"]

_MAX_LABEL: Final = 24
_MAX_TAG: Final = 40
_MAX_NAME_LINE: Final = 4096
_ACTION: Final = re.compile(r"(\*\*)?Action(?: ?\d+)?(?:\*\*:|:\*\*|:)[ \t]*")
_INPUT: Final = re.compile(r"(\*\*)?Action Input(?: ?\d+)?(?:\*\*:|:\*\*|:)[ \t]*", re.IGNORECASE)
_STOPS: Final = ("\nObservation", "\n**Observation", "\nThought:", "\nAction", "\nFinal Answer:")
_BRACKETED: Final = re.compile(r"([\w.-]+)\[(.*)\]")
_NAME: Final = re.compile(r"[`'\"*\[]*([\w.-]+)[`'\"*\]]*(?:\(\))?\.?(?:\s.*)?")


class ReAct:
    """One action and its input; whatever the model makes up behind them is dropped."""

    name: str = "react"
    line_start: bool = True
    trims: bool = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return the label, plain and bold."""
        return ("Action", "**Action")

    def read(self, source: Source, at: int) -> Found | None:
        """Read the first action; it needs a known name and an input, or nothing to be given."""
        here = _skip_label(source, at, _ACTION)
        if here < 0:
            return None
        blank = source.skip_space(here)
        if source.char(blank) == "{" or source.starts("```", blank):
            return _read_object(source, blank)
        line_end = source.line_end(here)
        line = source.text[here:line_end].strip()
        if not line or len(line) > _MAX_NAME_LINE:
            return None
        action = _read_written_call(source, here, line)
        if action is None:
            action = _read_named(source, line, line_end)
        if action is None or source.tools.resolve(action.call.name) is None:
            return None
        return Found(end=action.end, calls=(action.call,), grade="damaged", ends_message=True)


class _Action(NamedTuple):
    call: TextCall
    end: int


def _skip_label(source: Source, at: int, label: re.Pattern[str]) -> int:
    """Return where the text behind a label begins, or -1."""
    match = label.match(source.text, at, at + _MAX_LABEL)
    if match is None or match.end() == len(source.text):
        source.at_end(at + _MAX_LABEL)
    return match.end() if match else -1


def _read_object(source: Source, at: int) -> Found | None:
    """Read an action that is an object itself, in a fence or not."""
    here = _skip_fence(source, at)
    if source.char(here) not in ("{", "[") or not begins_like_call(source, here):
        return None
    row = read_row(source, here)
    gated = None if row is None else gate_row(source, row)
    if row is None or gated is None:
        return None
    return Found(
        end=row.end,
        calls=gated.calls,
        content=gated.content,
        reasoning=gated.reasoning,
        grade="damaged",
        ends_message=True,
    )


def _skip_fence(source: Source, at: int) -> int:
    if not source.starts("```", at):
        return at
    here = at
    while here - at < _MAX_TAG and source.char(here) not in ("\n", "{", "[", ""):
        here += 1
    return source.skip_space(here)


def _read_written_call(source: Source, at: int, line: str) -> _Action | None:
    """Read `name(key=value)` and `name[text]`, which stand for a name and its input."""
    if bracketed := _BRACKETED.fullmatch(line):
        call = _with_text(source, bracketed[1], bracketed[2])
        return call and _noted(call, line, source.line_end(at))
    if "(" not in line:
        return None
    found = read_calls_in_python(source, at)
    calls = None if found.state == "not_calls" else text_calls_of(source, found, by_position=True)
    if not calls:
        return None
    here = source.skip_space(found.end)
    if calls[0].arguments == {} and not (source.at_end(here) or source.starts("Observ", here)):
        return None  # an input follows, or this is prose
    return _noted(calls[0], line, found.end)


def _noted(call: TextCall, line: str, end: int) -> _Action:
    receipt = Receipt(
        "split_action", "text", clip(line), call.name, why="the input stood in the action line"
    )
    return _Action(structs.replace(call, receipts=(*call.receipts, receipt)), end)


def _read_named(source: Source, line: str, line_end: int) -> _Action | None:
    match = _NAME.fullmatch(line)
    if match is None or source.tools.resolve(match[1]) is None:
        return None
    name = match[1]
    here = source.skip_space(line_end)
    label = -1 if source.at_end(here) else _skip_label(source, here, _INPUT)
    if label >= 0:
        return _read_input(source, name, source.skip_space(label))
    if has_required(source.tools.parameters(name)):
        return None
    bare = _Action(TextCall(name=name, arguments={}), line_end)
    if source.at_end(here):
        # The name may have been cut; only its line's end proves it.
        return bare if line_end < len(source.text) else None
    return bare if source.starts("Observation", here) else None


def _read_input(source: Source, name: str, at: int) -> _Action | None:
    if source.at_end(at):
        return _Action(TextCall(name=name, arguments="", state="cut"), at)
    here = _skip_fence(source, at)
    if source.char(here) == "{":
        end = source.value_end(here)
        if end is None:
            cut = TextCall(name=name, arguments=source.text[here:], state="cut")
            return _Action(cut, len(source.text))
        return _Action(TextCall(name=name, arguments=source.text[here:end]), end)
    stop, _ = source.find_any(_STOPS, at)
    end = len(source.text) if stop < 0 else stop
    call = _with_text(source, name, source.text[at:end].strip())
    return call and _Action(call, end)


def _with_text(source: Source, name: str, text: str) -> TextCall | None:
    """Return a call whose only parameter is given the text."""
    parameters = source.tools.parameters(name)
    if parameters is None:
        return None
    if text in ("", "None", "none", "null", "N/A") and not has_required(parameters):
        return TextCall(name=name, arguments={})
    only = single_parameter(parameters)
    if only is None:
        return TextCall(name=name, arguments=text, state="unreadable")
    return TextCall(name=name, arguments={only: _plain(text)})


def _plain(text: str) -> Any:
    """Return text without the quotes around it."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        try:
            return decode(text)
        except JSONTextError:
            return text[1:-1]
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    return text
