"""Kimi: calls under their id between tokens (K2), and tokens that act as XML tags (K3)."""

import re
from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import SurecallError
from surecall.base.records import Receipt
from surecall.calls.blocks import found_calls, read_calls
from surecall.calls.formats import CallFormat, Found, TextCall, Thinking, add_receipts
from surecall.calls.json_block import Payload, read_arguments_text, read_payload, receipt
from surecall.calls.names import ToolNames
from surecall.calls.source import NeedMore, Source
from surecall.calls.tags import MAX_TAG_CHARS, Grammar, Tag, TagKind, parse_attributes
from surecall.calls.text_values import Parameter, build_typed
from surecall.text import decode, repair_json

_SECTIONS: Final = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_SECTION_ENDS: Final = ("<|tool_calls_section_end|>", "<|tool_call_section_end|>")
_BEGIN: Final = "<|tool_call_begin|>"
_ARGUMENTS: Final = "<|tool_call_argument_begin|>"
_END: Final = "<|tool_call_end|>"
_STOPS: Final = (_END, _BEGIN, *_SECTION_ENDS, *_SECTIONS, "<|im_end|>")
_TOKENS: Final = (_ARGUMENTS, *_STOPS)
_PREFIX: Final = "functions."
_COUNTER: Final = re.compile(r"[:!#]\d++\Z")
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
        return Found(end=end, calls=add_receipts(calls, note), grade="damaged")


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
        return Found(end=payload.end, calls=add_receipts((call,), note), grade="damaged")


def _skip_noise(source: Source, at: int) -> int:
    """Return where the section's first call or end is; -1 when the token stands in prose."""
    here = source.skip_space(at)
    if source.at_end(here) or source.begun_at_end(_TOKENS, here):
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
    return len(source.text) if source.begun_at_end(_TOKENS, at) else at


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
        end = len(source.text) if source.begun_at_end(_TOKENS, end) else end
    calls.extend(add_receipts((_call_of(source, written, payload),), *notes))
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
    arguments = repair_json(call.arguments, ended=True).value
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


_OPEN: Final = "<|open|>"
_CLOSE: Final = "<|close|>"
_SEP: Final = "<|sep|>"
_THINK: Final = Thinking(closers=("<|close|>think<|sep|>",))
_TAGS: Final = (
    _OPEN,
    _CLOSE,
    "<|open|>think<|sep|>",
    "<|close|>think<|sep|>",
    "<|close|>message<|sep|>",
)
_RESPONSE: Final = Thinking(_TAGS, kept=frozenset(_TAGS), ends_at_call=False, shown=True)
_WORD: Final = re.compile(r"[ \t]*+([a-z_]*+)")
_KINDS: Final[dict[tuple[str, str], TagKind]] = {
    (_OPEN, "tools"): "open_section",
    (_CLOSE, "tools"): "close_section",
    (_OPEN, "call"): "open_call",
    (_CLOSE, "call"): "close_call",
    (_OPEN, "argument"): "open_value",
    (_CLOSE, "argument"): "close_value",
}
_CHANNELS: Final = frozenset({"response", "message"})


class _XtmlGrammar:
    stops: re.Pattern[str] = re.compile(r"<\|(?:open|close)\|>")
    words: tuple[str, ...] = ("open", "close", "argument", "call", "tools", "sep")
    pairs_words: bool = False
    has_tokens: bool = True

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here; spaces may stand between its tokens."""
        raw = self.raw(source, at)
        if raw is None:
            return None
        token, word, attributes, end = raw
        kind = _KINDS.get((token, word))
        if kind is None:
            return None
        label = attributes.get("tool" if word == "call" else "key", "")
        return Tag(kind, at, end, label, word, attributes)

    def raw(self, source: Source, at: int) -> tuple[str, str, dict[str, str], int] | None:
        """Return the token, the word, the attributes and the end of any tag."""
        if source.char(at) != "<":
            return None
        token = source.starts_any((_OPEN, _CLOSE), at)
        if not token:
            return None
        begin = at + len(token)
        sep = source.text.find(_SEP, begin, begin + MAX_TAG_CHARS)
        if sep < 0:
            if not source.final and len(source.text) < begin + MAX_TAG_CHARS:
                raise NeedMore
            word = source.text[begin : begin + MAX_TAG_CHARS].strip()
            ends = token == _CLOSE and word.isalpha() and len(source.text) - begin < MAX_TAG_CHARS
            return (token, word, {}, len(source.text)) if ends else None
        text = source.text[begin:sep]
        match = _WORD.match(text)
        word = match[1] if match else ""
        return token, word, parse_attributes(text[len(match[0]) if match else 0 :]), sep + len(_SEP)

    def is_begun(self, source: Source, at: int) -> bool:
        """Tell whether the text ends for good inside a tag that begins here."""
        if not source.final or len(source.text) - at >= MAX_TAG_CHARS:
            return False
        begun = source.text[at:]
        if begun.startswith((_OPEN, _CLOSE)):
            return _SEP not in begun
        return bool(begun) and (_OPEN.startswith(begun) or _CLOSE.startswith(begun))

    def with_properties(self, properties: tuple[str, ...]) -> Grammar | None:
        """Return nothing: arguments always have their own tag."""
        return None


_GRAMMAR: Final = _XtmlGrammar()


class KimiK3(CallFormat):
    """Channels `think`, `response` and `tools`, and the calls in the last one."""

    name = "kimi_k3"
    trims = False
    literals = (_OPEN, _CLOSE)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls of the tools channel, or drop the tag of another one."""
        raw = _GRAMMAR.raw(source, at)
        if raw is None:
            return Found(end=len(source.text)) if _GRAMMAR.is_begun(source, at) else None
        token, word, _, end = raw
        if word == "think":
            return None if token == _CLOSE else Found(end=end, opens=_THINK)
        if word in _CHANNELS:
            opens = _RESPONSE if (token, word) == (_OPEN, "response") else None
            return Found(end=end, opens=opens)
        tag = _GRAMMAR.tag(source, at)
        if tag is None or tag.kind in ("open_value", "close_value"):
            return None
        if tag.kind in ("close_section", "close_call"):
            return Found(end=end)
        begin = end if tag.kind == "open_section" else at
        calls, end = read_calls(source, _GRAMMAR, begin, build=_build_by_type)
        if not calls:
            return Found(end=begin) if begin > at else None
        return found_calls(source, calls, end)


def _build_by_type(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return arguments typed by their `type` attribute."""
    built, receipts = build_typed(source, name, parameters)
    if not isinstance(built, dict):
        return built, receipts
    arguments = cast("dict[str, Any]", built)
    for key, text, tag in parameters:
        kind = tag.attributes.get("type", "")
        if kind == "string":
            arguments[key] = text
        elif kind:
            try:
                arguments[key] = decode(text.strip())
            except SurecallError:
                continue
    return arguments, receipts
