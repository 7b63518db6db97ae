"""ReAct: an `Action:` line with a name, an `Action Input:` line with what it is given."""

import re
from typing import Any, Final, NamedTuple

from msgspec import structs

from surecall.base.errors import JSONTextError
from surecall.base.patterns import lazy_pattern
from surecall.calls.formats import Found, OwnFormat, TextCall, text_receipt
from surecall.calls.json_block import skip_fence
from surecall.calls.source import Source
from surecall.calls.unmarked_json import (
    begins_like_call,
    gate_row,
    has_required,
    name_lone_text,
    note_only,
    read_row,
)
from surecall.calls.written_python import read_calls_in_python, text_calls_of
from surecall.text import decode

_MAX_LABEL: Final = 24
_MAX_NAME_LINE: Final = 4096
_ACTIONS: Final = ("Action", "Aktion", "Acción", "Ação", "Действие", "行动", "动作", "行動", "행동")
_INPUTS: Final = (
    "Action Input", "Aktionseingabe", "Entrada de acción", "Entrada da ação", "Входные данные",
    "行动输入", "动作输入", "行動入力", "행동 입력",
)  # fmt: skip
_OBSERVATIONS: Final = (
    "Observation", "Observación", "Observação", "Beobachtung", "Наблюдение", "观察", "観察", "관찰",
)  # fmt: skip
_COLON: Final = r"(?: ?\d++)?+(?:\*\*[:：]|[:：]\*\*|[:：])[ \t]*+"
_ACTION: Final = lazy_pattern(rf"(?:\*\*)?(?:{'|'.join(_ACTIONS)}){_COLON}")
_INPUT: Final = lazy_pattern(rf"(?:\*\*)?(?:{'|'.join(_INPUTS)}){_COLON}", re.IGNORECASE)
_LABEL_END: Final = rf"(?:{_COLON}|\Z)"
_OBSERVATION: Final = lazy_pattern(rf"(?:\*\*)?(?:{'|'.join(_OBSERVATIONS)}){_LABEL_END}")
_LABELS: Final = (*_INPUTS, *_ACTIONS, *_OBSERVATIONS, "Thought", "Final Answer")
_LABEL: Final = lazy_pattern(rf"(?:\*\*)?(?:{'|'.join(_LABELS)}){_LABEL_END}")
_STOPS: Final = tuple(f"\n{mark}{word}" for word in _LABELS for mark in ("", "**"))
_QUOTES: Final = "\"'`"
_BRACKETED: Final = lazy_pattern(r"([\w.-]++)\[((?:[^\]\n]++|\](?!\Z))*+)\]")
_NAME: Final = lazy_pattern(r"[`'\"*\[]*+([\w.-]++)[`'\"*\]]*+(?:\(\))?+\.?+(\s.*+)?+")


def _read_react(source: Source, at: int) -> Found | None:
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


REACT: Final = OwnFormat(
    "react", "One action and its input; whatever the model makes up after them is dropped.",
    "The ReAct paper, October 2022; LangChain agents", line_start=True,
    literals=(*_ACTIONS, *(f"**{word}" for word in _ACTIONS)), reads=_read_react,
)  # fmt: skip


class _Action(NamedTuple):
    call: TextCall
    end: int


def _skip_label(source: Source, at: int, label: re.Pattern[str]) -> int:
    """Return where the text behind a label begins, or -1."""
    match = label.match(source.text, at, at + _MAX_LABEL)
    if match is None or match.end() == len(source.text):
        source.at_end(at + _MAX_LABEL)
    return match.end() if match else -1


def _find_label(source: Source, at: int) -> int:
    """Return where the line before the next label ends, or -1."""
    stop, _ = source.find_any(_STOPS, at)
    while stop >= 0 and _skip_label(source, stop + 1, _LABEL) < 0:
        stop, _ = source.find_any(_STOPS, stop + 1)
    return stop


def _read_object(source: Source, at: int) -> Found | None:
    """Read an action that is an object itself, in a fence or not."""
    _, here = skip_fence(source, at)
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
    ends = source.at_end(here) or _skip_label(source, here, _OBSERVATION) >= 0
    if calls[0].arguments == {} and not ends:
        return None  # an input follows, or this is prose
    return _noted(calls[0], line, found.end)


def _noted(call: TextCall, line: str, end: int) -> _Action:
    receipt = text_receipt("split_action", line, call.name, "the input was on the action line")
    return _Action(structs.replace(call, receipts=(*call.receipts, receipt)), end)


def _read_named(source: Source, line: str, line_end: int) -> _Action | None:
    match = _NAME.fullmatch(line)
    if match is None or source.tools.resolve(match[1]) is None:
        return None
    name = match[1]
    here = source.skip_space(line_end)
    label = -1 if source.at_end(here) else _skip_label(source, here, _INPUT)
    if label >= 0:
        return _read_input(source, name, label)
    if match[2] or has_required(source.tools.parameters(name)):
        return None
    bare = _Action(TextCall(name=name, arguments={}), line_end)
    if source.at_end(here):
        # The name may have been cut; only its line's end proves it. An input may be missing.
        call = structs.replace(bare.call, may_go_on=True)
        return _Action(call, line_end) if line_end < len(source.text) else None
    return bare if _skip_label(source, here, _OBSERVATION) >= 0 else None


def _read_input(source: Source, name: str, label: int) -> _Action | None:
    at = source.skip_space(label)
    if source.at_end(at):
        return _Action(TextCall(name=name, arguments="", state="cut"), at)
    if "\n" in source.text[label:at] and _skip_label(source, at, _LABEL) >= 0:
        call = _with_text(source, name, "")
        return call and _Action(call, at)
    _, here = skip_fence(source, at)
    here = source.run_end("`", here)
    if source.char(here) == "{":
        end = source.value_end(here)
        if end is None:
            cut = TextCall(name=name, arguments=source.text[here:], state="cut")
            return _Action(cut, len(source.text))
        return _Action(TextCall(name=name, arguments=source.text[here:end]), end)
    stop = _find_label(source, at)
    end = len(source.text) if stop < 0 else stop
    text = source.text[at:end].strip()
    if stop < 0 and _is_unfinished(text):
        return _Action(TextCall(name=name, arguments=text, state="cut"), end)
    call = _with_text(source, name, text)
    # Plain text has no end of its own: only a label behind it shows that all of it is there.
    return call and _Action(structs.replace(call, may_go_on=stop < 0), end)


def _is_unfinished(text: str) -> bool:
    """Tell whether text at the end of a reply is a quote that does not end, or a mark alone."""
    if not text.strip("*`"):
        return True
    is_open = len(text) == 1 or text[-1] != text[0] or text[-2] == "\\"
    return text[0] in _QUOTES and is_open


def _with_text(source: Source, name: str, text: str) -> TextCall | None:
    """Return a call whose only parameter is given the text."""
    parameters = source.tools.parameters(name)
    if parameters is None:
        return None
    if text in ("", "None", "none", "null", "N/A") and not has_required(parameters):
        return TextCall(name=name, arguments={})
    only = name_lone_text(parameters, text)
    if only is None:
        return TextCall(name=name, arguments=text, state="unreadable")
    return TextCall(name=name, arguments={only: _plain(text)}, receipts=(note_only(text, only),))


def _plain(text: str) -> Any:
    """Return text without the quotes around it."""
    if text[:1] == '"':
        try:
            return decode(text)
        except JSONTextError:
            pass
    return text[1:-1] if _is_in_quotes(text) else text


def _is_in_quotes(text: str) -> bool:
    """Tell whether quotes stand around all of the text, not around its first and last word."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in _QUOTES:
        return False
    inner = text.find(text[0], 1)
    is_last = inner == len(text) - 1
    return is_last or text[inner - 1].isspace() or text[inner + 1].isalnum()
