"""Inkling: messages of a kind each; a call is JSON with `name` and `args`, or raw text."""

from typing import Any, Final, cast

from .base import CallFormat, Found, TextCall, Thinking
from .json_block import close_block, noted, read_block, receipt
from .source import Source

__all__ = ["InklingCalls"]

_MESSAGE: Final = "<|message_model|>"
_END: Final = "<|end_message|>"
_TEXT: Final = "<|content_text|>"
_THINKING: Final = "<|content_thinking|>"
_ERROR: Final = "<|content_tool_error|>"
_CALL: Final = "<|content_invoke_tool_json|>"
_TEXT_CALL: Final = "<|content_invoke_tool_text|>"
_KINDS: Final = (_TEXT, _THINKING, _ERROR, _CALL, _TEXT_CALL)
_TOKENS: Final = (_MESSAGE, _END, *_KINDS)
_STOPS: Final = (_END, _MESSAGE, _CALL, "<|content_model_end_sampling|>")
_OPENS: Final = Thinking((_END,))
_SHOWS: Final = Thinking(
    _TOKENS, kept=frozenset({_MESSAGE, *_KINDS}), ends_at_call=False, shown=True
)
_MAX_NAME_CHARS: Final = 300


class InklingCalls(CallFormat):
    """Messages that begin with `<|message_model|>`, a name for calls, and the token of a kind."""

    name = "inkling"
    trims = False
    literals = _TOKENS

    def read(self, source: Source, at: int) -> Found | None:
        """Read the head of a message, and its call when it has one."""
        here = at
        if source.starts(_END, here):
            here = source.skip_space(here + len(_END))
            if not source.starts_any((_MESSAGE, *_KINDS), here):
                return None
            return Found(end=here)
        name = ""
        if source.starts(_MESSAGE, here):
            here += len(_MESSAGE)
            name, here = _read_name(source, here)
            if source.at_end(here):
                return Found(end=here)
        kind = source.starts_any(_KINDS, here)
        here += len(kind)
        if kind == _THINKING:
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
    found, _ = source.find_any(_TOKENS, at)
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
    block = read_block(source, here, _STOPS)
    if block is None:
        return None
    if block.cut:
        return Found(end=block.end, calls=block.calls)
    end, closer = close_block(source, block.end, (_END,))
    if closer == _END:
        return Found(end=end, calls=block.calls)
    note = receipt("missing_closer", closer, _END, "the call itself is complete")
    return Found(end=end, calls=noted(block.calls, note))


def _read_text(source: Source, at: int, name: str) -> Found | None:
    """Read raw text for a tool, as its one parameter where it has one."""
    if not name:
        return None
    end = source.find(_END, at)
    is_cut = end < 0
    end = len(source.text) if is_cut else end
    text = source.text[at:end]
    schema = source.tools.parameters(name) or {}
    properties: Any = schema.get("properties")
    arguments: Any = text
    if isinstance(properties, dict) and len(cast("dict[str, Any]", properties)) == 1:
        arguments = source.typed(name, {next(iter(cast("dict[str, Any]", properties))): text})
    call = TextCall(
        name=name, arguments=text if is_cut else arguments, state="cut" if is_cut else "whole"
    )
    return Found(end=end if is_cut else end + len(_END), calls=(call,))
