"""Kimi K2: a section of calls, each an id that holds the name, and JSON arguments."""

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.jsontext import repair_json
from surecall.records import Receipt

from .base import CallFormat, Found, TextCall
from .json_block import Payload, noted, read_arguments_text, read_payload, receipt
from .names import ToolNames
from .source import Source

__all__ = ["KimiCalls", "KimiStripped"]

_SECTIONS: Final = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_SECTION_ENDS: Final = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_BEGIN: Final = "<|tool_call_begin|>"
_ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_END: Final = "<|tool_call_end|>"
_STOPS: Final = (_END, _BEGIN, *_SECTION_ENDS, *_SECTIONS, "<|im_end|>")
_TOKENS: Final = (_ARGUMENTS, *_STOPS)
_PREFIX: Final = "functions."
_COUNTER: Final = re.compile(r":\d++\Z")
_MAX_ID_CHARS: Final = 300


class KimiCalls(CallFormat):
    """Calls between `<|tool_call_begin|>` and `<|tool_call_end|>`, in a section or alone."""

    name = "kimi"
    trims = False
    literals = (*_SECTIONS, _BEGIN)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the section up to its end, or one call that stands outside of any."""
        section = source.starts_any(_SECTIONS, at)
        here = at
        if section:
            here = _skip_noise(source, at + len(section))
            if here < 0:
                return None
        calls: list[TextCall] = []
        while source.starts(_BEGIN, here):
            end = _read_call(source, here, calls)
            if end < 0:
                break
            here = source.skip_space(end)
            if not section:
                break
        if section and not calls:
            return _empty_section(source, here)
        if here == at:
            return None
        end = _close_section(source, here)
        if section:
            return Found(end=end, calls=tuple(calls))
        note = receipt("missing_opener", "", _SECTIONS[0], "the calls themselves are complete")
        return Found(end=end, calls=noted(calls, note), grade="damaged")


class KimiStripped(CallFormat):
    """What is left of a call when a server drops its tokens: `functions.name:0{...}`."""

    name = "kimi"
    line_start = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return the beginning of the id of each tool's calls."""
        return tuple(f"{_PREFIX}{name}:" for name in tools.names)

    def read(self, source: Source, at: int) -> Found | None:
        """Read an id that its arguments directly follow."""
        written, after = source.read_name(at)
        after = source.skip_space(after)
        if not _COUNTER.search(written) or source.char(after) != "{":
            return None
        payload = read_payload(source, after, ())
        if payload is None:
            return None
        name = _COUNTER.sub("", written.removeprefix(_PREFIX))
        call = TextCall(name=name, arguments=payload.text, id=written, state=payload.state)
        note = receipt("missing_markers", "", _BEGIN, "an id of a call and its arguments are there")
        return Found(end=payload.end, calls=noted((call,), note), grade="damaged")


def _skip_noise(source: Source, at: int) -> int:
    """Return where the section's first call or end is; -1 when the token stands in prose."""
    here = source.skip_space(at)
    if source.at_end(here) or _is_token_cut(source, here):
        return len(source.text)
    found, _ = source.find_any((_BEGIN, *_SECTION_ENDS, *_SECTIONS), here)
    return -1 if found < 0 or source.starts_any(_SECTIONS, found) else found


def _empty_section(source: Source, at: int) -> Found | None:
    if source.at_end(at):
        return Found(end=at)
    end = source.starts_any(_SECTION_ENDS, at)
    return Found(end=at + len(end)) if end else None


def _close_section(source: Source, at: int) -> int:
    """Return where the section's end token ends, if it is there."""
    closer = source.starts_any(_SECTION_ENDS, at)
    if closer:
        return at + len(closer)
    return len(source.text) if _is_token_cut(source, at) else at


def _read_call(source: Source, at: int, calls: list[TextCall]) -> int:
    """Read one call into the list and return where it ends; -1 when it is none."""
    start = at + len(_BEGIN)
    found, token = source.find_any(_TOKENS, start)
    if found < 0:
        return len(source.text) if _is_id(source.text[start : start + _MAX_ID_CHARS + 1]) else -1
    written = source.text[start:found].strip()
    if not _is_id(written):
        return -1
    if token not in (_ARGUMENTS, _END):
        return found  # a beginning without a call; what counts begins here
    notes: list[Receipt] = []
    if token == _ARGUMENTS:
        payload = read_arguments_text(source, found + len(token), _STOPS)
    else:
        payload = Payload("", found, "whole")
        notes.append(receipt("missing_arguments", "", "{}", "the call ends after its id"))
    end = source.skip_space(payload.end)
    if payload.state == "cut":
        end = payload.end
    elif source.starts(_END, end):
        end += len(_END)
    else:
        notes.append(receipt("missing_closer", "", _END, "the arguments are complete"))
        end = len(source.text) if _is_token_cut(source, end) else end
    calls.extend(noted((_call_of(source, written, payload),), *notes))
    return end


def _is_id(text: str) -> bool:
    """Tell an id, or a part of one, from prose; an id may be broken by one newline."""
    return len(text) <= _MAX_ID_CHARS and len(text.split()) <= 1 + text.strip().count("\n")


def _call_of(source: Source, written: str, payload: Payload) -> TextCall:
    name = _COUNTER.sub("", "".join(written.split()))
    if source.tools.resolve(name) != name:
        name = name.removeprefix(_PREFIX)
    call = TextCall(name=name, arguments=payload.text, id=written, state=payload.state)
    return _infer_name(source.tools, call) if name.isdigit() and call.state == "whole" else call


def _infer_name(tools: ToolNames, call: TextCall) -> TextCall:
    """Return a call that has a counter for a name with the one tool its arguments fit."""
    arguments = repair_json(call.arguments).value
    if tools.resolve(call.name) or not isinstance(arguments, dict) or not arguments:
        return call
    keys = frozenset(cast("dict[str, Any]", arguments))
    fitting = [name for name in tools.names if _fits(tools.parameters(name) or {}, keys)]
    if len(fitting) != 1:
        return call
    why = "the only tool whose parameters the arguments fit"
    note = Receipt("infer_tool_name", "text", call.name, fitting[0], lossless=False, why=why)
    return replace(call, name=fitting[0], receipts=(*call.receipts, note))


def _fits(schema: dict[str, Any], keys: frozenset[str]) -> bool:
    properties: Any = schema.get("properties")
    required: Any = schema.get("required") or ()
    return isinstance(properties, dict) and keys <= properties.keys() and keys >= set(required)


def _is_token_cut(source: Source, at: int) -> bool:
    """Tell whether the text ends inside a token."""
    return bool(source.begun_at_end(_TOKENS, at))
