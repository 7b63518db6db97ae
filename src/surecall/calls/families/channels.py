"""Replies made of messages or channels, of which only some hold calls: K3, Inkling, Solar, Muse."""

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from surecall.calls.formats import Found, OwnFormat, TextCall, Thinking
from surecall.calls.json_block import Marks, read_marked
from surecall.calls.names import ToolNames, parameter_names
from surecall.calls.source import NeedMore, Source
from surecall.calls.tagged_calls import found_calls, read_calls
from surecall.calls.tags import (
    MAX_TAG_CHARS,
    Grammar,
    Tag,
    TagKind,
    ends_within,
    parse_attributes,
    run_end,
)
from surecall.calls.text_values import build_declared

from .elements import ATEM_CALLS
from .named_json import SOLAR_TOKENS, read_section

# Kimi K3

_OPEN: Final = "<|open|>"
_CLOSE: Final = "<|close|>"
_SEP: Final = "<|sep|>"
_K3_THINK: Final = Thinking(closers=("<|close|>think<|sep|>",))
_TAGS: Final = (
    _OPEN, _CLOSE, "<|open|>think<|sep|>", "<|close|>think<|sep|>", "<|close|>message<|sep|>",
)  # fmt: skip
_RESPONSE: Final = Thinking(_TAGS, kept=frozenset(_TAGS), ends_at_call=False, shown=True)
_K3_WORD: Final = re.compile(r"[ \t]*+([a-z_]*+)")
_KINDS: Final[dict[tuple[str, str], TagKind]] = {
    (_OPEN, "tools"): "open_section", (_CLOSE, "tools"): "close_section",
    (_OPEN, "call"): "open_call", (_CLOSE, "call"): "close_call",
    (_OPEN, "argument"): "open_value", (_CLOSE, "argument"): "close_value",
}  # fmt: skip
_CHANNELS: Final = frozenset({"response", "message"})


class _XtmlGrammar(Grammar):
    has_tokens = True

    def __init__(self) -> None:
        super().__init__(calls=("call",), values=("argument",), sections=("tools",), style="pair")
        self.stops = re.compile(r"<\|(?:open|close)\|>")
        self.words = ("open", "close", "argument", "call", "tools", "sep")

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
        match = _K3_WORD.match(text)
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


_GRAMMAR: Final = _XtmlGrammar()


def _read_kimi_k3(source: Source, at: int) -> Found | None:
    """Read the calls of the tools channel, or drop the tag of another one."""
    raw = _GRAMMAR.raw(source, at)
    if raw is None:
        return Found(end=len(source.text)) if _GRAMMAR.is_begun(source, at) else None
    token, word, _, end = raw
    if word == "think":
        return None if token == _CLOSE else Found(end=end, opens=_K3_THINK)
    if word in _CHANNELS:
        opens = _RESPONSE if (token, word) == (_OPEN, "response") else None
        return Found(end=end, opens=opens)
    tag = _GRAMMAR.tag(source, at)
    if tag is None or tag.kind in ("open_value", "close_value"):
        return None
    if tag.kind in ("close_section", "close_call"):
        return Found(end=end)
    begin = end if tag.kind == "open_section" else at
    calls, end = read_calls(source, _GRAMMAR, begin, build=build_declared)
    if not calls:
        return Found(end=begin) if begin > at else None
    return found_calls(source, calls, end)


KIMI_K3: Final = OwnFormat(
    "kimi_k3", "Channels `think`, `response` and `tools`, and the calls in the last one.",
    "Kimi K3, 2026", trims=False, literals=(_OPEN, _CLOSE), reads=_read_kimi_k3,
)  # fmt: skip


# Inkling

_MESSAGE: Final = "<|message_model|>"
_INKLING_END: Final = "<|end_message|>"
_TEXT: Final = "<|content_text|>"
_INKLING_THINKING: Final = "<|content_thinking|>"
_ERROR: Final = "<|content_tool_error|>"
_CALL: Final = "<|content_invoke_tool_json|>"
_TEXT_CALL: Final = "<|content_invoke_tool_text|>"
_INKLING_KINDS: Final = (_TEXT, _INKLING_THINKING, _ERROR, _CALL, _TEXT_CALL)
_INKLING_TOKENS: Final = (_MESSAGE, _INKLING_END, *_INKLING_KINDS)
_INKLING_MARKS: Final = Marks((_INKLING_END,))
_OPENS: Final = Thinking((_INKLING_END,))
_SHOWS: Final = Thinking(
    _INKLING_TOKENS, kept=frozenset({_MESSAGE, *_INKLING_KINDS}), ends_at_call=False, shown=True
)
_MAX_NAME_CHARS: Final = 300


def _read_inkling(source: Source, at: int) -> Found | None:
    """Read the head of a message, and its call when it has one."""
    here = at
    if source.starts(_INKLING_END, here):
        here = source.skip_space(here + len(_INKLING_END))
        if not source.starts_any((_MESSAGE, *_INKLING_KINDS), here):
            return None
        return Found(end=here)
    name = ""
    if source.starts(_MESSAGE, here):
        here += len(_MESSAGE)
        name, here = _read_name(source, here)
        if source.at_end(here):
            return Found(end=here)
    kind = source.starts_any(_INKLING_KINDS, here)
    here += len(kind)
    if kind == _INKLING_THINKING:
        return Found(end=here, opens=_OPENS)
    if kind == _TEXT:
        return Found(end=here, opens=_SHOWS)
    if kind == _CALL:
        return read_marked(source, here, _CALL, _INKLING_MARKS)
    if kind == _TEXT_CALL:
        return _read_text(source, here, name)
    return Found(end=here) if kind else None


INKLING: Final = OwnFormat(
    "inkling",
    "Messages that begin with `<|message_model|>`, perhaps a name, and the token of a kind.",
    "Inkling, 2026", trims=False, literals=_INKLING_TOKENS, reads=_read_inkling,
)  # fmt: skip


def _read_name(source: Source, at: int) -> tuple[str, int]:
    """Return the name in the head of a message and where the kind follows; `at` when none does."""
    found, _ = source.find_any(_INKLING_TOKENS, at)
    if found < 0:
        rest = source.text[at : at + _MAX_NAME_CHARS + 1]
        is_head = len(rest) <= _MAX_NAME_CHARS and len(rest.split()) <= 1
        return "", len(source.text) if is_head else at
    name = source.text[at:found].strip()
    return (name, found) if len(name) <= _MAX_NAME_CHARS and len(name.split()) <= 1 else ("", at)


def _read_text(source: Source, at: int, name: str) -> Found | None:
    """Read raw text for a tool, as its one parameter where it has one."""
    if not name:
        return None
    end = source.find(_INKLING_END, at)
    is_cut = end < 0
    end = len(source.text) if is_cut else end
    text = source.text[at:end]
    keys = parameter_names(source.tools.parameters(name))
    arguments: Any = source.typed(name, {keys[0]: text}) if len(keys) == 1 else text
    call = TextCall(
        name=name, arguments=text if is_cut else arguments, state="cut" if is_cut else "whole"
    )
    return Found(end=end if is_cut else end + len(_INKLING_END), calls=(call,))


# Solar

_HEADER: Final = "<|begin|>assistant"
_NEXT_HEADER: Final = "<|end|>" + _HEADER
_THINK: Final = "<|think|>"
_CONTENT: Final = "<|content|>"
_SOLAR_THINKING: Final = Thinking(
    ("<|end|>", _NEXT_HEADER, _HEADER), frozenset({_NEXT_HEADER, _HEADER})
)
_SOLAR_KINDS: Final = (
    _NEXT_HEADER, _HEADER, _THINK, _CONTENT, *SOLAR_TOKENS.openers, SOLAR_TOKENS.call
)  # fmt: skip
_SHOWN: Final = Thinking(
    ("<|end|>", *_SOLAR_KINDS), kept=frozenset(_SOLAR_KINDS), ends_at_call=False, shown=True
)


def _read_solar(source: Source, at: int) -> Found | None:
    """Read the head of a message, and its calls when it has some."""
    header = source.starts_any((_NEXT_HEADER, _HEADER), at)
    here = source.skip_space(at + len(header)) if header else at
    if source.starts(_THINK, here):
        return Found(end=here + len(_THINK), opens=_SOLAR_THINKING)
    if source.starts(_CONTENT, here):
        return Found(end=source.skip_space(here + len(_CONTENT)), opens=_SHOWN)
    if source.begun_at_end((_THINK, _CONTENT), here):
        return Found(end=len(source.text))
    return read_section(source, here, SOLAR_TOKENS)


SOLAR: Final = OwnFormat(
    "solar", "Messages that begin with `<|begin|>assistant` and the token of their kind.",
    "Solar Open, 2026", trims=False, literals=_SOLAR_KINDS, reads=_read_solar,
)  # fmt: skip

# Muse

_START: Final = "<|start|>assistant to="
_MUSE_MESSAGE: Final = "<|message|>"
_ENDS: Final = ("<|eom|>", "<|eot|>")
_BLOCK: Final = "<atem:function_calls>"
_RECIPIENT: Final = re.compile(r"[^\s<>]{0,128}+")
_BLOCK_END: Final = "</atem:function_calls>"
_USER: Final = Thinking(
    closers=(*_ENDS, _START), kept=frozenset({_START}), ends_at_call=False, shown=True
)
_SELF: Final = Thinking(closers=(*_ENDS, _START), kept=frozenset({_START}), ends_at_call=False)


def _read_muse(source: Source, at: int) -> Found | None:
    """Read a header, and the calls of a message that is for a tool."""
    ended = source.starts_any(_ENDS, at)
    here = source.skip_space(at + len(ended)) if ended else at
    if ended and (source.at_end(here) or not source.starts(_START, here)):
        return None
    if source.starts(_START, here):
        begin = here + len(_START)
    else:
        begin = source.skip_space(here) + len("to=")
    end = run_end(source, _RECIPIENT, begin)
    recipient = source.text[begin:end]
    if not recipient or not source.starts(_MUSE_MESSAGE, end):
        return Found(end=len(source.text)) if ends_within(source, _MUSE_MESSAGE, end) else None
    end += len(_MUSE_MESSAGE)
    if recipient == "self":
        return Found(end=end, opens=_SELF)
    body = source.skip_space(end)
    opens = _USER if recipient == "user" else None
    if not source.starts(_BLOCK, body):
        if ends_within(source, _BLOCK, body):
            return Found(end=len(source.text))
        return Found(end=end, opens=opens)
    found = _read_block(source, body, alone=recipient == "user")
    return Found(end=end, opens=opens) if found is None else found


class _MuseFormat(OwnFormat, frozen=True, eq=False, kw_only=True):
    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return headers; the first one of a reply lacks its beginning."""
        recipients = ("self", "user", *tools.names)
        first = (f"{space}to={who}{_MUSE_MESSAGE}" for who in recipients for space in ("", " "))
        return (_START, *_ENDS, *first)


MUSE: Final = _MuseFormat(
    "muse",
    "Headers say who a message is for: `self` is reasoning, `user` the answer, else a tool.",
    "Muse, 2026", reads=_read_muse,
)  # fmt: skip


ATEM_BLOCK: Final = OwnFormat(
    "muse", "A block of calls whose header is missing; nothing may follow it.", "Muse, 2026",
    line_start=True, literals=(_BLOCK,),
    reads=lambda source, at: _read_block(source, at, alone=True),
)  # fmt: skip


def _read_block(source: Source, at: int, *, alone: bool) -> Found | None:
    """Read a block; one that is not for a tool must be all of its message."""
    found = ATEM_CALLS.read(source, at)
    return _alone(source, found) if alone and found is not None and found.calls else found


def _alone(source: Source, found: Found) -> Found | None:
    """Return what was found, as damaged, when nothing but the end of its message follows."""
    after = source.skip_space(found.end)
    ends = found.ends_message or source.at_end(after)
    if ends or source.starts_any((*_ENDS, _BLOCK), after):
        return replace(found, grade="damaged")
    return None
