"""Solar Open: messages of a kind each, and calls that carry their id, name and arguments."""

from typing import Final

from surecall.records import Receipt

from .base import CallFormat, Found, TextCall, Thinking
from .json_block import noted, read_arguments_text, receipt
from .source import Source

__all__ = ["SolarCalls"]

_HEADER: Final = "<|begin|>assistant"
_NEXT_HEADER: Final = "<|end|>" + _HEADER
_THINK: Final = "<|think|>"
_CONTENT: Final = "<|content|>"
_CALLS: Final = "<|tool_calls|>"
_BEGIN: Final = "<|tool_call:begin|>"
_NAME: Final = "<|tool_call:name|>"
_ARGS: Final = "<|tool_call:args|>"
_END: Final = "<|tool_call:end|>"
_SECTION_END: Final = "<|calls|>"
_STOPS: Final = (_END, _BEGIN, _SECTION_END, "<|end|>", _HEADER)
_TOKENS: Final = (_HEADER, _THINK, _CONTENT, _CALLS, _NAME, _ARGS, *_STOPS)
_THINKING: Final = Thinking(("<|end|>", _NEXT_HEADER, _HEADER), frozenset({_NEXT_HEADER, _HEADER}))
_KINDS: Final = (_NEXT_HEADER, _HEADER, _THINK, _CONTENT, _CALLS, _BEGIN)
_SHOWN: Final = Thinking(
    ("<|end|>", *_KINDS), kept=frozenset(_KINDS), ends_at_call=False, shown=True
)
_MAX_WORD_CHARS: Final = 300


class SolarCalls(CallFormat):
    """Messages that begin with `<|begin|>assistant` and the token of their kind."""

    name = "solar"
    trims = False
    literals = _KINDS

    def read(self, source: Source, at: int) -> Found | None:
        """Read the head of a message, and its calls when it has some."""
        header = source.starts_any((_NEXT_HEADER, _HEADER), at)
        here = source.skip_space(at + len(header)) if header else at
        if source.starts(_THINK, here):
            return Found(end=here + len(_THINK), opens=_THINKING)
        if source.starts(_CONTENT, here):
            return Found(end=source.skip_space(here + len(_CONTENT)), opens=_SHOWN)
        in_section = source.starts(_CALLS, here)
        if in_section:
            here = source.skip_space(here + len(_CALLS))
        if source.at_end(here) or _is_token_cut(source, here):
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
    elif _is_token_cut(source, here):
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
    payload = read_arguments_text(source, here, _STOPS)
    call = TextCall(name=name, arguments=payload.text, id=call_id or None, state=payload.state)
    notes: list[Receipt] = []
    end = payload.end
    if payload.state == "whole":
        end = source.skip_space(payload.end)
        if source.starts(_END, end):
            end += len(_END)
        else:
            notes.append(receipt("missing_closer", "", _END, "the arguments are complete"))
            end = len(source.text) if _is_token_cut(source, end) else end
    calls.extend(noted((call,), *notes))
    return end


def _read_word(source: Source, at: int) -> tuple[str, int, str]:
    """Return the id or name that stands here, where the token after it ends, and the token."""
    found, token = source.find_any(_TOKENS, at)
    end = len(source.text) if found < 0 else found
    word = source.text[at:end].strip()
    if len(word) > _MAX_WORD_CHARS or len(word.split()) > 1:
        return "", at, ""
    return word, end + len(token), token


def _is_token_cut(source: Source, at: int) -> bool:
    """Tell whether the text ends inside a token."""
    tail = source.text[at:] if source.final else ""
    return bool(tail) and any(token.startswith(tail) for token in _TOKENS)
