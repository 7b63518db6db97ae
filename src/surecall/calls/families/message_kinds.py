"""Replies made of messages of several kinds: Inkling, Solar and Muse."""

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.records import Receipt
from surecall.calls.formats import CallFormat, Found, TextCall, Thinking, add_receipts
from surecall.calls.json_block import (
    close_block,
    read_after_token,
    read_arguments_text,
    read_block,
    receipt,
)
from surecall.calls.names import ToolNames, parameter_names
from surecall.calls.source import Source
from surecall.calls.tags import ends_within, run_end, skip_debris

from .invoke import INVOKE_GRAMMAR, read_found

_MESSAGE: Final = "<|message_model|>"
_INKLING_END: Final = "<|end_message|>"
_TEXT: Final = "<|content_text|>"
_INKLING_THINKING: Final = "<|content_thinking|>"
_ERROR: Final = "<|content_tool_error|>"
_CALL: Final = "<|content_invoke_tool_json|>"
_TEXT_CALL: Final = "<|content_invoke_tool_text|>"
_INKLING_KINDS: Final = (_TEXT, _INKLING_THINKING, _ERROR, _CALL, _TEXT_CALL)
_INKLING_TOKENS: Final = (_MESSAGE, _INKLING_END, *_INKLING_KINDS)
_INKLING_STOPS: Final = (_INKLING_END, _MESSAGE, _CALL, "<|content_model_end_sampling|>")
_OPENS: Final = Thinking((_INKLING_END,))
_SHOWS: Final = Thinking(
    _INKLING_TOKENS, kept=frozenset({_MESSAGE, *_INKLING_KINDS}), ends_at_call=False, shown=True
)
_MAX_NAME_CHARS: Final = 300


class InklingCalls(CallFormat):
    """Messages that begin with `<|message_model|>`, a name for calls, and the token of a kind."""

    name = "inkling"
    trims = False
    literals = _INKLING_TOKENS

    def read(self, source: Source, at: int) -> Found | None:
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
            return _read_json(source, here)
        if kind == _TEXT_CALL:
            return _read_text(source, here, name)
        return Found(end=here) if kind else None


def _read_name(source: Source, at: int) -> tuple[str, int]:
    """Return the name in the head of a message and where the kind follows; `at` when none does."""
    found, _ = source.find_any(_INKLING_TOKENS, at)
    if found < 0:
        rest = source.text[at : at + _MAX_NAME_CHARS + 1]
        is_head = len(rest) <= _MAX_NAME_CHARS and len(rest.split()) <= 1
        return "", len(source.text) if is_head else at
    name = source.text[at:found].strip()
    return (name, found) if len(name) <= _MAX_NAME_CHARS and len(name.split()) <= 1 else ("", at)


def _read_json(source: Source, at: int) -> Found | None:
    here = source.skip_space(at)
    if source.at_end(here):
        return Found(end=here)
    block = read_block(source, here, _INKLING_STOPS)
    if block is None:
        return None
    if block.cut:
        return Found(end=block.end, calls=block.calls)
    end, closer = close_block(source, block.end, (_INKLING_END,))
    if closer == _INKLING_END:
        return Found(end=end, calls=block.calls)
    note = receipt("missing_closer", closer, _INKLING_END, "the call itself is complete")
    return Found(end=end, calls=add_receipts(block.calls, note))


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


_HEADER: Final = "<|begin|>assistant"
_NEXT_HEADER: Final = "<|end|>" + _HEADER
_THINK: Final = "<|think|>"
_CONTENT: Final = "<|content|>"
_CALLS: Final = "<|tool_calls|>"
_BEGIN: Final = "<|tool_call:begin|>"
_NAME: Final = "<|tool_call:name|>"
_ARGS: Final = "<|tool_call:args|>"
_SOLAR_END: Final = "<|tool_call:end|>"
_SECTION_END: Final = "<|calls|>"
_SOLAR_STOPS: Final = (_SOLAR_END, _BEGIN, _SECTION_END, "<|end|>", _HEADER)
_SOLAR_TOKENS: Final = (_HEADER, _THINK, _CONTENT, _CALLS, _NAME, _ARGS, *_SOLAR_STOPS)
_SOLAR_THINKING: Final = Thinking(
    ("<|end|>", _NEXT_HEADER, _HEADER), frozenset({_NEXT_HEADER, _HEADER})
)
_SOLAR_KINDS: Final = (_NEXT_HEADER, _HEADER, _THINK, _CONTENT, _CALLS, _BEGIN)
_SHOWN: Final = Thinking(
    ("<|end|>", *_SOLAR_KINDS), kept=frozenset(_SOLAR_KINDS), ends_at_call=False, shown=True
)
_MAX_WORD_CHARS: Final = 300


class SolarCalls(CallFormat):
    """Messages that begin with `<|begin|>assistant` and the token of their kind."""

    name = "solar"
    trims = False
    literals = _SOLAR_KINDS

    def read(self, source: Source, at: int) -> Found | None:
        """Read the head of a message, and its calls when it has some."""
        header = source.starts_any((_NEXT_HEADER, _HEADER), at)
        here = source.skip_space(at + len(header)) if header else at
        if source.starts(_THINK, here):
            return Found(end=here + len(_THINK), opens=_SOLAR_THINKING)
        if source.starts(_CONTENT, here):
            return Found(end=source.skip_space(here + len(_CONTENT)), opens=_SHOWN)
        in_section = source.starts(_CALLS, here)
        if in_section:
            here = source.skip_space(here + len(_CALLS))
        if source.at_end(here) or source.begun_at_end(_SOLAR_TOKENS, here):
            return Found(end=len(source.text))
        return _read_calls(source, here, in_section=in_section)


def _read_calls(source: Source, at: int, *, in_section: bool) -> Found | None:
    calls: list[TextCall] = []
    here = at
    while source.starts(_BEGIN, here):
        end = _read_call(source, here, calls)
        if end < 0:
            break
        here = source.skip_space(end)
    if here == at and not (in_section and source.starts(_SECTION_END, here)):
        return None
    if source.starts(_SECTION_END, here):
        here += len(_SECTION_END)
    elif source.begun_at_end(_SOLAR_TOKENS, here):
        here = len(source.text)
    return Found(end=here, calls=tuple(calls))


def _read_call(source: Source, at: int, calls: list[TextCall]) -> int:
    """Read one call into the list and return where it ends; -1 when it is none."""
    call_id, here, token = _read_word(source, at + len(_BEGIN))
    name = ""
    if token == _NAME:
        name, here, token = _read_word(source, here)
    if token != _ARGS:
        # The text ended inside the head, or something else follows.
        return here if source.at_end(here) else -1
    payload = read_arguments_text(source, here, _SOLAR_STOPS)
    call = TextCall(name=name, arguments=payload.text, id=call_id or None, state=payload.state)
    notes: list[Receipt] = []
    end = payload.end
    if payload.state == "whole":
        end = source.skip_space(payload.end)
        if source.starts(_SOLAR_END, end):
            end += len(_SOLAR_END)
        else:
            notes.append(receipt("missing_closer", "", _SOLAR_END, "the arguments are complete"))
            end = len(source.text) if source.begun_at_end(_SOLAR_TOKENS, end) else end
    calls.extend(add_receipts((call,), *notes))
    return end


def _read_word(source: Source, at: int) -> tuple[str, int, str]:
    """Return the id or name that stands here, where the token after it ends, and the token."""
    found, token = source.find_any(_SOLAR_TOKENS, at)
    end = len(source.text) if found < 0 else found
    word = source.text[at:end].strip()
    if len(word) > _MAX_WORD_CHARS or len(word.split()) > 1:
        return "", at, ""
    return word, end + len(token), token


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


class MuseMessages(CallFormat):
    """Headers say who a message is for: `self` is reasoning, `user` the answer, else a tool."""

    name = "muse"

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return headers; the first one of a reply lacks its beginning."""
        recipients = ("self", "user", *tools.names)
        first = (f"{space}to={who}{_MUSE_MESSAGE}" for who in recipients for space in ("", " "))
        return (_START, *_ENDS, *first)

    def read(self, source: Source, at: int) -> Found | None:
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


class AtemBlock(CallFormat):
    """A block of calls whose header is missing; nothing may follow it."""

    name = "muse"
    line_start = True
    literals = (_BLOCK,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read a block that ends its message."""
        return _read_block(source, at, alone=True)


def _read_block(source: Source, at: int, *, alone: bool) -> Found | None:
    """Read a block; one that is not for a tool must be all of its message."""
    begin = at + len(_BLOCK)
    here = skip_debris(source, begin)
    if source.at_end(here):
        return Found(end=here)
    if source.char(here) in ("{", "["):  # what a grammar forces on the model
        found = read_after_token(source, here, _BLOCK, (_BLOCK_END,), closes=True)
        return found if found is None or not alone else _alone(source, found)
    head = INVOKE_GRAMMAR.tag(source, here)
    if head is None and INVOKE_GRAMMAR.is_begun(source, here):
        return Found(end=len(source.text))
    if head is None or head.kind != "open_call":
        return None
    if alone and source.tools.resolve(head.label) is None:
        return None
    found = read_found(source, INVOKE_GRAMMAR, begin, padding="none", marked=not alone)
    return found if found is None or not alone else _alone(source, found)


def _alone(source: Source, found: Found) -> Found | None:
    """Return what was found, as damaged, when nothing but the end of its message follows."""
    after = source.skip_space(found.end)
    ends = found.ends_message or source.at_end(after)
    if ends or source.starts_any((*_ENDS, _BLOCK), after):
        return replace(found, grade="damaged")
    return None
